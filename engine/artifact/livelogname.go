package artifact

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
)

// logsDir is where live logs are, below the data directory.
const logsDir = "logs"

// LogName says of what a live log is. It is known before the log begins, so that the
// console finds it.
type LogName struct {
	WorkflowID, RunID string
	Activity          string
	Seq               int   // tells the activities of a type and run apart
	Attempt           int32 // of the activity
}

// Path is the log's path below the data directory, with slashes:
// logs/<workflow>/<run>/<activity>-<seq>-<attempt>.jsonl. Of what has no place in a file's
// name, [Escape] makes something else.
func (n LogName) Path() string { return n.path(1) }

func (n LogName) path(number int) string {
	name := fmt.Sprintf("%s-%d-%d", Escape(n.Activity), n.Seq, n.Attempt)
	if number > 1 {
		name += fmt.Sprintf(".%d", number)
	}
	return path.Join(logsDir, Escape(n.WorkflowID), Escape(n.RunID), name+".jsonl")
}

// maxEscaped is how long an escaped name may be, in bytes.
const maxEscaped = 150

// Escape makes of any text the name of one file: letters, digits, dot, dash and underscore
// stay, other bytes become % and two hexadecimal digits, a dot at the begin too. What gets
// too long is cut and ends with a part of its digest. Two texts never get one name.
func Escape(text string) string {
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
