package activities

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
)

// fakeServer records the signals that it receives.
type fakeServer struct {
	mu      sync.Mutex
	signals []string
	gate    func(workflowID, signal string) error
	status  map[string]enumspb.WorkflowExecutionStatus
}

func (p *fakeServer) SignalWorkflow(_ context.Context, workflowID, _, name string, arg any) error {
	if p.gate != nil {
		if err := p.gate(workflowID, name); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m, ok := arg.(session.Message); ok {
		name += " " + m.ID + " " + m.Text
	}
	p.signals = append(p.signals, workflowID+" "+name)
	return nil
}

func (p *fakeServer) SignalWithStartWorkflow(context.Context, string, string, any,
	client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	return nil, nil
}

func (p *fakeServer) TerminateWorkflow(context.Context, string, string, string, ...any) error {
	return nil
}

func (p *fakeServer) ListWorkflow(context.Context,
	*workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

func (p *fakeServer) DescribeWorkflowExecution(_ context.Context, workflowID,
	_ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	p.mu.Lock()
	status, ok := p.status[workflowID]
	p.mu.Unlock()
	if !ok {
		return nil, serviceerror.NewNotFound("gone")
	}
	if status == enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED {
		return nil, serviceerror.NewUnavailable("away")
	}
	memo, err := converter.GetDefaultDataConverter().ToPayload(run.Memo{SessionID: "ses_" + workflowID,
		Mode: run.AsyncCallback})
	if err != nil {
		return nil, err
	}
	info := &workflowpb.WorkflowExecutionInfo{Status: status}
	info.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{run.MemoKey: memo}}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
}

func newDispatch(p *fakeServer) *Dispatch {
	d := &Dispatch{Workflows: p, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	d.waiters = newWaiters(time.Minute)
	d.answers = newAnswerSender(p, d.waiters)
	return d
}

// An outage of the server is logged when it begins and when it ends, not at every check.
func TestWatchLogsOutageOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		id := runner.DispatcherID(ace.TaskQueue)
		p := &fakeServer{status: map[string]enumspb.WorkflowExecutionStatus{}}
		d := &Dispatch{Workflows: p, TaskQueue: ace.TaskQueue, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, cancel := context.WithCancel(t.Context())
		go d.Watch(ctx)
		for _, status := range []enumspb.WorkflowExecutionStatus{enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
			enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING} {
			synctest.Wait()
			p.mu.Lock()
			p.status[id] = status
			p.mu.Unlock()
			time.Sleep(5 * watchEvery)
		}
		cancel()
		synctest.Wait()
		text := log.String()
		if strings.Count(text, "\n") != 2 || strings.Count(text, "cannot be checked; retrying\" error=away") != 1 ||
			strings.Count(text, "can be checked again") != 1 {
			t.Errorf("%s", text)
		}
	})
}

func claim(run string, n int64) runner.Answer {
	return runner.Answer{RunID: run, Execution: "x", Claimed: &runner.Claim{Number: n}}
}

// TestNotifyRuns checks that a slow delivery continues in the background and happens once, and that
// closed runs are reported.
func TestNotifyRuns(t *testing.T) {
	open := make(chan struct{})
	p := &fakeServer{gate: func(id, _ string) error {
		switch id {
		case "run/slow":
			<-open
		case "run/ended":
			return serviceerror.NewNotFound("workflow execution already completed")
		}
		return nil
	}}
	d := newDispatch(p)
	answers := runner.Answers{claim("slow", 1), {RunID: "slow", Execution: "x", Lost: &runner.Lost{Claim: 1}},
		claim("ended", 2), claim("fine", 3)}
	for range 2 {
		told, err := d.notifyRuns(t.Context(), answers)
		if err != nil || !slices.Equal(told.Ended, []string{"ended"}) ||
			!slices.Equal(told.Later, []string{"slow"}) {
			t.Fatalf("%+v, %v", told, err)
		}
	}
	close(open)
	for {
		told, err := d.notifyRuns(t.Context(), answers[:2])
		if err != nil || told.Ended != nil {
			t.Fatalf("%+v, %v", told, err)
		}
		if told.Later == nil {
			break
		}
	}
	if want := []string{"run/fine claimed", "run/slow claimed",
		"run/slow runner_lost"}; !slices.Equal(p.signals, want) {
		t.Errorf("%v, want %v", p.signals, want)
	}
}

// TestNotifyRunsAgain checks that a failed delivery is retried.
func TestNotifyRunsAgain(t *testing.T) {
	p, tries := &fakeServer{}, 0
	p.gate = func(string, string) error {
		if tries++; tries < 3 {
			return serviceerror.NewUnavailable("away")
		}
		return nil
	}
	d := newDispatch(p)
	for try := range 3 {
		told, err := d.notifyRuns(t.Context(), runner.Answers{claim("a", 1)})
		if err != nil || (told.Later == nil) != (try == 2) {
			t.Errorf("try %d: %+v, %v", try, told, err)
		}
	}
}

// TestCheckRuns checks which runs are found closed and which parents are notified.
func TestCheckRuns(t *testing.T) {
	p := &fakeServer{status: map[string]enumspb.WorkflowExecutionStatus{
		"run/runs":   enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		"run/done":   enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
		"run/killed": enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		"run/late":   enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
		"run/orphan": enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		"run/away":   enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED,
		"run/deaf":   enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
	}}
	p.gate = func(id, _ string) error {
		if id == "session/deaf" {
			return serviceerror.NewUnavailable("away")
		}
		return nil
	}
	var in runner.CheckInput
	for _, id := range []string{"runs", "done", "killed", "late", "orphan", "away", "deaf", "deleted",
		"deleted and deaf"} {
		in.Runs = append(in.Runs, runner.Request{RunID: id, Name: "crawl",
			Parent: map[string]string{"killed": "p", "late": "p", "done": "p", "deaf": "deaf",
				"deleted and deaf": "deaf"}[id]})
	}
	got, err := newDispatch(p).checkRuns(t.Context(), in)
	want := map[string]ace.Status{"done": ace.Completed, "killed": ace.Failed, "late": ace.TimedOut,
		"orphan": ace.Failed, "deleted": ace.Failed}
	if err != nil || fmt.Sprint(got.Ended) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", got, err)
	}
	slices.Sort(p.signals)
	var callbacks []string
	for _, end := range [][2]string{{"killed", "was terminated"}, {"late", "ran out of time"}} {
		callbacks = append(callbacks, fmt.Sprintf(
			"session/p deliver run.%[1]s <agent-callback session=\"ses_run/%[1]s\" run=\"%[1]s\" agent=\"crawl\" status=\"failed\">\nterminated: its workflow %[2]s\n</agent-callback>", end[0], end[1]))
	}
	if !slices.Equal(p.signals, callbacks) {
		t.Errorf("%q", p.signals)
	}
}

// TestNoticeBatcher checks that the notices of many workflows become few signals, keep the order of
// each workflow, and that each workflow learns about the delivery.
func TestNoticeBatcher(t *testing.T) {
	var sent []runner.Notices
	away := errors.New("away")
	refuse := true
	g := newNoticeBatcher(func(_ context.Context, n runner.Notices) error {
		sent = append(sent, n) // calls are sequential
		if refuse = !refuse; refuse {
			return away
		}
		return nil
	}, time.Millisecond)
	var all sync.WaitGroup
	const senders, count = 50, 20
	for s := range senders {
		all.Go(func() {
			for w := range count {
				n := runner.Notices{{Kind: runner.Release, Run: fmt.Sprint(s), Claim: int64(w)}}
				for g.deliver(t.Context(), n) != nil {
				}
			}
		})
	}
	all.Wait()
	next := make([]int64, senders)
	for _, batch := range sent {
		for _, n := range batch {
			var s int
			fmt.Sscan(n.Run, &s)
			if n.Claim > next[s] || n.Claim < next[s]-1 {
				t.Fatalf("sender %d: notice %d after %d", s, n.Claim, next[s])
			}
			next[s] = n.Claim + 1
		}
	}
	if len(sent) > senders*count {
		t.Errorf("%d signals of %d notices", len(sent), senders*count)
	}
	for s, n := range next {
		if n != count {
			t.Errorf("sender %d: received %d notices", s, n)
		}
	}
}

// TestNoticeBatcherBounds checks that a signal is bounded and omits the notices of workflows that no
// longer wait.
func TestNoticeBatcherBounds(t *testing.T) {
	hold, sizes := make(chan struct{}), []int{}
	g := newNoticeBatcher(func(_ context.Context, n runner.Notices) error {
		<-hold
		sizes = append(sizes, len(n))
		return nil
	}, 0)
	gone, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	send := func(ctx context.Context, n int) {
		all.Go(func() { _ = g.deliver(ctx, make(runner.Notices, n)) })
	}
	send(t.Context(), 1)
	for g.waitingCount() != 0 { // the first is being sent
		time.Sleep(time.Millisecond)
	}
	send(gone, 7)
	for g.waitingCount() != 1 {
		time.Sleep(time.Millisecond)
	}
	leave()
	for range 3 {
		send(t.Context(), 200)
	}
	for g.waitingCount() != 4 {
		time.Sleep(time.Millisecond)
	}
	close(hold)
	all.Wait()
	if !slices.Equal(sizes, []int{1, 400, 200}) {
		t.Errorf("signals of %v notices", sizes)
	}
}

func (g *noticeBatcher) waitingCount() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.busy {
		return -1
	}
	return len(g.waiting)
}

// newDispatchWith returns a Dispatch that passes notices to a function of the test.
func newDispatchWith(p *fakeServer, dispatcher func(runner.Notices) error) *Dispatch {
	d := newDispatch(p)
	d.notices = newNoticeBatcher(func(_ context.Context, n runner.Notices) error { return dispatcher(n) }, 0)
	d.background = newBackground(d.notices.deliver, d.Logger)
	return d
}

func request(run string, try int) runner.Notices {
	return runner.Notices{{Kind: runner.Enqueue, Run: run,
		Request: &runner.Request{RunID: run, Execution: "x", Try: try}}}
}

func answerTo(run string, try int, number int64) runner.Answer {
	a := claim(run, number)
	a.Claimed.Try = try
	return a
}

// TestTellAnswered checks that a request returns its answer without a signal, also when it is
// repeated, and that other answers are signals.
func TestTellAnswered(t *testing.T) {
	p := &fakeServer{}
	var d *Dispatch
	d = newDispatchWith(p, func(n runner.Notices) error {
		told, err := d.notifyRuns(t.Context(), runner.Answers{answerTo("a", 1, 7), answerTo("b", 1, 8)})
		if err != nil || told.Ended != nil || told.Later != nil {
			t.Errorf("%+v, %v", told, err)
		}
		return nil
	})
	for range 2 { // the first workflow task was lost
		got, err := d.tell(t.Context(), request("a", 1))
		if err != nil || got == nil || got.Claimed == nil || got.Claimed.Number != 7 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if len(p.signals) != 1 || p.signals[0] != "run/b claimed" {
		t.Errorf("%v", p.signals)
	}
}

// TestTellLate checks that a run that waited in vain receives a signal, that other runs then do not
// wait, and that they wait again after the dispatcher answered in this process.
func TestTellLate(t *testing.T) {
	p := &fakeServer{}
	var d *Dispatch
	var answers runner.Answers
	d = newDispatchWith(p, func(runner.Notices) error {
		if answers == nil {
			return nil
		}
		_, err := d.notifyRuns(t.Context(), answers)
		return err
	})
	d.waiters.timeout = time.Millisecond
	if got, err := d.tell(t.Context(), request("a", 1)); got != nil || err != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	d.waiters.timeout = time.Hour
	if got, err := d.tell(t.Context(), request("b", 1)); got != nil || err != nil { // must not wait
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := d.notifyRuns(t.Context(),
		runner.Answers{answerTo("a", 1, 1), answerTo("b", 1, 2)}); err != nil || len(p.signals) != 2 {
		t.Errorf("%v, %v", p.signals, err)
	}
	answers = runner.Answers{answerTo("c", 2, 4)} // to the second attempt
	if got, err := d.tell(t.Context(), request("c", 2)); got == nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if len(d.waiters.byKey) > 0 {
		t.Errorf("%d waiters left", len(d.waiters.byKey))
	}
}

// TestTellBounds checks the bound of waiters and that canceled ones are removed.
func TestTellBounds(t *testing.T) {
	w := newWaiters(time.Hour)
	var all []*waiter
	for i := range maxWaiters + 1 {
		one := w.add(runner.Request{RunID: "run", Execution: "x", Try: i})
		if (one == nil) != (i == maxWaiters) {
			t.Fatalf("number %d: %v", i, one)
		}
		all = append(all, one)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, one := range all {
		if w.wait(ctx, one, true) != nil {
			t.Error("unexpected answer")
		}
	}
	if len(w.byKey) > 0 || w.inVain {
		t.Errorf("%d waiters left; in vain: %v", len(w.byKey), w.inVain)
	}
}

// TestTellAnsweredBefore checks that an answer counts even if the delivery of the request failed.
func TestTellAnsweredBefore(t *testing.T) {
	p := &fakeServer{}
	var d *Dispatch
	d = newDispatchWith(p, func(runner.Notices) error {
		_, _ = d.notifyRuns(t.Context(), runner.Answers{answerTo("a", 1, 1)})
		return errors.New("connection lost")
	})
	if got, err := d.tell(t.Context(), request("a", 1)); got == nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := d.tell(t.Context(), request("b", 1)); got != nil || err == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestBackground checks that the end of a run does not wait for the dispatcher, that the notice is
// delivered, and that Close waits for that.
func TestBackground(t *testing.T) {
	open := make(chan struct{})
	var received atomic.Int64
	d := newDispatchWith(&fakeServer{}, func(n runner.Notices) error {
		<-open
		received.Add(int64(len(n)))
		return nil
	})
	const runs = backgroundMost
	for range runs {
		if got, err := d.tell(t.Context(),
			runner.Notices{{Kind: runner.Release, Run: "a", Claim: 1}}); got != nil || err != nil {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if d.background.add(nil) {
		t.Error("more than backgroundMost notices accepted")
	}
	close(open)
	d.background.close(time.Hour)
	if received.Load() != runs {
		t.Errorf("received %d of %d", received.Load(), runs)
	}
	if d.background.add(nil) {
		t.Error("notices accepted after close")
	}
	blocked := newBackground(func(ctx context.Context, _ runner.Notices) error {
		<-ctx.Done()
		return ctx.Err()
	}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	blocked.add(runner.Notices{{Kind: runner.Release, Run: "a"}})
	blocked.close(0)
	blocked.all.Wait()
}
