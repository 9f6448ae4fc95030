package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine"
	"acescope/engine/ace"
	enginerun "acescope/engine/tasks/run"
	enginerunner "acescope/engine/tasks/runner"
)

const (
	// dispatchDemands is how many different things the runs demand.
	dispatchDemands = 20
	// dispatchSignal is how many notices go into one signal, and dispatchEnds how many of those
	// that a run has ended.
	dispatchSignal = 500
	dispatchEnds   = 20
	// nobodyQueue is a task queue that nobody serves: workflows on it take signals, and that is
	// all that runs have to do here.
	nobodyQueue = "nobody"
)

// dispatchChild is one attempt of the section dispatch.
func dispatchChild(ctx context.Context, s spec) error {
	var m dispatchMark
	if err := decide(&m, s.Tasks); err != nil {
		return err
	}
	if err := dispatchOnServer(ctx, s, &m); err != nil {
		return err
	}
	return tell(m)
}

// dispatchID is a run's id. Ids have nothing in common, as those of real runs, so that what is
// carried does not compress better than theirs.
func dispatchID(n int) string { return fmt.Sprintf("run_%012x", mixed(n)) }

func mixed(n int) uint64 { return uint64(n+1) * 0x9e3779b97f4a7c15 >> 16 }

// dispatchRegistered and dispatchAsks are what runners and runs say. The first runs get the
// runners; those that come later wait.
func dispatchRegistered(n int) enginerunner.Notice {
	id := fmt.Sprintf("lnch_%012d", n)
	return enginerunner.Notice{Kind: enginerunner.Registered, Runner: id, Epoch: 1, Queue: "runner." + id + ".1", Registration: &enginerunner.Registration{
		ID: id, Token: "bench", Capabilities: enginerunner.Capabilities{Hostname: fmt.Sprint("host-", n), ProjectDir: "/srv", Slots: 1,
			ExecutorTypes: []string{enginerunner.Deterministic}, Tags: []string{"linux", fmt.Sprint("tag-", n%dispatchDemands)}}}}
}

func dispatchAsks(n int, execution string, now time.Time) enginerunner.Notice {
	return enginerunner.Notice{Kind: enginerunner.Enqueue, Run: dispatchID(n), Request: &enginerunner.Request{RunID: dispatchID(n), Try: 1, Name: "crawler",
		Execution: execution, Asked: now, Deadline: now.Add(time.Hour),
		Requirements: enginerunner.Requirements{ExecutorType: enginerunner.Deterministic, Tags: []string{fmt.Sprint("tag-", n%dispatchDemands)}}}}
}

// dispatchExecution looks like the run id of a workflow.
func dispatchExecution(n int) string {
	return fmt.Sprintf("%08x-%04x-7%03x-8%03x-%012x", mixed(n)>>8, n&0xffff, mixed(n)&0xfff, mixed(n)>>4&0xfff, mixed(n*7+3))
}

// dispatchEnded says that a run has ended, which gives its runner to the next one.
func dispatchEnded(n int) enginerunner.Notice {
	return enginerunner.Notice{Kind: enginerunner.Withdraw, Run: dispatchID(n)}
}

// decide measures decisions without a server: a run ends, and one more asks.
func decide(m *dispatchMark, pending int) error {
	t, now := enginerunner.NewTable(), time.Now().UTC()
	for n := range dispatchRunners {
		t.Apply(dispatchRegistered(n), now)
	}
	for n := range dispatchRunners + pending {
		t.Apply(dispatchAsks(n, dispatchExecution(n), now), now)
	}
	if got := len(t.Match(now)); got != dispatchRunners {
		return fmt.Errorf("%d runs were given to %d runners", got, dispatchRunners)
	}
	var took series
	decision := func(n enginerunner.Notice) int {
		begin := time.Now()
		t.Apply(n, now)
		got := len(t.Match(now))
		took = append(took, float64(time.Since(begin).Nanoseconds())/1000)
		return got
	}
	for n := range pending {
		if decision(dispatchEnded(n)) != 1 {
			return fmt.Errorf("nobody got the runner of run %d", n)
		}
		last := dispatchRunners + pending + n
		decision(dispatchAsks(last, dispatchExecution(last), now))
	}
	m.P50, m.P99 = took.percentile(50), took.percentile(99)
	begin := time.Now()
	data, err := t.Carry(1, nil)
	if err != nil {
		return err
	}
	_, _, err = enginerunner.Restore(data)
	m.StartOver, m.CarriedMB = millis(time.Since(begin)), float64(len(data))/(1<<20)
	return err
}

// dispatchOnServer fills the dispatcher of a server, and lets runs end and others follow.
func dispatchOnServer(ctx context.Context, s spec, m *dispatchMark) (err error) {
	e, err := engine.Open(ctx, engine.Options{DataDir: s.Dir, Version: "bench", Worker: true, NoRunner: true})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		err = errors.Join(err, e.Close(closing))
	}()
	m.Claims = s.Events
	if err := dispatchStart(ctx, e.Client, dispatchRunners+m.Claims); err != nil {
		return err
	}
	var all enginerunner.Notices
	for n := range dispatchRunners {
		all = append(all, dispatchRegistered(n))
	}
	now := time.Now().UTC()
	for n := range dispatchRunners + s.Tasks {
		all = append(all, dispatchAsks(n, "", now)) // whichever execution is open
	}
	for len(all) > 0 {
		n := min(len(all), dispatchSignal)
		if err := dispatchSay(ctx, e.Client, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	if err := dispatchMatched(ctx, e.Client, dispatchRunners); err != nil {
		return err
	}
	stop, err := profile(s, s.Name)
	if err != nil {
		return err
	}
	begin := time.Now()
	for n := 0; n < m.Claims; n += dispatchEnds {
		var ended enginerunner.Notices
		for i := n; i < min(n+dispatchEnds, m.Claims); i++ {
			ended = append(ended, dispatchEnded(i))
		}
		err := dispatchSay(ctx, e.Client, ended)
		if err == nil && n%dispatchRunners == 0 { // no run ends that has not begun
			err = dispatchMatched(ctx, e.Client, n+dispatchRunners)
		}
		if err != nil {
			stop()
			return err
		}
	}
	err = dispatchMatched(ctx, e.Client, dispatchRunners+m.Claims)
	m.Seconds = time.Since(begin).Seconds()
	stop()
	if err != nil {
		return err
	}
	return dispatchHistory(ctx, e.Client, m)
}

// dispatchStart starts what stands in for the runs that will be told.
func dispatchStart(ctx context.Context, c client.Client, count int) error {
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for w := range concurrency {
		wg.Go(func() {
			for n := w; n < count && ctx.Err() == nil; n += concurrency {
				o := client.StartWorkflowOptions{ID: enginerun.WorkflowID(dispatchID(n)), TaskQueue: nobodyQueue}
				if _, err := c.ExecuteWorkflow(ctx, o, "nobody"); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func dispatchSay(ctx context.Context, c client.Client, notices enginerunner.Notices) error {
	_, err := c.SignalWithStartWorkflow(ctx, enginerunner.DispatcherID, enginerunner.SignalNotices, notices,
		client.StartWorkflowOptions{ID: enginerunner.DispatcherID, TaskQueue: ace.TaskQueue}, enginerunner.DispatcherWorkflow)
	return err
}

// dispatchMatched waits until so many runs were given to runners.
func dispatchMatched(ctx context.Context, c client.Client, count int) error {
	for {
		v, err := c.QueryWorkflow(ctx, enginerunner.DispatcherID, "", enginerunner.QueryDispatcher, enginerunner.ViewOptions{})
		if err != nil {
			return err
		}
		var view enginerunner.View
		if err := v.Get(&view); err != nil {
			return err
		}
		if view.Matched >= int64(count) {
			return nil
		}
		if err := wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// dispatchHistory looks at the histories of all runs of the dispatcher.
func dispatchHistory(ctx context.Context, c client.Client, m *dispatchMark) error {
	runID, events := "", int64(0)
	for {
		d, err := c.DescribeWorkflowExecution(ctx, enginerunner.DispatcherID, runID)
		if err != nil {
			return err
		}
		info := d.GetWorkflowExecutionInfo()
		events += info.GetHistoryLength()
		m.MostEvents = max(m.MostEvents, float64(info.GetHistoryLength()))
		m.MostMB = max(m.MostMB, float64(info.GetHistorySizeBytes())/(1<<20))
		if runID, err = continuedFrom(ctx, c, info.GetExecution().GetRunId()); err != nil {
			return err
		}
		if runID == "" {
			m.EventsClaim = float64(events) / float64(dispatchRunners+m.Claims)
			return nil
		}
		m.Continued++
	}
}

// continuedFrom is the run that continued as this one, "" for none.
func continuedFrom(ctx context.Context, c client.Client, runID string) (string, error) {
	got, err := c.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{Namespace: ace.DefaultNamespace,
		Execution: &commonpb.WorkflowExecution{WorkflowId: enginerunner.DispatcherID, RunId: runID}, MaximumPageSize: 1})
	if err != nil {
		return "", err
	}
	for _, event := range got.GetHistory().GetEvents() {
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED {
			return event.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(), nil
		}
	}
	return "", fmt.Errorf("run %s of the dispatcher has no first event", runID)
}
