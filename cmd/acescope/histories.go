package main

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
	"acescope/engine/history"
	"acescope/engine/historyfile"
	"acescope/sources"
)

// oneHistory is a history and where it came from. Err says why the source could not be
// read, or not beyond this history.
type oneHistory struct {
	source string // file, "-", or workflow id and run id
	number int    // of the history in the source, from 1
	historyfile.History
	err   error
	chain *chainLine // nil for a run that is in none
}

// types names the events that could not be read, by position from 0.
func (h oneHistory) types() map[int]string {
	names := map[int]string{}
	for _, u := range h.Unread {
		names[u.Index] = u.Type
	}
	return names
}

// isHistoryFile tells whether an argument names a file, a directory or standard input, rather
// than a run. What looks like a path is one, though nothing may be there.
func isHistoryFile(arg string) bool {
	if arg == "-" || strings.HasSuffix(arg, ".json") || strings.HasSuffix(arg, ".gz") || strings.HasPrefix(arg, "./") || filepath.IsAbs(arg) {
		return true
	}
	_, err := os.Stat(arg)
	return err == nil
}

// readHistoryFile reads the histories of a file, "-" for standard input. The last has the
// error where the file breaks off; where nothing could be read, it has only that.
func readHistoryFile(path string) []oneHistory {
	var r io.Reader = os.Stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return []oneHistory{{source: path, number: 1, err: fileError(err)}}
		}
		defer f.Close()
		r = f
	}
	list, err := historyfile.Read(r)
	var out []oneHistory
	for i, h := range list {
		out = append(out, oneHistory{source: path, number: i + 1, History: h})
	}
	if err == nil {
		return out
	}
	if path != "-" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if len(out) == 0 {
		return []oneHistory{{source: path, number: 1, err: err}}
	}
	out[len(out)-1].err = err
	return out
}

func fileError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &coded{exitNotFound, err}
	}
	return err
}

// filesIn lists the history files of a directory and those below it, by name; of anything
// else, itself.
func filesIn(path string) ([]string, error) {
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
		err = &coded{exitNotFound, fmt.Errorf("%s: no history files (.json, .jsonl, each also .gz) are in it", path)}
	}
	return files, err
}

// runIDOf is the id of the run that a history is of.
func runIDOf(events []*historypb.HistoryEvent) string {
	return history.OriginOf(events).RunID
}

// pick chooses one of a file's histories: by its number, by its run id, or the only one.
func pick(list []oneHistory, number int, runID string) (oneHistory, error) {
	switch {
	case runID != "":
		i := slices.IndexFunc(list, func(h oneHistory) bool { return runIDOf(h.Events) == runID })
		if i < 0 {
			return oneHistory{}, &coded{exitNotFound, fmt.Errorf("%s: it has no history of the run %q", list[0].source, runID)}
		}
		return list[i], nil
	case number > len(list):
		return oneHistory{}, &coded{exitNotFound, fmt.Errorf("%s: it has %d histories, not %d", list[0].source, len(list), number)}
	case number > 0:
		return list[number-1], nil
	case len(list) > 1:
		var ids []string
		for i, h := range list[:min(len(list), 5)] {
			ids = append(ids, fmt.Sprintf("%d %s", i+1, runIDOf(h.Events)))
		}
		return oneHistory{}, usage("%s: it has %d histories; choose one with --history N or --run ID: %s", list[0].source, len(list), strings.Join(ids, ", "))
	}
	return list[0], nil
}

// historyOf reads the history that an argument names: a file's, or a run's from the server.
func (a *app) historyOf(ctx context.Context, arg string, number int, runID string) (oneHistory, error) {
	if isHistoryFile(arg) {
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			return oneHistory{}, usage("%s is a directory: name one file of it", arg)
		}
		h, err := pick(a.readHistories(ctx, arg), number, runID)
		if err == nil && len(h.Events) == 0 {
			if err = h.err; err == nil {
				err = fmt.Errorf("%s: the history has no events", arg)
			}
		}
		return h, err
	}
	if number > 0 {
		return oneHistory{}, usage("--history is for files; choose a run of the server with --run")
	}
	e, done, err := a.look(ctx)
	if err != nil {
		return oneHistory{}, err
	}
	defer done()
	return a.readRun(ctx, e, arg, runID)
}

func (a *app) readRun(ctx context.Context, e *engine.Engine, id, runID string) (oneHistory, error) {
	run, err := sources.Resolve(ctx, e.Client, id)
	if err != nil {
		return oneHistory{}, err
	}
	exec := run.GetWorkflowExecutionInfo().GetExecution()
	if runID == "" {
		runID = exec.GetRunId()
	}
	events, err := sources.ReadHistory(ctx, e.Client, e.Namespace(), exec.GetWorkflowId(), runID)
	if err != nil {
		return oneHistory{}, err
	}
	line, err := sources.ReadLine(ctx, e.Client, e.Namespace(), exec.GetWorkflowId(), runID)
	return oneHistory{source: exec.GetWorkflowId(), number: 1, History: historyfile.History{Events: events}, chain: chainLineOf(line)}, err
}
