package sources

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

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
	"acescope/sources/runners"
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

func (d *dispatcher) QueryWorkflow(_ context.Context, id, _, query string, _ ...any) (converter.EncodedValue, error) {
	if id != runner.DispatcherID || query != runner.QueryDispatcher {
		return nil, serviceerror.NewNotFound(id)
	}
	return encoded{d.view}, d.err
}

func (d *dispatcher) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	d.seen = append(d.seen, r.GetQuery())
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, one := range d.runs {
		memo, _ := json.Marshal(run.Memo{SessionID: one.Session, ParentSessionID: one.Parent, AgentName: one.Blueprint})
		out.Executions = append(out.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: one.WorkflowID, RunId: one.RunID},
			Type: &commonpb.WorkflowType{Name: run.Workflow}, StartTime: timestamppb.New(simStart),
			Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{run.MemoKey: {Metadata: simJSON, Data: memo}}}})
	}
	return out, d.list
}

// What the dispatcher said stays while it does not answer, and it is told why.
func TestDispatcherIsAsked(t *testing.T) {
	ctx := context.Background()
	s := NewStore()
	fake := &dispatcher{err: serviceerror.NewNotFound("no dispatcher")}
	deps := cluster.Deps{Client: fake}
	s.askDispatcher(ctx, deps)
	if r := s.Snapshot().Runners; !r.Absent || r.Err != "" || !r.Answered.IsZero() {
		t.Errorf("without one: %+v", r)
	}
	fake.err, fake.view = nil, runner.View{Matched: 7, Runners: []runner.RunnerView{{ID: "local", Runs: []string{"b"}}}}
	s.askDispatcher(ctx, deps)
	answered := s.Snapshot().Runners
	if answered.Absent || answered.View.Matched != 7 || answered.Answered.IsZero() {
		t.Errorf("answered: %+v", answered)
	}
	for _, err := range []error{serviceerror.NewFailedPrecondition("no poller seen for task queue recently"), context.DeadlineExceeded, serviceerror.NewDeadlineExceeded("late")} {
		fake.err = err
		s.askDispatcher(ctx, deps)
		if r := s.Snapshot().Runners; !r.Deaf || r.Err == "" || r.View.Matched != 7 || !r.Answered.Equal(answered.Answered) {
			t.Errorf("after %v: %+v", err, r)
		}
	}
	fake.err = serviceerror.NewUnavailable("away")
	s.askDispatcher(ctx, deps)
	if r := s.Snapshot().Runners; r.Deaf || r.Err == "" {
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
	s := NewStore()
	fake := &dispatcher{view: runner.View{Runners: []runner.RunnerView{{ID: `l"x`, Runs: []string{"b", "new"}}}}}
	for _, id := range []string{"a", "b", "c"} {
		fake.runs = append(fake.runs, runspkg.Run{WorkflowID: "run/" + id, RunID: id, Blueprint: "crawler", Session: "ses_" + id, Parent: "ses_p"})
	}
	deps := cluster.Deps{Client: fake}
	s.askDispatcher(ctx, deps)
	s.ReadRunner(`l"x`)
	s.listRunnerRuns(ctx, deps)
	ids := func() (list []string) {
		for _, r := range s.Snapshot().Runners.Runs {
			list = append(list, runners.BlueprintRunID(r.WorkflowID))
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
	s.listRunnerRuns(ctx, deps)
	if r := s.Snapshot().Runners; r.RunsErr == "" || len(r.Runs) != 4 {
		t.Errorf("after an error: %+v", r)
	}
	fake.list = nil
	runs, err := sessions.SessionRuns(ctx, fake)
	if err != nil || len(runs["ses_p"]) != 3 || len(runs["ses_a"]) != 1 || runs["ses_a"][0].Blueprint != "crawler" {
		t.Errorf("runs by session %+v, %v", runs, err)
	}
}
