package logs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/logfile"
)

// Directories below the data directory: logs of acescope and of the server, and in runs/<workflow id>/<run
// id>/ those of a run's agents and tools.
const (
	logsDir    = "logs"
	runLogsDir = "runs"
)

// Dir returns the log directory of a data directory.
func Dir(dataDir string) string { return filepath.Join(dataDir, logsDir) }

// RunDir returns the log directory of a run; see [ace.RunLogsDir].
func RunDir(dataDir, workflowID, runID string) string {
	return filepath.Join(dataDir, filepath.FromSlash(ace.RunLogsDir(workflowID, runID)))
}

// Choice says which logs are read, and why.
type Choice struct {
	Options logfile.Options // paths, and what is skipped in directories
	Own     string          // directory of the run's own logs, or ""
	// Mention holds ids. If Own is set, lines of other files are kept only if they contain one of them.
	Mention     []string
	Description string // for display
}

// ChooseRun chooses the logs of a run: its own, and lines of others that mention it. If the workflow ID is
// empty, or the run has no logs and none are awaited, it chooses the logs of the data directory.
func ChooseRun(dataDir, workflowID, runID string, awaited bool) Choice {
	all := Dir(dataDir)
	c := Choice{Options: logfile.Options{Paths: []string{all}}, Description: "of the data directory"}
	if workflowID == "" {
		return c
	}
	for _, id := range []string{runID, workflowID} {
		if id != "" {
			c.Mention = append(c.Mention, id)
		}
	}
	own := RunDir(dataDir, workflowID, runID)
	if info, err := os.Stat(own); !awaited && (err != nil || !info.IsDir()) {
		c.Description = "of the data directory; the run has no logs of its own"
		return c
	}
	c.Own, c.Description = own, "of the run, and lines of other logs that mention it"
	c.Options.Paths, c.Options.Skip = []string{own, all}, []string{runLogsDir}
	return c
}

// ChoosePaths chooses files and directories by name.
func ChoosePaths(paths []string) Choice {
	return Choice{Options: logfile.Options{Paths: paths}, Description: strings.Join(paths, ", ")}
}

// Keeps reports whether a line is part of the choice.
func (c Choice) Keeps(path string, text []byte) bool {
	return c.Own == "" || strings.HasPrefix(path, c.Own+string(filepath.Separator)) ||
		Mentions(text, c.Mention)
}

// Mentions reports whether a line contains one of the ids.
func Mentions(text []byte, ids []string) bool {
	for _, id := range ids {
		if bytes.Contains(text, []byte(id)) {
			return true
		}
	}
	return false
}
