package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"acescope/engine/ace"
	"acescope/engine/activity"
	"acescope/engine/flow"
	"acescope/engine/server"
	"acescope/engine/session/host"
)

// MaxActivities bounds the steps that one process runs at a time.
const MaxActivities = 64

// workerSet is what this process serves.
type workerSet struct {
	w        worker.Worker
	dispatch *activity.Dispatch
	sessions *sessionWorker
	runner   *localRunner // nil for none
	end      func()       // of looking after the dispatcher
}

func (s *workerSet) stop() {
	s.end()
	s.runner.stop() // before the others: it says goodbye to its workflow
	s.w.Stop()
	s.dispatch.Close()
	s.sessions.stop()
}

// serve starts a worker for the contract's task queue, and one for sessions.
func (e *Engine) serve(o host.Options, lib Blueprints) error {
	c := e.serving
	if c == nil {
		c = e.Client
	}
	w := worker.New(c, ace.TaskQueue, workerOptions(MaxActivities))
	flow.Register(w)
	acts := &activity.Activities{Books: e.Books, Artifacts: e.Artifacts, Providers: e.Providers, Blueprint: e.stepProviders(lib), Signals: signals{e.Client},
		Logs: filepath.Join(e.dir, "logs"), Agents: e.Agents}
	acts.Register(w)
	dispatch := &activity.Dispatch{Workflows: c, Logger: e.log}
	dispatch.Register(w)
	o.DataDir, o.Artifacts, o.Workflows, o.Logger = e.dir, e.Artifacts, host.Client{Client: c}, e.log
	h, err := host.New(o)
	if err != nil {
		return fmt.Errorf("%w: %w", server.ErrDataDir, err)
	}
	h.RegisterClaim(w)
	if err := w.Start(); err != nil {
		h.Close()
		return fmt.Errorf("start the worker: %w", err)
	}
	life, end := context.WithCancel(context.Background())
	e.worker = &workerSet{w: w, dispatch: dispatch, sessions: startSessions(c, h, e.log), end: end}
	go dispatch.Watch(life)
	return nil
}

func workerOptions(activities int) worker.Options {
	return worker.Options{
		MaxConcurrentActivityExecutionSize: activities,
		// A cancellation reaches a step with its next heartbeat: let those through.
		MaxHeartbeatThrottleInterval: time.Second,
		WorkerStopTimeout:            300 * time.Millisecond,
		// The dispatcher reads and writes 20,000 runs in one go when it continues as new.
		DeadlockDetectionTimeout: 10 * time.Second,
	}
}

type signals struct{ c client.Client }

func (s signals) SignalWorkflow(ctx context.Context, workflowID, runID, name string, arg any) error {
	return s.c.SignalWorkflow(ctx, workflowID, runID, name, arg)
}
