package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/historyfile"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// RunHistory is a history and where it came from. Err says why the source could not be
// read, or not beyond this history.
type RunHistory struct {
	Source string // file, "-", or workflow id and run id
	Number int    // of the history in the source, from 1
	historyfile.History
	ReadErr error
	Chain   *ChainLine // nil for a run that is in none
}

// Types names the events that could not be read, by position from 0.
func (h RunHistory) Types() map[int]string {
	names := map[int]string{}
	for _, u := range h.Unread {
		names[u.Index] = u.Type
	}
	return names
}

// IsHistoryFile tells whether an argument names a file, a directory or standard input, rather
// than a run. What looks like a path is one, though nothing may be there.
func IsHistoryFile(arg string) bool {
	if arg == "-" || strings.HasSuffix(arg, ".json") || strings.HasSuffix(arg, ".gz") || strings.HasPrefix(arg, "./") || filepath.IsAbs(arg) {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil
}

// readHistoryFile reads the histories of a file, "-" for standard input. The last has the
// error where the file breaks off; where nothing could be read, it has only that.
func readHistoryFile(path string) []RunHistory {
	var r io.Reader = os.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return []RunHistory{{Source: path, Number: 1, ReadErr: FileError(err)}}
		}
		defer f.Close()
		r = f
	}
	list, err := historyfile.Read(r)
	var out []RunHistory
	for i, h := range list {
		out = append(out, RunHistory{Source: path, Number: i + 1, History: h})
	}
	if err == nil {
		return out
	}
	if path != "-" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if len(out) == 0 {
		return []RunHistory{{Source: path, Number: 1, ReadErr: err}}
	}
	out[len(out)-1].ReadErr = err
	return out
}

func FileError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &ExitError{ExitNotFound, err}
	}
	return err
}

// FilesIn lists the history files of a directory and those below it, by name; of anything
// else, itself.
func FilesIn(path string) ([]string, error) {
	info, err := os.Stat(path)
	if path == "-" || err != nil || !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(d.Name(), ".gz")
		if d.Type().IsRegular() && (strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl")) {
			files = append(files, at)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = &ExitError{ExitNotFound, fmt.Errorf("%s: no history files (.json, .jsonl, each also .gz) are in it", path)}
	}
	return files, err
}

// RunIDOf is the id of the run that a history is of.
func RunIDOf(events []*historypb.HistoryEvent) string {
	return history.OriginOf(events).RunID
}

// pick chooses one of a file's histories: by its number, by its run id, or the only one.
func pick(list []RunHistory, number int, runID string) (RunHistory, error) {
	switch {
	case runID != "":
		i := slices.IndexFunc(list, func(h RunHistory) bool { return RunIDOf(h.Events) == runID })
		if i < 0 {
			return RunHistory{}, &ExitError{ExitNotFound, fmt.Errorf("%s: it has no history of the run %q", list[0].Source, runID)}
		}
		return list[i], nil
	case number > len(list):
		return RunHistory{}, &ExitError{ExitNotFound, fmt.Errorf("%s: it has %d histories, not %d", list[0].Source, len(list), number)}
	case number > 0:
		return list[number-1], nil
	case len(list) > 1:
		var ids []string
		for i, h := range list[:min(len(list), 5)] {
			ids = append(ids, fmt.Sprintf("%d %s", i+1, RunIDOf(h.Events)))
		}
		return RunHistory{}, UsageError("%s: it has %d histories; choose one with --history N or --run ID: %s", list[0].Source, len(list), strings.Join(ids, ", "))
	}
	return list[0], nil
}

// HistoryOf reads the history that an argument names: a file's, or a run's from the server.
func (a *App) HistoryOf(ctx context.Context, arg string, number int, runID string) (RunHistory, error) {
	if IsHistoryFile(arg) {
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			return RunHistory{}, UsageError("%s is a directory: name one file of it", arg)
		}
		h, err := pick(a.ReadHistories(ctx, arg), number, runID)
		if err == nil && len(h.Events) == 0 {
			if err = h.ReadErr; err == nil {
				err = fmt.Errorf("%s: the history has no events", arg)
			}
		}
		return h, err
	}
	if number > 0 {
		return RunHistory{}, UsageError("--history is for files; choose a run of the server with --run")
	}
	e, done, err := a.OpenReadOnly(ctx)
	if err != nil {
		return RunHistory{}, err
	}
	defer done()
	return a.ReadRun(ctx, e, arg, runID)
}

func (a *App) ReadRun(ctx context.Context, e *engine.Engine, id, runID string) (RunHistory, error) {
	run, err := runs.Resolve(ctx, e.Client, id)
	if err != nil {
		return RunHistory{}, err
	}
	exec := run.GetWorkflowExecutionInfo().GetExecution()
	if runID == "" {
		runID = exec.GetRunId()
	}
	events, err := cluster.ReadHistory(ctx, e.Client, e.Namespace(), exec.GetWorkflowId(), runID)
	if err != nil {
		return RunHistory{}, err
	}
	line, err := cluster.ReadLine(ctx, e.Client, e.Namespace(), exec.GetWorkflowId(), runID)
	return RunHistory{Source: exec.GetWorkflowId(), Number: 1, History: historyfile.History{Events: events}, Chain: chainLineOf(line)}, err
}
