package activity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"acescope/engine/ace"
	"acescope/engine/run"
	"acescope/engine/runner"
	"acescope/engine/session"
)

// post is a server that keeps what it is sent.
type post struct {
	mu      sync.Mutex
	signals []string
	gate    func(workflowID, signal string) error
	status  map[string]enumspb.WorkflowExecutionStatus
}

func (p *post) SignalWorkflow(_ context.Context, workflowID, _, name string, arg any) error {
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

func (p *post) SignalWithStartWorkflow(context.Context, string, string, any, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	return nil, nil
}

func (p *post) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

func (p *post) DescribeWorkflowExecution(_ context.Context, workflowID, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	status, ok := p.status[workflowID]
	if !ok {
		return nil, serviceerror.NewNotFound("gone")
	}
	if status == enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED {
		return nil, serviceerror.NewUnavailable("away")
	}
	memo, err := converter.GetDefaultDataConverter().ToPayload(run.Listed{SessionID: "ses_" + workflowID, Mode: run.AsyncCallback})
	if err != nil {
		return nil, err
	}
	info := &workflowpb.WorkflowExecutionInfo{Status: status}
	info.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{run.MemoRun: memo}}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
}

func newDispatch(p *post) *Dispatch {
	d := &Dispatch{Workflows: p, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	d.waiting = newWaiting(time.Minute)
	d.sender = newSender(p, d.waiting)
	return d
}

func claim(run string, n int64) runner.Answer {
	return runner.Answer{RunID: run, Execution: "x", Claimed: &runner.Claim{Number: n}}
}

// TestTellRuns holds that a run that does not answer is not waited for, that it is told in the
// end all the same, once, and that those that have ended are named.
func TestTellRuns(t *testing.T) {
	open := make(chan struct{})
	p := &post{gate: func(id, _ string) error {
		switch id {
		case "run/slow":
			<-open
		case "run/ended":
			return serviceerror.NewNotFound("workflow execution already completed")
		}
		return nil
	}}
	d := newDispatch(p)
	answers := runner.Answers{claim("slow", 1), {RunID: "slow", Execution: "x", Lost: &runner.Lost{Claim: 1}}, claim("ended", 2), claim("fine", 3)}
	for range 2 {
		told, err := d.tellRuns(t.Context(), answers)
		if err != nil || !slices.Equal(told.Ended, []string{"ended"}) || !slices.Equal(told.Later, []string{"slow"}) {
			t.Fatalf("%+v, %v", told, err)
		}
	}
	close(open)
	for {
		told, err := d.tellRuns(t.Context(), answers[:2])
		if err != nil || told.Ended != nil {
			t.Fatalf("%+v, %v", told, err)
		}
		if told.Later == nil {
			break
		}
	}
	if want := []string{"run/fine claimed", "run/slow claimed", "run/slow runner_lost"}; !slices.Equal(p.signals, want) {
		t.Errorf("%v in place of %v", p.signals, want)
	}
}

// TestTellRunsAgain holds that a run that could not be told is tried anew.
func TestTellRunsAgain(t *testing.T) {
	p, tries := &post{}, 0
	p.gate = func(string, string) error {
		if tries++; tries < 3 {
			return serviceerror.NewUnavailable("away")
		}
		return nil
	}
	d := newDispatch(p)
	for try := range 3 {
		told, err := d.tellRuns(t.Context(), runner.Answers{claim("a", 1)})
		if err != nil || (told.Later == nil) != (try == 2) {
			t.Errorf("try %d: %+v, %v", try, told, err)
		}
	}
}

// TestCheckRuns holds which runs are found to have ended, and whose parents are told.
func TestCheckRuns(t *testing.T) {
	p := &post{status: map[string]enumspb.WorkflowExecutionStatus{
		"run/runs": enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, "run/done": enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
		"run/killed": enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, "run/late": enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
		"run/orphan": enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, "run/away": enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED,
		"run/deaf": enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
	}}
	p.gate = func(id, _ string) error {
		if id == "session/deaf" {
			return serviceerror.NewUnavailable("away")
		}
		return nil
	}
	var in runner.Check
	for _, id := range []string{"runs", "done", "killed", "late", "orphan", "away", "deaf"} {
		in.Runs = append(in.Runs, runner.Request{RunID: id, Name: "crawl", Parent: map[string]string{"killed": "p", "late": "p", "done": "p", "deaf": "deaf"}[id]})
	}
	got, err := newDispatch(p).checkRuns(t.Context(), in)
	want := map[string]ace.ExitStatus{"done": ace.Success, "killed": ace.Failed, "late": ace.Timeout, "orphan": ace.Failed}
	if err != nil || fmt.Sprint(got.Ended) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", got, err)
	}
	slices.Sort(p.signals)
	var said []string
	for _, end := range [][2]string{{"killed", "was terminated"}, {"late", "ran out of time"}} {
		said = append(said, fmt.Sprintf("session/p deliver run.%[1]s <agent-callback session=\"ses_run/%[1]s\" run=\"%[1]s\" agent=\"crawl\" status=\"failed\">\nterminated: its workflow %[2]s\n</agent-callback>", end[0], end[1]))
	}
	if !slices.Equal(p.signals, said) {
		t.Errorf("%q", p.signals)
	}
}

// TestGather holds that what many say becomes few signals, each in the order in which its
// speaker said it, and that everybody hears whether he was heard.
func TestGather(t *testing.T) {
	var sent []runner.Notices
	away := errors.New("away")
	refuse := true
	g := newGather(func(_ context.Context, n runner.Notices) error {
		sent = append(sent, n) // one at a time
		if refuse = !refuse; refuse {
			return away
		}
		return nil
	}, time.Millisecond)
	var all sync.WaitGroup
	const speakers, words = 50, 20
	for s := range speakers {
		all.Go(func() {
			for w := range words {
				n := runner.Notices{{Kind: runner.Release, Run: fmt.Sprint(s), Claim: int64(w)}}
				for g.tell(t.Context(), n) != nil {
				}
			}
		})
	}
	all.Wait()
	next := make([]int64, speakers)
	for _, batch := range sent {
		for _, n := range batch {
			var s int
			fmt.Sscan(n.Run, &s)
			if n.Claim > next[s] || n.Claim < next[s]-1 {
				t.Fatalf("speaker %d says %d after %d", s, n.Claim, next[s])
			}
			next[s] = n.Claim + 1
		}
	}
	if len(sent) > speakers*words {
		t.Errorf("%d signals of %d notices", len(sent), speakers*words)
	}
	for s, n := range next {
		if n != words {
			t.Errorf("speaker %d was heard up to %d", s, n)
		}
	}
}

// TestGatherBounds holds that a signal is bounded, and that who does not wait any more is left
// out.
func TestGatherBounds(t *testing.T) {
	hold, sizes := make(chan struct{}), []int{}
	g := newGather(func(_ context.Context, n runner.Notices) error {
		<-hold
		sizes = append(sizes, len(n))
		return nil
	}, 0)
	gone, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	say := func(ctx context.Context, n int) {
		all.Go(func() { _ = g.tell(ctx, make(runner.Notices, n)) })
	}
	say(t.Context(), 1)
	for g.busyWith() != 0 { // the first is under way
		time.Sleep(time.Millisecond)
	}
	say(gone, 7)
	for g.busyWith() != 1 {
		time.Sleep(time.Millisecond)
	}
	leave()
	for range 3 {
		say(t.Context(), 200)
	}
	for g.busyWith() != 4 {
		time.Sleep(time.Millisecond)
	}
	close(hold)
	all.Wait()
	if !slices.Equal(sizes, []int{1, 400, 200}) {
		t.Errorf("signals of %v notices", sizes)
	}
}

func (g *gather) busyWith() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.busy {
		return -1
	}
	return len(g.waiting)
}
