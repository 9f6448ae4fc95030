package costs

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/sources/historytest"
)

// openExperiment is a server with an experiment that runs. Only its worker knows the progress.
type openExperiment struct {
	client.Client
	events   []*historypb.HistoryEvent
	progress ace.ExperimentProgress
}

func (o *openExperiment) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (
	*workflowservice.ListWorkflowExecutionsResponse, error,
) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{{
		Execution: &commonpb.WorkflowExecution{WorkflowId: ace.ExperimentWorkflowID("e"), RunId: "r"},
		Type:      &commonpb.WorkflowType{Name: ace.ExperimentWorkflow},
		Status:    enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, StartTime: timestamppb.Now(),
	}}}, nil
}

func (o *openExperiment) QueryWorkflow(_ context.Context, _, _, query string, _ ...any) (
	converter.EncodedValue, error,
) {
	if query != ace.QueryExperiment {
		return nil, errors.New("unknown query")
	}
	return answer{o.progress}, nil
}

func (o *openExperiment) GetWorkflowHistory(context.Context, string, string, bool,
	enumspb.HistoryEventFilterType,
) client.HistoryEventIterator {
	return &events{o.events}
}

type answer struct{ ace.ExperimentProgress }

func (answer) HasValue() bool { return true }
func (a answer) Get(into any) error {
	data, err := json.Marshal(a.ExperimentProgress)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

type events struct{ left []*historypb.HistoryEvent }

func (e *events) HasNext() bool { return len(e.left) > 0 }
func (e *events) Next() (next *historypb.HistoryEvent, err error) {
	next, e.left = e.left[0], e.left[1:]
	return next, nil
}

// The finished evaluations of an open experiment count. Its tasks count by themselves.
func TestOpenExperiment(t *testing.T) {
	eval := ace.EvalResult{Usage: ace.Usage{InputTokens: 700, OutputTokens: 7}}
	o := &openExperiment{events: historytest.New(ace.ExperimentWorkflow, ace.ExperimentInput{
		ExperimentID: "e", Model: "m", Revision: ace.Revision}).Events,
		progress: ace.ExperimentProgress{TotalEpochs: 1, Eval: []ace.EvalResult{eval},
			Usage: ace.Usage{InputTokens: 9000}}}
	x := NewIndex()
	if err := x.Read(t.Context(), o, time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	c := x.Costs()
	if len(c.Rows) != 1 {
		t.Fatalf("%d rows", len(c.Rows))
	}
	if d := c.Rows[0].Summary.Days[0]; d.Model != "m" || d.Tokens.Input != 700 || d.Tokens.Output != 7 {
		t.Errorf("counted %+v", d)
	}
}
