package engine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/runner"
)

// notifyDispatcher signals the dispatcher like the activity of runs.
func (env *dispatchEnv) notifyDispatcher(notices runner.Notices) {
	env.t.Helper()
	_, err := env.Client.SignalWithStartWorkflow(env.t.Context(), runner.DispatcherID(ace.TaskQueue),
		runner.SignalNotices, notices,
		client.StartWorkflowOptions{ID: runner.DispatcherID(ace.TaskQueue), TaskQueue: ace.TaskQueue},
		runner.DispatcherWorkflow)
	if err != nil {
		env.t.Error(err)
	}
}

func enqueueNotice(run string, tag string) runner.Notice {
	return runner.Notice{Kind: runner.Enqueue, Run: run,
		Request: &runner.Request{RunID: run, Execution: "00000000-0000-4000-8000-000000000000",
			Requirements: runner.Requirements{ExecutorType: runner.Deterministic, Tags: []string{tag}},
			Deadline:     time.Now().Add(time.Hour), Try: 1,
			Parent: "ses_0123456789ab", Name: "crawler"}}
}

// TestDispatcherContinues keeps 10,000 runs waiting for 200 unsuitable runners while other runs
// come and go concurrently. The dispatcher continues as new repeatedly and loses nothing.
func TestDispatcherContinues(t *testing.T) {
	t.Parallel()
	env := newDispatchEnv(t, openWith(t, engine.Options{DataDir: t.TempDir(), NoRunner: true}))
	const sides, each, batch, rounds = 8, 1250, 250, 12
	var runners runner.Notices
	for i := range 200 {
		id := fmt.Sprintf("lnch_%012x", i)
		runners = append(runners, runner.Notice{Kind: runner.Registered, Runner: id, Epoch: 1,
			Queue: "runner." + id + ".1",
			Registration: &runner.Registration{ID: id, Token: id,
				Capabilities: runner.Capabilities{Hostname: id, ProjectDir: "/", Slots: 2,
					ExecutorTypes: []string{runner.Deterministic}, Tags: []string{fmt.Sprint("tag-", i)}}}})
	}
	env.notifyDispatcher(runners)
	name := func(side, i int) string { return fmt.Sprintf("run-%d-%05d", side, i) }
	enqueue := func(side, from, n int) (notices runner.Notices) {
		for i := from; i < from+n; i++ {
			notices = append(notices, enqueueNotice(name(side, i), fmt.Sprint("other-", i%50)))
		}
		return notices
	}
	atOnce := func(fn func(side int)) {
		var all sync.WaitGroup
		for side := range sides {
			all.Go(func() { fn(side) })
		}
		all.Wait()
	}
	oldest := func(i int) func(runner.View) bool {
		return func(v runner.View) bool {
			return v.Waiting == sides*each && v.Pending[0].RunID[len("run-0-"):] >= fmt.Sprintf("%05d", i)
		}
	}
	atOnce(func(side int) {
		for i := 0; i < each; i += batch {
			env.notifyDispatcher(enqueue(side, i, batch))
		}
	})
	for round := range rounds { // the oldest runs withdraw and new ones arrive
		atOnce(func(side int) {
			for i := round * batch; i < (round+1)*batch; i += batch / 5 {
				var notices runner.Notices
				for k := range batch / 5 {
					notices = append(notices, runner.Notice{Kind: runner.Withdraw, Run: name(side, i+k)})
				}
				env.notifyDispatcher(append(notices, enqueue(side, each+i, batch/5)...))
			}
		})
		env.waitView(oldest((round + 1) * batch))
	}
	v := env.waitView(oldest(rounds * batch))
	if len(v.Runners) != 200 || len(v.Queues) != 50 || v.Runs < 4 {
		t.Errorf("%d runners, %d queues, run %d", len(v.Runners), len(v.Queues), v.Runs)
	}
	env.startRun("last", tags("last"))
	env.startRunner("last", withTags("last"))
	env.waitClaim("last", "last")
	env.finishRun("last")
	env.checkRunLimits(v.Runs)
}

// checkRunLimits checks that no run of the dispatcher came near a limit.
func (env *dispatchEnv) checkRunLimits(runs int) {
	env.t.Helper()
	id := ""
	for seen := 0; ; seen++ {
		d, err := env.Client.DescribeWorkflowExecution(env.t.Context(), runner.DispatcherID(ace.TaskQueue),
			id)
		if err != nil {
			env.t.Fatal(err)
		}
		info := d.GetWorkflowExecutionInfo()
		env.t.Logf("run %d from the end: %d events, %d bytes, %s", seen, info.GetHistoryLength(),
			info.GetHistorySizeBytes(), info.GetStatus())
		if info.GetHistoryLength() > 10_000 || info.GetHistorySizeBytes() > 20<<20 {
			env.t.Errorf("%d events, %d bytes", info.GetHistoryLength(), info.GetHistorySizeBytes())
		}
		first := env.Client.GetWorkflowHistory(env.t.Context(), runner.DispatcherID(ace.TaskQueue),
			info.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		event, err := first.Next()
		if err != nil {
			env.t.Fatal(err)
		}
		started := event.GetWorkflowExecutionStartedEventAttributes()
		if n := len(started.GetInput().GetPayloads()); n > 0 {
			if size := len(started.GetInput().GetPayloads()[0].GetData()); size > 1_500_000 {
				env.t.Errorf("carried %d bytes", size)
			} else {
				env.t.Logf("carried %d bytes", size)
			}
		}
		if id = started.GetContinuedExecutionRunId(); id == "" {
			if seen+1 < runs {
				env.t.Errorf("%d runs of %d", seen+1, runs)
			}
			return
		}
	}
}
