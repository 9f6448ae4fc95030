package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/histories"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/temporal/compare"
	"acescope/engine/temporal/fork"
	"acescope/engine/temporal/history"
)

// continueTimes waits a moment and continues as new several times.
func continueTimes(ctx workflow.Context, left int) error {
	if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
		return err
	}
	if left == 0 {
		return nil
	}
	return workflow.NewContinueAsNewError(ctx, continueTimes, left-1)
}

// failFirstAttempt fails at its first attempt.
func failFirstAttempt(ctx workflow.Context) error {
	if workflow.GetInfo(ctx).Attempt == 1 {
		return errors.New("the first attempt fails")
	}
	return nil
}

// noop is for a schedule.
func noop(workflow.Context) error { return nil }

// TestChains follows chains of every kind on a real server.
func TestChains(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), newScripted())
	w := worker.New(e.Client, "chains", worker.Options{})
	for _, code := range []any{continueTimes, failFirstAttempt, noop} {
		w.RegisterWorkflow(code)
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	t.Run("continued", func(t *testing.T) { continued(t, e) })
	t.Run("retried", func(t *testing.T) { retried(t, e) })
	t.Run("cron", func(t *testing.T) { scheduled(t, e) })
	t.Run("reset", func(t *testing.T) { resetAlone(t, e) })
	t.Run("reset within a chain", func(t *testing.T) { resetWithin(t, e) })
	t.Run("deleted", func(t *testing.T) { deleted(t, e) })
}

// startChain starts a workflow and waits for the end of its chain.
func startChain(t *testing.T, e *engine.Engine, id string, code any, o client.StartWorkflowOptions,
	args ...any) {
	t.Helper()
	o.ID, o.TaskQueue = id, "chains"
	run, err := e.Client.ExecuteWorkflow(t.Context(), o, code, args...)
	if err == nil {
		err = run.Get(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// chainOf reads a chain, checks that its short form and its histories agree, and returns how each
// run began.
func chainOf(t *testing.T, e *engine.Engine, id, runID string) (cluster.Chain, []string) {
	t.Helper()
	chain, err := cluster.ReadChain(t.Context(), e.Client, e.Namespace(), id, runID, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	line, err := cluster.ReadChainPosition(t.Context(), e.Client, e.Namespace(), id, runID)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(line.RunIDs, chain.RunIDs) || line.Before != chain.Before ||
		line.After != chain.Partial {
		t.Errorf("the chain is %v (%q, %q), in short %+v", chain.RunIDs, chain.Before, chain.Partial, line)
	}
	var how []string
	for i, events := range chain.Runs {
		o := history.OriginOf(events)
		if o.RunID != chain.RunIDs[i] {
			t.Errorf("the history of %s is that of %s", chain.RunIDs[i], o.RunID)
		}
		how = append(how, o.How)
	}
	return chain, how
}

func continued(t *testing.T, e *engine.Engine) {
	startChain(t, e, "hops", continueTimes, client.StartWorkflowOptions{}, 2)
	chain, how := chainOf(t, e, "hops", "")
	if fmt.Sprint(how) != "[ continue-as-new continue-as-new]" {
		t.Fatalf("%v of %v", how, chain.RunIDs)
	}
	for _, id := range chain.RunIDs[:2] {
		if again, _ := chainOf(t, e, "hops", id); !slices.Equal(again.RunIDs, chain.RunIDs) {
			t.Errorf("from %s: %v", id, again.RunIDs)
		}
	}
	d := compare.Of(histories.DiffSide(t.Context(), chain, nil), histories.DiffSide(t.Context(), chain, nil),
		compare.Options{})
	if d.Differs() || d.A.Runs != 3 || !slices.Equal(d.A.RunIDs, chain.RunIDs) {
		t.Errorf("%v of %d: %+v", d.A.RunIDs, d.A.Runs, d.First)
	}
}

func retried(t *testing.T, e *engine.Engine) {
	startChain(t, e, "again", failFirstAttempt,
		client.StartWorkflowOptions{RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Millisecond,
			MaximumAttempts: 3}})
	if chain, how := chainOf(t, e, "again", ""); fmt.Sprint(how) != "[ retry]" {
		t.Errorf("%v of %v", how, chain.RunIDs)
	}
}

func scheduled(t *testing.T, e *engine.Engine) {
	run, err := e.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "ticks",
		TaskQueue: "chains", CronSchedule: "@every 1s"}, noop)
	if err != nil {
		t.Fatal(err)
	}
	first := run.GetRunID()
	eventually(t, func() error {
		line, err := cluster.ReadChainPosition(t.Context(), e.Client, e.Namespace(), "ticks", first)
		if err == nil && len(line.RunIDs) < 3 {
			err = fmt.Errorf("runs %v", line.RunIDs)
		}
		return err
	})
	if err := e.Client.TerminateWorkflow(t.Context(), "ticks", "", "enough"); err != nil {
		t.Fatal(err)
	}
	chain, how := chainOf(t, e, "ticks", first)
	if len(how) < 3 || how[0] != "" && how[0] != history.ByCron || how[1] != history.ByCron ||
		how[2] != history.ByCron {
		t.Errorf("%v of %v", how, chain.RunIDs)
	}
}

// resetRun resets a run to the end of its first workflow task and waits for the end of the new
// run.
func resetRun(t *testing.T, e *engine.Engine, id string, chain cluster.Chain, at int) string {
	t.Helper()
	to, err := fork.ResetAt(chain.Runs[at], fork.Point{Event: 1})
	if err != nil {
		t.Fatal(err)
	}
	newest, _, err := e.Newest(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	newID, err := e.Reset(t.Context(), id, chain.RunIDs[at], to.Event, newest, "a test")
	if err == nil {
		err = e.Client.GetWorkflow(t.Context(), id, newID).Get(t.Context(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return newID
}

// resetAlone checks the links between a reset run and its original.
func resetAlone(t *testing.T, e *engine.Engine) {
	startChain(t, e, "mended", continueTimes, client.StartWorkflowOptions{}, 0)
	base, _ := chainOf(t, e, "mended", "")
	newID := resetRun(t, e, "mended", base, 0)
	chain, how := chainOf(t, e, "mended", "")
	if !slices.Equal(chain.RunIDs, []string{newID}) || how[0] != history.ByReset {
		t.Fatalf("%v of %v", how, chain.RunIDs)
	}
	show := func(runID string) histories.Lineage {
		d, err := detail.Read(t.Context(), e.Client, "mended", runID)
		if err != nil {
			t.Fatal(err)
		}
		return d.Lineage
	}
	if l := show(newID); l.Reset == nil || *l.Reset != (history.ResetFrom{RunID: base.RunIDs[0], Event: 3}) ||
		l.ResetAs != "" {
		t.Errorf("the new one: %+v", l)
	}
	if l := show(base.RunIDs[0]); l.Reset != nil || l.ResetAs != newID {
		t.Errorf("the old one: %+v", l)
	}
	// A reset of a reset refers to the first reset.
	third := resetRun(t, e, "mended", chain, 0)
	if l := show(third); l.Reset.RunID != newID {
		t.Errorf("the third: %+v", l)
	}
}

// resetWithin resets the middle of a chain: the earlier runs stay, and the chain continues from
// there.
func resetWithin(t *testing.T, e *engine.Engine) {
	startChain(t, e, "detour", continueTimes, client.StartWorkflowOptions{}, 2)
	old, _ := chainOf(t, e, "detour", "")
	newID := resetRun(t, e, "detour", old, 1)
	eventually(t, func() error {
		r, err := e.Client.DescribeWorkflowExecution(t.Context(), "detour", "")
		if s := r.GetWorkflowExecutionInfo().GetStatus(); err == nil &&
			s != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			err = errors.New(s.String())
		}
		return err
	})
	chain, how := chainOf(t, e, "detour", "")
	if len(chain.RunIDs) != 3 || chain.RunIDs[0] != old.RunIDs[0] || chain.RunIDs[1] != newID ||
		chain.RunIDs[2] == old.RunIDs[2] ||
		fmt.Sprint(how) != "[ reset continue-as-new]" {
		t.Errorf("%v of %v; it was %v", how, chain.RunIDs, old.RunIDs)
	}
	if was, _ := chainOf(t, e, "detour", old.RunIDs[2]); !slices.Equal(was.RunIDs, old.RunIDs) {
		t.Errorf("the old chain is %v, was %v", was.RunIDs, old.RunIDs)
	}
}

// deleted removes the middle of a chain, as retention does.
func deleted(t *testing.T, e *engine.Engine) {
	startChain(t, e, "forgotten", continueTimes, client.StartWorkflowOptions{}, 2)
	all, _ := chainOf(t, e, "forgotten", "")
	gone := all.RunIDs[1]
	if _, err := e.Client.WorkflowService().DeleteWorkflowExecution(t.Context(),
		&workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: e.Namespace(), WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "forgotten",
				RunId: gone}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := cluster.ReadHistory(context.Background(), e.Client, e.Namespace(), "forgotten", gone)
		if cluster.NotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %v", err)
	})
	first, _ := chainOf(t, e, "forgotten", all.RunIDs[0])
	last, _ := chainOf(t, e, "forgotten", "")
	if len(first.RunIDs) != 1 || first.Partial == "" || len(last.RunIDs) != 1 ||
		last.RunIDs[0] != all.RunIDs[2] || last.Before == "" {
		t.Errorf("from the first %v %q, from the last %v %q", first.RunIDs, first.Partial, last.RunIDs,
			last.Before)
	}
}
