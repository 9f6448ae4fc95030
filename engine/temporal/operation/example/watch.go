package example

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"acescope/engine/temporal/operation"
)

// Watching is the input of a watch.
type Watching struct {
	Left int               `json:"left"` // remaining runs
	From operation.Carried `json:"from"` // from the previous run
}

// Watch publishes how often it has looked, in a chain of runs that each continue as new.
func Watch(ctx workflow.Context, w Watching) (int, error) {
	r := operation.New(ctx, operation.Continue(w.From))
	var looks int
	if _, err := r.Get("looks", &looks); err != nil {
		return 0, err
	}
	if err := r.Set("looks", looks+1); err != nil {
		return 0, err
	}
	if err := r.Do(ctx, operation.Operation{Type: operation.Action, Step: "publish",
		Parameters: Page{Title: "Looks"}}, nil); err != nil {
		return 0, err
	}
	if w.Left == 0 {
		return looks + 1, nil
	}
	if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
		return 0, err
	}
	return 0, workflow.NewContinueAsNewError(ctx, Watch, Watching{Left: w.Left - 1, From: r.Carry()})
}
