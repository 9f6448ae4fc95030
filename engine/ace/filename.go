package ace

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
)

// RunLogsRoot is where the logs of runs lie, below the data directory, with slashes. Beside
// it lie those of acescope itself.
const RunLogsRoot = "logs/runs"

// RunLogsDir is where the logs of one run lie, below the data directory, with slashes. Ids
// are untrusted: whatever they hold, it is two levels below [RunLogsRoot], and two runs
// never share it.
func RunLogsDir(workflowID, runID string) string {
	return path.Join(RunLogsRoot, FileName(workflowID), FileName(runID))
}

// maxEscaped is how long an escaped name may be, in bytes.
const maxEscaped = 150

// FileName makes of any text the name of one file: letters, digits, dot, dash and underscore
// stay, other bytes become % and two hexadecimal digits, a dot at the begin too. What gets
// too long is cut and ends with a part of its digest. Two texts never get one name.
func FileName(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	switch {
	case name == "":
		return "%"
	case len(name) <= maxEscaped:
		return name
	}
	return fmt.Sprintf("%s%%-%x", name[:maxEscaped], sha256.Sum256([]byte(text)))
}
