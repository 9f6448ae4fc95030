package experiments

import (
	"context"
	"iter"
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
	"acescope/engine/learning/playbook"
	"acescope/engine/store/bucket"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// merge adds two bullets to a new branch.
func merge(t *testing.T, books *playbook.Store, branch string) {
	t.Helper()
	if _, err := books.Start(t.Context(), branch, ""); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"calc-00001", "calc-00002"} {
		_, err := books.Merge(t.Context(), playbook.Version{Source: playbook.Source{Branch: branch}, DeltaID: id,
			Operations: []ace.Operation{{Type: ace.OpAdd, Section: "calc", Content: "a rule about " + id}}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestForeignBullets checks that the list takes the number of bullets of a foreign experiment from the branch
// of its name, unless it is known.
func TestForeignBullets(t *testing.T) {
	books, err := playbook.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	merge(t, books, "foreign")
	merge(t, books, "own")
	named := func(name, note string, bullets int) Experiment {
		return Experiment{Run: runs.Run{WorkflowID: ace.ExperimentIDPrefix + name}, Note: note,
			Progress: &ace.ExperimentProgress{Bullets: bullets}}
	}
	list := []Experiment{named("foreign", "tasks only", 0), named("foreign", "tasks only", 7),
		named("own", "", 0), named("missing", "tasks only", 0), {Note: "tasks only"}}
	syncs, published := 0, list[0].Progress
	CountBullets(books, list, func() error { syncs++; return nil })
	for i, want := range []int{2, 7, 0, 0} {
		if got := list[i].Progress.Bullets; got != want {
			t.Errorf("experiment %d has %d bullets, want %d", i+1, got, want)
		}
	}
	if syncs != 1 || published.Bullets != 0 {
		t.Errorf("%d calls of sync, and the progress has changed to %d bullets", syncs, published.Bullets)
	}
}

// foreignClient has one open task of an experiment without a workflow.
type foreignClient struct{ client.Client }

func (foreignClient) ListWorkflow(_ context.Context, q *workflowservice.ListWorkflowExecutionsRequest) (
	*workflowservice.ListWorkflowExecutionsResponse, error) {
	if q.GetQuery() == experimentQuery {
		return &workflowservice.ListWorkflowExecutionsResponse{}, nil
	}
	name, err := converter.GetDefaultDataConverter().ToPayload("foreign")
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "task", RunId: "r"},
		Type:      &commonpb.WorkflowType{Name: ace.TaskWorkflow},
		Status:    enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		SearchAttributes: &commonpb.SearchAttributes{
			IndexedFields: map[string]*commonpb.Payload{ace.AttrExperiment: name}},
	}}}, err
}

func (foreignClient) DescribeWorkflowExecution(context.Context, string, string) (
	*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound("no such workflow")
}

// slowBucket lists its objects once it is released.
type slowBucket struct {
	bucket.Bucket
	released chan struct{}
}

func (b slowBucket) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	select {
	case <-b.released:
	case <-ctx.Done():
	}
	return b.Bucket.List(ctx, prefix)
}

// TestFeedCountsForeignBullets checks that the console's list has the number, too, and does not wait for the
// store.
func TestFeedCountsForeignBullets(t *testing.T) {
	shared, err := bucket.Make(t.Context(), "file://"+t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shared.Close() }()
	slow := slowBucket{shared, make(chan struct{})}
	other, err := playbook.OpenShared(t.TempDir(), shared, "default")
	if err != nil {
		t.Fatal(err)
	}
	merge(t, other, "foreign")
	link := cluster.NewLink()
	link.SetInterval(time.Millisecond)
	link.Client = foreignClient{}
	if link.Playbooks, err = playbook.OpenShared(t.TempDir(), slow, "default"); err != nil {
		t.Fatal(err)
	}
	f := NewFeed(link)
	f.Look(true)
	go f.Run(t.Context())
	await := func(bullets int) {
		for e := (*Experiments)(nil); e == nil || len(e.Rows) == 0 || e.Rows[0].Progress.Bullets != bullets; {
			select {
			case <-link.Changed():
				e = f.Value()
			case <-time.After(20 * time.Second):
				t.Fatalf("no list with %d bullets: %+v", bullets, e)
			}
		}
	}
	await(0)
	await(0) // listed again while the store does not answer
	close(slow.released)
	await(2)
}
