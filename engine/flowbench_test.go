//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine"
	"acescope/engine/flow"
)

const (
	flowActions    = 100
	flowIterations = 10_000
	nothing        = "nothing" // an activity
	nothingQueue   = "bench"
	plainQueue     = "plain" // of the workflow, because a flow's activity is on another queue too
)

// hundredActions is the workflow of a flow of 100 actions in plain Go.
func hundredActions(ctx workflow.Context) (int, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: nothingQueue,
		StartToCloseTimeout: time.Minute})
	sum := 0
	for i := range flowActions {
		var n int
		if err := workflow.ExecuteActivity(ctx, nothing, i).Get(ctx, &n); err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// flowOf returns the input of a flow with one step "sum" of further fields.
func flowOf(steps string) flow.Input {
	return flow.Input{Name: "bench", Inputs: []byte("{}"),
		Source: flow.Source{Main: "bench.yaml", Files: map[string]string{
			"bench.yaml": "flow: bench\noutputs: {sum: \"${{ vars.sum }}\"}\nsteps:\n  - set: {sum: 0}\n" +
				steps,
		}}}
}

func actionsFlow() flow.Input {
	steps := ""
	for i := range flowActions {
		steps += fmt.Sprintf("  - {id: a%d, activity: nothing, queue: bench, input: %d}\n", i, i)
	}
	return flowOf(steps)
}

func serveNothing(b *testing.B, e *engine.Engine) {
	b.Helper()
	w := worker.New(e.Client, nothingQueue, worker.Options{})
	w.RegisterActivityWithOptions(func(n int) (int, error) { return n, nil },
		activity.RegisterOptions{Name: nothing})
	plain := worker.New(e.Client, plainQueue, worker.Options{})
	plain.RegisterWorkflow(hundredActions)
	for _, w := range []worker.Worker{w, plain} {
		if err := w.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(w.Stop)
	}
}

// events returns the length of a run's history.
func events(b *testing.B, e *engine.Engine, id, runID string) int64 {
	b.Helper()
	d, err := e.Client.DescribeWorkflowExecution(b.Context(), id, runID)
	if err != nil {
		b.Fatal(err)
	}
	return d.GetWorkflowExecutionInfo().GetHistoryLength()
}

// BenchmarkFlow compares a flow of 100 actions with the same workflow in Go.
func BenchmarkFlow(b *testing.B) {
	e := openBench(b)
	serveNothing(b, e)
	var n atomic.Int64
	b.Run("ours", func(b *testing.B) {
		var length int64
		for b.Loop() {
			id := fmt.Sprint("f", n.Add(1))
			runID, err := engine.StartFlow(b.Context(), e, id, actionsFlow())
			if err != nil {
				b.Fatal(err)
			}
			if err := e.Client.GetWorkflow(b.Context(), flow.IDPrefix+id, runID).Get(b.Context(),
				nil); err != nil {
				b.Fatal(err)
			}
			length = events(b, e, flow.IDPrefix+id, runID)
		}
		b.ReportMetric(float64(length), "events")
	})
	b.Run("plain", func(b *testing.B) {
		var length int64
		for b.Loop() {
			run, err := e.Client.ExecuteWorkflow(b.Context(),
				client.StartWorkflowOptions{ID: fmt.Sprint("p", n.Add(1)),
					TaskQueue: plainQueue}, hundredActions)
			if err != nil {
				b.Fatal(err)
			}
			if err := run.Get(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
			length = events(b, e, run.GetID(), run.GetRunID())
		}
		b.ReportMetric(float64(length), "events")
	})
}

// BenchmarkFlowLoop runs a flow of 10,000 iterations and reports the longest pause between two of them when
// the run continues as new.
func BenchmarkFlowLoop(b *testing.B) {
	e := openBench(b)
	serveNothing(b, e)
	in := flowOf(fmt.Sprintf(
		"  - id: loop\n    repeat: %d\n    steps: [{id: a, activity: nothing, queue: bench, input: 1}]\n",
		flowIterations))
	var longest time.Duration
	var runs int
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint("loop", i)
		runID, err := engine.StartFlow(b.Context(), e, id, in)
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Client.GetWorkflow(b.Context(), flow.IDPrefix+id, runID).Get(b.Context(),
			nil); err != nil {
			b.Fatal(err)
		}
		longest, runs = longestPause(b, e.Client, flow.IDPrefix+id, runID)
	}
	b.ReportMetric(float64(longest.Milliseconds()), "pause-ms")
	b.ReportMetric(float64(runs), "runs")
}

// longestPause returns the longest time from the last result of a run to the first activity of the next, and
// the number of runs in the chain.
func longestPause(b *testing.B, c client.Client, id, runID string) (longest time.Duration, runs int) {
	b.Helper()
	var last time.Time
	for runID != "" {
		runs++
		first := true
		events := c.GetWorkflowHistory(context.Background(), id, runID, false,
			enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		next := ""
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				b.Fatal(err)
			}
			switch e.GetEventType() {
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
				if first && !last.IsZero() {
					longest = max(longest, e.GetEventTime().AsTime().Sub(last))
				}
				first = false
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
				last = e.GetEventTime().AsTime()
			}
			next = e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		}
		runID = next
	}
	return longest, runs
}
