package runners

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/sources/cluster"
	"acescope/sources/feed"
	runspkg "acescope/sources/runs"
	"acescope/sources/sessions"
)

// dispatcher is a server with a dispatcher that answers, or does not.
type dispatcher struct {
	client.Client
	err  error
	view runner.View
	runs []runspkg.Run
	list error
	seen []string // queries of lists
}

type encoded struct{ v any }

func (e encoded) HasValue() bool { return true }
func (e encoded) Get(into any) error {
	data, err := json.Marshal(e.v)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func (d *dispatcher) QueryWorkflow(_ context.Context, id, _, query string, _ ...any) (converter.EncodedValue,
	error) {
	if id != runner.DispatcherID(ace.TaskQueue) || query != runner.QueryDispatcher {
		return nil, serviceerror.NewNotFound(id)
	}
	return encoded{d.view}, d.err
}

func (d *dispatcher) ListWorkflow(_ context.Context,
	r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse,
	error) {
	d.seen = append(d.seen, r.GetQuery())
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, one := range d.runs {
		memo, _ := json.Marshal(run.Memo{SessionID: one.Session, ParentSessionID: one.Parent,
			AgentName: one.Blueprint})
		out.Executions = append(out.Executions,
			&workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: one.WorkflowID, RunId: one.RunID},
				Type:      &commonpb.WorkflowType{Name: run.Workflow},
				StartTime: timestamppb.New(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)),
				Memo:      &commonpb.Memo{Fields: map[string]*commonpb.Payload{run.MemoKey: {Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: memo}}}})
	}
	return out, d.list
}

// reading returns a reader on a server, and what it published last.
func reading(fake *dispatcher) (r *runnersReader, last func() *Runners) {
	link := cluster.NewLink()
	link.Client = fake
	var value *Runners
	r = &runnersReader{link: link, update: feed.Updater(nil, func(v *Runners) { value = v })}
	return r, func() *Runners { return value }
}

// What the dispatcher said stays while it does not answer, and it is told why.
func TestDispatcherIsAsked(t *testing.T) {
	ctx := context.Background()
	fake := &dispatcher{err: serviceerror.NewNotFound("no dispatcher")}
	reader, last := reading(fake)
	reader.askDispatcher(ctx)
	if r := last(); !r.Absent || r.Err != "" || !r.Answered.IsZero() {
		t.Errorf("without one: %+v", r)
	}
	fake.err, fake.view = nil, runner.View{Counts: runner.Counts{Matched: 7},
		Runners: []runner.RunnerView{{ID: "local", Runs: []string{"b"}}}}
	reader.askDispatcher(ctx)
	answered := last()
	if answered.Absent || answered.View.Matched != 7 || answered.Answered.IsZero() {
		t.Errorf("answered: %+v", answered)
	}
	for _, err := range []error{serviceerror.NewFailedPrecondition("no poller seen for task queue recently"),
		context.DeadlineExceeded, serviceerror.NewDeadlineExceeded("late")} {
		fake.err = err
		reader.askDispatcher(ctx)
		if r := last(); !r.NoWorker || r.Err == "" || r.View.Matched != 7 ||
			!r.Answered.Equal(answered.Answered) {
			t.Errorf("after %v: %+v", err, r)
		}
	}
	fake.err = serviceerror.NewUnavailable("away")
	reader.askDispatcher(ctx)
	if r := last(); r.NoWorker || r.Err == "" {
		t.Errorf("away: %+v", r)
	}
	if answered.View.Matched != 7 || answered.Err != "" {
		t.Error("what was published was written to")
	}
}

// The runs of a runner come with those in front that it has now; those that were read stay
// when they cannot be read again.
func TestRunsOfARunner(t *testing.T) {
	ctx := context.Background()
	fake := &dispatcher{view: runner.View{Runners: []runner.RunnerView{{ID: `l"x`,
		Runs: []string{"b", "new"}}}}}
	for _, id := range []string{"a", "b", "c"} {
		fake.runs = append(fake.runs, runspkg.Run{WorkflowID: "run/" + id, RunID: id, Blueprint: "crawler",
			Session: "ses_" + id, Parent: "ses_p"})
	}
	reader, last := reading(fake)
	reader.askDispatcher(ctx)
	reader.id = `l"x`
	reader.listRuns(ctx)
	ids := func() (list []string) {
		for _, r := range last().Runs {
			list = append(list, run.IDOf(r.WorkflowID))
		}
		return list
	}
	if got := ids(); !slices.Equal(got, []string{"b", "new", "a", "c"}) {
		t.Errorf("runs %v", got)
	}
	if want := `WorkflowType = "AceRunWorkflow" AND ` + ace.AttrRunner + ` = "l\"x"`; fake.seen[0] != want {
		t.Errorf("asked %s, not %s", fake.seen[0], want)
	}
	fake.list = serviceerror.NewInvalidArgument("no such attribute")
	reader.listRuns(ctx)
	if r := last(); r.RunsErr == "" || len(r.Runs) != 4 {
		t.Errorf("after an error: %+v", r)
	}
	fake.list = nil
	runs, err := sessions.BlueprintRuns(ctx, fake)
	if err != nil || len(runs["ses_p"]) != 3 || len(runs["ses_a"]) != 1 ||
		runs["ses_a"][0].Blueprint != "crawler" {
		t.Errorf("runs by session %+v, %v", runs, err)
	}
}
