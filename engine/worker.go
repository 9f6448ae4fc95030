package engine

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"acescope/engine/ace"
	"acescope/engine/activity"
	"acescope/engine/flow"
)

// MaxActivities bounds the steps that one process runs at a time.
const MaxActivities = 64

// workerSet is what this process serves.
type workerSet struct{ w worker.Worker }

func (s *workerSet) stop() { s.w.Stop() }

// serve starts a worker for the contract's task queue.
func (e *Engine) serve() error {
	c := e.serving
	if c == nil {
		c = e.Client
	}
	w := worker.New(c, ace.TaskQueue, worker.Options{
		MaxConcurrentActivityExecutionSize: MaxActivities,
		// A cancellation reaches a step with its next heartbeat: let those through.
		MaxHeartbeatThrottleInterval: time.Second,
		WorkerStopTimeout:            300 * time.Millisecond,
	})
	flow.Register(w)
	acts := &activity.Activities{Books: e.Books, Artifacts: e.Artifacts, Providers: e.Providers, Signals: signals{e.Client}}
	acts.Register(w)
	if err := w.Start(); err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	e.worker = &workerSet{w}
	return nil
}

type signals struct{ c client.Client }

func (s signals) SignalWorkflow(ctx context.Context, workflowID, runID, name string, arg any) error {
	return s.c.SignalWorkflow(ctx, workflowID, runID, name, arg)
}
