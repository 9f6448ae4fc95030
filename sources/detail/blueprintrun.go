package detail

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/sources/histories"
	"acescope/sources/logfile"
	"acescope/sources/logs"
	"acescope/sources/runners"
)

// blueprintRun folds the history of a blueprint run.
type blueprintRun struct{ *histories.BlueprintRunFolder }

func (b blueprintRun) fold(_ *draft, e *historypb.HistoryEvent) (changes []histories.Change) {
	before := b.State
	fact, ok, err := b.Decoder.Fact(e)
	if err != nil {
		b.Foreign = err
	}
	if !ok {
		return nil
	}
	b.State.Apply(fact)
	for _, l := range runners.ChangeLines(&before, &b.State) {
		l.Event, l.At = e.GetEventId(), e.GetEventTime().AsTime()
		changes = append(changes, noted(l))
	}
	return changes
}

// query returns nil: the history contains all facts.
func (b blueprintRun) query(context.Context, query) func(*draft) { return nil }

func (b blueprintRun) take(d *draft) {
	s := b.State
	if b.Foreign != nil {
		d.Err = fmt.Sprintf("the input of this run does not match the contract: %v", b.Foreign)
	}
	d.BlueprintRun = &s
	d.Phase = ace.PhaseAnswer{Phase: ace.Phase(s.Status), Steps: runners.Steps(&s, d.Start, d.Close)}
	d.Input = ace.TaskInput{TaskID: d.WorkflowID, Prompt: s.Input.Prompt}
	if b := s.Input.Blueprint; b != nil {
		d.Input.Model = b.Model
	}
	if r := s.Result; r != nil {
		d.Phase.Usage = r.Usage
		if r.Status == run.Failed {
			d.Phase.Failure = &ace.Failure{Kind: s.Exit, Type: string(r.Reason), Message: r.Error}
		}
	}
}

// followOutput adds the output of a blueprint run's program to the log, if the program runs on this machine.
func (w *watcher) followOutput(ctx context.Context) {
	var first string
	select {
	case <-ctx.Done():
		return
	case first = <-w.program:
	}
	if w.link.DataDir == "" {
		return
	}
	runID := cmp.Or(w.id.RunID, first)
	id := func() (string, string) { return w.id.WorkflowID, runID }
	var mirroring sync.WaitGroup
	defer mirroring.Wait()
	mirroring.Go(func() { w.link.Mirror.Keep(ctx, id, w.link.Report) })
	o := logfile.Options{Paths: []string{logs.RunDir(w.link.DataDir, w.id.WorkflowID, runID)},
		Match: []string{run.ActivityExecute + "-*.jsonl"}, Tail: histories.MaxOutputLines,
		MaxLine: logs.MaxLine}
	err := logfile.Follow(ctx, o, logfile.Handler{Lines: w.takeOutput,
		Event: func(logfile.Event) error { return nil }, Files: func([]logfile.File) error { return nil }})
	if err != nil && ctx.Err() == nil {
		w.link.Report("the live log of " + w.id.WorkflowID + ": " + err.Error())
	}
}

func (w *watcher) takeOutput(lines []logfile.Line) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range lines {
		if summary, ok := histories.OutputLine(l.Text); ok {
			w.output.lines = append(w.output.lines, summary)
		}
	}
	if over := len(w.output.lines) - histories.MaxOutputLines; over > 0 {
		w.output.lines = slices.Clone(w.output.lines[over:])
		w.output.dropped += over
	}
	w.touch()
	return nil
}
