package sources

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"acescope/engine/run"
	"acescope/sources/logfile"
)

// MaxOutputLines are the newest lines of what a run's program writes that its log shows.
const MaxOutputLines = MaxLog / 2

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
	o := logfile.Options{Paths: []string{RunLogsDir(w.deps.DataDir, w.sel.workflowID, cmp.Or(w.sel.runID, w.course.runID))}, Match: []string{run.ActivityExecute + "-*.jsonl"}, Tail: MaxOutputLines, MaxLine: maxLogLine}
	err := logfile.Follow(ctx, o, logfile.Handler{Lines: w.takeOutput, Event: func(logfile.Event) error { return nil }, Files: func([]logfile.File) error { return nil }})
	if err != nil && ctx.Err() == nil {
		w.store.Report("the live log of " + w.sel.workflowID + ": " + err.Error())
	}
}

// outputKinds are the kinds of log lines by what a program wrote them to.
var outputKinds = map[string]string{"stdout": "out", "stderr": "err"}

func (w *watcher) takeOutput(lines []logfile.Line) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range lines {
		if said, ok := outputLine(l.Text); ok {
			w.output = append(w.output, said)
		}
	}
	if over := len(w.output) - MaxOutputLines; over > 0 {
		w.output = slices.Clone(w.output[over:])
		w.outputDropped += over
	}
	w.touch()
	return nil
}

// outputLine is a line of a live log; false for what is none.
func outputLine(raw []byte) (LogLine, bool) {
	var l struct {
		At     time.Time `json:"at"`
		Stream string    `json:"stream"`
		Text   string    `json:"text"`
		Note   string    `json:"note"`
	}
	if json.Unmarshal(raw, &l) != nil || outputKinds[l.Stream] == "" {
		return LogLine{}, false
	}
	if l.Note != "" {
		return LogLine{At: l.At, Kind: "status", Text: l.Note}, true
	}
	return LogLine{At: l.At, Kind: outputKinds[l.Stream], Text: l.Text}, true
}

// withOutput is the log of a run together with what its program wrote, in the order of their
// times. Both are in order already, but for clocks that differ.
func withOutput(log, output []LogLine) []LogLine {
	all := make([]LogLine, 0, len(log)+len(output))
	for _, l := range log {
		for len(output) > 0 && output[0].At.Before(l.At) {
			all, output = append(all, output[0]), output[1:]
		}
		all = append(all, l)
	}
	return append(all, output...)
}
