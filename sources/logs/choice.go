package logs

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
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
	missing string          // directory of the run's own logs, if they are not chosen
	// Mention holds ids. If Own is set, lines of other files are kept only if they contain one of them.
	Mention     []string
	Description string // for display
}

// ChooseAll chooses all logs of a data directory.
func ChooseAll(dataDir string) Choice {
	return Choice{Options: logfile.Options{Paths: []string{Dir(dataDir)}},
		Description: "of the data directory"}
}

// ChooseRun chooses the logs of a run: its own, which may be missing, and lines of others that mention it.
func ChooseRun(dataDir, workflowID, runID string) Choice {
	c := Choice{Own: RunDir(dataDir, workflowID, runID),
		Description: "of the run, and lines of other logs that mention it"}
	c.Options = logfile.Options{Paths: []string{c.Own, Dir(dataDir)}, Skip: []string{runLogsDir}}
	for _, id := range []string{runID, workflowID} {
		if id != "" {
			c.Mention = append(c.Mention, id)
		}
	}
	return c
}

// ChooseRunOrAll chooses the logs of a run, or all logs of the data directory until the run has its own.
func ChooseRunOrAll(dataDir, workflowID, runID string) Choice {
	c := ChooseRun(dataDir, workflowID, runID)
	if info, err := os.Stat(c.Own); err == nil && info.IsDir() {
		return c
	}
	all := ChooseAll(dataDir)
	all.Mention, all.missing = c.Mention, c.Own
	all.Description += "; the run has no logs of its own"
	return all
}

// ChoosePaths chooses files and directories by name.
func ChoosePaths(paths []string) Choice {
	return Choice{Options: logfile.Options{Paths: paths}, Description: strings.Join(paths, ", ")}
}

// began reports whether the run has logs of its own now that it lacked when the logs were chosen.
func (c Choice) began(files []logfile.File) bool {
	return c.missing != "" && slices.ContainsFunc(files, func(f logfile.File) bool {
		return strings.HasPrefix(f.Path, c.missing+string(filepath.Separator))
	})
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
