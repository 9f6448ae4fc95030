package logs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/logfile"
)

// Where logs lie below the data directory: acescope's own and the server's in it, those of
// a run's agents and tools in runs/<workflow id>/<run id>/.
const (
	logsDir    = "logs"
	runLogsDir = "runs"
)

// LogsDir is where the logs of a data directory lie.
func LogsDir(dataDir string) string { return filepath.Join(dataDir, logsDir) }

// RunLogsDir is where the logs of one run lie; see [ace.RunLogsDir].
func RunLogsDir(dataDir, workflowID, runID string) string {
	return filepath.Join(dataDir, filepath.FromSlash(ace.RunLogsDir(workflowID, runID)))
}

// LogChoice is which logs are read, and why those.
type LogChoice struct {
	Options logfile.Options // paths, and what is left out of directories
	Own     string          // the directory of the run's own logs, "" for none
	// Mention holds ids; where Own is set, of files outside it only the lines are kept that
	// hold one of them.
	Mention []string
	Why     string // a line for a person
}

// LogsOf chooses the logs of a run: its own and what others say of it, or, where it has
// none of its own, those of the data directory. An empty workflow id is no run.
func LogsOf(dataDir, workflowID, runID string) LogChoice {
	all := LogsDir(dataDir)
	c := LogChoice{Options: logfile.Options{Paths: []string{all}}, Why: "of the data directory"}
	if workflowID == "" {
		return c
	}
	for _, id := range []string{runID, workflowID} {
		if id != "" {
			c.Mention = append(c.Mention, id)
		}
	}
	own := RunLogsDir(dataDir, workflowID, runID)
	if info, err := os.Stat(own); err != nil || !info.IsDir() {
		c.Why = "of the data directory; the run has none of its own"
		return c
	}
	c.Own, c.Why = own, "of the run, and what others say of it"
	c.Options.Paths, c.Options.Skip = []string{own, all}, []string{runLogsDir}
	return c
}

// ChosenLogs are logs that somebody named.
func ChosenLogs(paths []string) LogChoice {
	return LogChoice{Options: logfile.Options{Paths: paths}, Why: strings.Join(paths, ", ")}
}

// Keeps tells whether a line belongs to what was chosen.
func (c LogChoice) Keeps(path string, text []byte) bool {
	return c.Own == "" || strings.HasPrefix(path, c.Own+string(filepath.Separator)) || Mentions(text, c.Mention)
}

// Mentions tells whether a line holds one of the ids.
func Mentions(text []byte, ids []string) bool {
	for _, id := range ids {
		if bytes.Contains(text, []byte(id)) {
			return true
		}
	}
	return false
}
