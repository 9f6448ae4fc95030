package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	embedded "acescope/engine/temporal/server"
)

// bareSignals is how many signals a bare task gets: one for each tool event of ours.
const bareSignals = 2 * calls

const (
	bareQueue  = "bare"
	bareSignal = "tool_event"
)

// bareTask is the input of the bare workflow.
type bareTask struct {
	Steps    int
	LingerMS int
}

type bareEvent struct {
	ID   int
	Name string
	Args map[string]int
	OK   bool
	At   time.Time
}

// bareWorkflow is what somebody would write first: activities in a row, the second of
// which reports every tool event with a signal of its own.
func bareWorkflow(ctx workflow.Context, in bareTask) (int, error) {
	var events []bareEvent
	workflow.Go(ctx, func(ctx workflow.Context) {
		signals := workflow.GetSignalChannel(ctx, bareSignal)
		for {
			var e bareEvent
			signals.Receive(ctx, &e)
			events = append(events, e)
		}
	})
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for i := range in.Steps {
		name := "step"
		if i == 1 {
			name = "skills"
		}
		if err := workflow.ExecuteActivity(ctx, name, in).Get(ctx, nil); err != nil {
			return 0, err
		}
	}
	err := workflow.Await(ctx, func() bool { return len(events) >= bareSignals })
	return len(events), err
}

type bareActivities struct {
	c     client.Client
	began func()
}

func (a *bareActivities) step(context.Context, bareTask) error {
	if a.began != nil {
		a.began()
	}
	return nil
}

func (a *bareActivities) skills(ctx context.Context, in bareTask) error {
	run := activity.GetInfo(ctx).WorkflowExecution
	for i := range bareSignals {
		e := bareEvent{ID: i, Name: "calculate", Args: map[string]int{"n": i}, OK: true, At: time.Now()}
		if err := a.c.SignalWorkflow(ctx, run.ID, run.RunID, bareSignal, e); err != nil {
			return err
		}
	}
	return wait(ctx, time.Duration(in.LingerMS)*time.Millisecond)
}

// bareRunner runs the bare workflow on the same embedded server.
type bareRunner struct {
	node *embedded.Node
	c    client.Client
	w    worker.Worker
	in   bareTask
}

func openBare(ctx context.Context, s spec) (*bareRunner, error) {
	node, err := embedded.Join(ctx, embedded.Options{Dir: s.Dir, Version: "bench"})
	if err != nil {
		return nil, err
	}
	r := &bareRunner{node: node, in: bareTask{Steps: s.Steps, LingerMS: s.LingerMS}}
	if r.c, err = node.Dial(ctx); err != nil {
		return nil, err
	}
	r.w, err = startBareWorker(r.c, nil)
	return r, err
}

func startBareWorker(c client.Client, began func()) (worker.Worker, error) {
	w := worker.New(c, bareQueue, worker.Options{})
	acts := &bareActivities{c: c, began: began}
	w.RegisterWorkflow(bareWorkflow)
	w.RegisterActivityWithOptions(acts.step, activity.RegisterOptions{Name: "step"})
	w.RegisterActivityWithOptions(acts.skills, activity.RegisterOptions{Name: "skills"})
	return w, w.Start()
}

func (r *bareRunner) one(ctx context.Context, n int) error {
	run, err := r.c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: fmt.Sprintf("bare-%06d", n), TaskQueue: bareQueue},
		bareWorkflow, r.in)
	if err != nil {
		return err
	}
	var events int
	if err := run.Get(ctx, &events); err != nil {
		return err
	}
	if events != bareSignals {
		return fmt.Errorf("bare task %d: %d events", n, events)
	}
	return nil
}

func (r *bareRunner) close() error {
	r.w.Stop()
	r.c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	return r.node.Close(ctx)
}
