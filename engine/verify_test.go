package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"acescope/sources/cluster"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/temporal/operation/example"
	"acescope/engine/temporal/replay"
)

// allCommands uses all features of workflows: side effects, concurrent local activities, a
// timer, a child, signals, updates, a query and continue-as-new.
func allCommands(ctx workflow.Context, again bool) (int, error) {
	n := 0
	if err := workflow.SetUpdateHandler(ctx, "add", func(ctx workflow.Context, by int) (int, error) {
		if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
			return 0, err
		}
		n += by
		return n, nil
	}); err != nil {
		return 0, err
	}
	if err := workflow.SetQueryHandler(ctx, "n", func() (int, error) { return n, nil }); err != nil {
		return 0, err
	}
	var drawn int
	if err := workflow.SideEffect(ctx, func(workflow.Context) any { return 3 }).Get(&drawn); err != nil {
		return 0, err
	}
	local := workflow.WithLocalActivityOptions(ctx,
		workflow.LocalActivityOptions{ScheduleToCloseTimeout: time.Minute})
	slow, quick := workflow.ExecuteLocalActivity(local, SlowActivity, 30*time.Millisecond),
		workflow.ExecuteLocalActivity(local, QuickActivity)
	var name string
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, &name)
	for _, f := range []workflow.Future{slow, quick} {
		if err := f.Get(ctx, nil); err != nil {
			return 0, err
		}
	}
	if again {
		child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: name})
		if err := workflow.ExecuteChildWorkflow(child, "Leaf").Get(ctx, nil); err != nil {
			return 0, err
		}
	}
	if err := workflow.Await(ctx, func() bool {
		return n >= 2 && workflow.AllHandlersFinished(ctx)
	}); err != nil {
		return 0, err
	}
	if again {
		return 0, workflow.NewContinueAsNewError(ctx, "Everything", false)
	}
	return n, workflow.ExecuteLocalActivity(local, QuickActivity).Get(ctx, nil)
}

// SlowActivity waits for a duration.
func SlowActivity(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// QuickActivity returns at once.
func QuickActivity() error { return nil }

func leaf(workflow.Context) error { return nil }

// TestVerifyEverything verifies runs of a real server whose code did not change: none may differ,
// also in strict mode and in any part.
func TestVerifyEverything(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), newScripted())
	h, err := example.Handlers(&recordingOutbox{})
	if err != nil {
		t.Fatal(err)
	}
	register := func(r worker.WorkflowRegistry) {
		r.RegisterWorkflowWithOptions(allCommands, workflow.RegisterOptions{Name: "Everything"})
		r.RegisterWorkflowWithOptions(leaf, workflow.RegisterOptions{Name: "Leaf"})
	}
	w := startOperationWorker(t, e, "everything", h, func(r worker.Registry) {
		register(r)
		r.RegisterActivity(SlowActivity)
		r.RegisterActivity(QuickActivity)
	})
	defer w.Stop()
	run := begin(t, e, "everything", "everything", "Everything", true)
	first := run.GetRunID()
	feed := func(runID string) {
		for i := range 2 {
			handle, err := e.Client.UpdateWorkflow(t.Context(),
				client.UpdateWorkflowOptions{WorkflowID: "everything", RunID: runID, UpdateName: "add",
					Args:         []any{1},
					WaitForStage: client.WorkflowUpdateStageCompleted})
			if err == nil {
				err = handle.Get(t.Context(), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if err := e.Client.SignalWorkflow(t.Context(), "everything", runID, "go",
					"leaf"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	feed(first)
	var second string
	eventually(t, func() error {
		d, err := e.Client.DescribeWorkflowExecution(t.Context(), "everything", "")
		if err != nil {
			return err
		}
		if second = d.GetWorkflowExecutionInfo().GetExecution().GetRunId(); second == first {
			return errors.New("it has not continued yet")
		}
		return nil
	})
	feed(second)
	var n int
	if err := e.Client.GetWorkflow(t.Context(), "everything", second).Get(t.Context(), &n); err != nil ||
		n != 2 {
		t.Fatal(n, err)
	}
	for _, runID := range []string{first, second} {
		events, err := cluster.ReadHistory(t.Context(), e.Client, e.Namespace(), "everything", runID)
		if err != nil {
			t.Fatal(err)
		}
		for _, strict := range []bool{false, true} {
			v := &replay.Verifier{Register: register, Strict: strict}
			for upTo := len(events); upTo > 3; upTo-- {
				if got := v.Verify(t.Context(), events[:upTo]); got.Outcome != replay.Deterministic {
					t.Errorf("the first %d of %d events, strict %v: %+v %+v", upTo, len(events), strict, got,
						got.Divergence)
				}
			}
		}
	}
}
