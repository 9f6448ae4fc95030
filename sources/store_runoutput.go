package sources

import (
	"cmp"
	"context"
	"slices"

	"acescope/engine/tasks/run"
	"acescope/sources/histories"
	"acescope/sources/logfile"
	"acescope/sources/logs"
)

// followOutput adds what the program of a run of a blueprint writes to the run's log, as it
// is written, where that is on this machine.
func (w *watcher) followOutput(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-w.program:
	}
	if w.deps.DataDir == "" {
		return
	}
	o := logfile.Options{Paths: []string{logs.RunLogsDir(w.deps.DataDir, w.sel.workflowID, cmp.Or(w.sel.runID, w.course.RunID))}, Match: []string{run.ActivityExecute + "-*.jsonl"}, Tail: histories.MaxOutputLines, MaxLine: logs.MaxLogLine}
	err := logfile.Follow(ctx, o, logfile.Handler{Lines: w.takeOutput, Event: func(logfile.Event) error { return nil }, Files: func([]logfile.File) error { return nil }})
	if err != nil && ctx.Err() == nil {
		w.store.Report("the live log of " + w.sel.workflowID + ": " + err.Error())
	}
}

func (w *watcher) takeOutput(lines []logfile.Line) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range lines {
		if said, ok := histories.OutputLine(l.Text); ok {
			w.output = append(w.output, said)
		}
	}
	if over := len(w.output) - histories.MaxOutputLines; over > 0 {
		w.output = slices.Clone(w.output[over:])
		w.outputDropped += over
	}
	w.touch()
	return nil
}
