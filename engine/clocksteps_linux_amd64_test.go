package engine_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
)

// errands is the task queue of the workflows of [TestMachineClockSteps].
const errands = "errands"

// errand uses each kind of step that may depend on a clock: activities with heartbeats and retries, a child,
// a signal, a timer and a query.
func errand(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 24 * time.Hour,
		HeartbeatTimeout: 10 * time.Second,
		RetryPolicy:      &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond}})
	stage := "starts"
	if err := workflow.SetQueryHandler(ctx, "stage", func() (string, error) {
		return stage, nil
	}); err != nil {
		return err
	}
	if err := workflow.ExecuteActivity(ctx, "beat").Get(ctx, nil); err != nil {
		return err
	}
	if err := workflow.ExecuteChildWorkflow(ctx, part).Get(ctx, nil); err != nil {
		return err
	}
	stage = "waits"
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, nil)
	if err := workflow.Sleep(ctx, time.Second); err != nil {
		return err
	}
	return workflow.ExecuteActivity(ctx, "fails twice").Get(ctx, nil)
}

func part(ctx workflow.Context) error { return workflow.Sleep(ctx, 100*time.Millisecond) }

// clockProgram is the environment of TestMachineClockSteps in a process whose clock it may set.
type clockProgram struct {
	*testing.T
	*engine.Engine
}

func (p clockProgram) start(id string, limit time.Duration) client.WorkflowRun {
	p.Helper()
	r, err := p.Client.ExecuteWorkflow(p.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: errands,
		WorkflowExecutionTimeout: limit}, errand)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// waits waits until a run waits for its signal.
func (p clockProgram) waits(r client.WorkflowRun) {
	p.Helper()
	p.until("the stage of "+r.GetID(), func(ctx context.Context) bool {
		var stage string
		v, err := p.Client.QueryWorkflow(ctx, r.GetID(), "", "stage")
		return err == nil && v.Get(&stage) == nil && stage == "waits"
	})
}

// finish signals a run and waits for its end.
func (p clockProgram) finish(r client.WorkflowRun) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), stepLimit)
	defer cancel()
	if err := p.Client.SignalWorkflow(ctx, r.GetID(), "", "go", nil); err != nil {
		p.Fatal(r.GetID(), err)
	}
	if err := r.Get(ctx, nil); err != nil {
		p.Fatal(r.GetID(), err)
	}
}

// stepLimit is far below the size of a step.
const stepLimit = time.Minute

func (p clockProgram) until(what string, ok func(context.Context) bool) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), stepLimit)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); !ok(ctx); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.Fatal("timed out waiting for", what)
		}
	}
}

// TestMachineClockSteps sets the clock of a host, with all its services and workers, while runs are under
// way. They must complete long before the clock is where it was, and so must runs that start after the step.
func TestMachineClockSteps(t *testing.T) {
	if skew == nil {
		t.Parallel()
		needShiftedClocks(t)
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), skewEnv+"=0s")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	p := clockProgram{t, openEngine(t, engine.Options{DataDir: t.TempDir(), Worker: true, Takeover: true})}
	// A limit of its own must not make the queue of a worker wait either.
	w := worker.New(p.Client, errands, worker.Options{TaskQueueActivitiesPerSecond: 500})
	w.RegisterWorkflow(errand)
	w.RegisterWorkflow(part)
	begun, proceed := make(chan string, 10), make(chan struct{}, 10)
	w.RegisterActivityWithOptions(func(ctx context.Context) error {
		begun <- activity.GetInfo(ctx).WorkflowExecution.ID
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			activity.RecordHeartbeat(ctx)
			select {
			case <-proceed:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
	}, activity.RegisterOptions{Name: "beat"})
	w.RegisterActivityWithOptions(func(ctx context.Context) error {
		if n := activity.GetInfo(ctx).Attempt; n < 3 {
			return errors.New("not yet")
		}
		return nil
	}, activity.RegisterOptions{Name: "fails twice"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	schedule, err := p.Client.ScheduleClient().Create(t.Context(), client.ScheduleOptions{ID: "every second",
		Spec:   client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Second}}},
		Action: &client.ScheduleWorkflowAction{Workflow: part, TaskQueue: errands}})
	if err != nil {
		t.Fatal(err)
	}
	actions := func(ctx context.Context) int {
		d, err := schedule.Describe(ctx)
		if err != nil {
			t.Log(err)
			return 0
		}
		return d.Info.NumActions
	}
	for _, step := range []time.Duration{-300 * time.Second, 300 * time.Second, -30 * time.Second} {
		name := step.String()
		before := p.start("before "+name, time.Hour)
		proceed <- struct{}{}
		p.waits(before)
		amid := p.start("amid "+name, time.Hour)
		for id := range begun {
			if id == amid.GetID() {
				break
			}
		}
		done := actions(t.Context())
		skew.Add(int64(step / time.Second))
		after := p.start("after "+name, stepLimit)
		p.waits(before)
		p.finish(before)
		proceed <- struct{}{}
		proceed <- struct{}{}
		for _, r := range []client.WorkflowRun{amid, after} {
			p.waits(r)
			p.finish(r)
		}
		p.until("the schedule", func(ctx context.Context) bool { return actions(ctx) > done+1 })
	}
}
