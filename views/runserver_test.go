package views_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/sources/historytest"
)

// newestClose is when the newest run of a [runServer] closed; each older one closed a second
// earlier.
var newestClose = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// servedRunID returns the run ID of the n-th run; 0 is the newest.
func servedRunID(n int) string { return fmt.Sprintf("run-%06d", n) }

// runServer simulates a server with any number of closed task runs, the newest first. A run is made
// on request and not kept, so it does not count as memory of the process. It has only the methods
// that the list of runs needs; any other method panics.
type runServer struct {
	client.Client
	runs    int
	history []*historypb.HistoryEvent // of every run
}

func newRunServer(runs int) *runServer {
	return &runServer{runs: runs, history: historytest.Task(true).Events}
}

// sessionWorkflow is the workflow type of agent sessions; this server has no sessions.
const sessionWorkflow = "AceSessionWorkflow"

// ListWorkflow implements [client.Client]. Experiments and sessions are not found; otherwise the
// query is ignored.
func (c *runServer) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (
	*workflowservice.ListWorkflowExecutionsResponse, error) {
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	if strings.Contains(r.GetQuery(), ace.ExperimentWorkflow) ||
		strings.Contains(r.GetQuery(), sessionWorkflow) {
		return out, nil
	}
	at := 0
	if len(r.GetNextPageToken()) > 0 {
		at = int(binary.BigEndian.Uint64(r.GetNextPageToken()))
	}
	end := min(at+int(r.GetPageSize()), c.runs)
	for n := at; n < end; n++ {
		out.Executions = append(out.Executions, servedRun(n))
	}
	if end < c.runs {
		out.NextPageToken = binary.BigEndian.AppendUint64(nil, uint64(end))
	}
	return out, nil
}

func servedRun(n int) *workflowpb.WorkflowExecutionInfo {
	task := fmt.Sprintf("t-%06d", n)
	closed := newestClose.Add(-time.Duration(n) * time.Second)
	exit := [...]ace.ExitStatus{ace.ExitSuccess, ace.ExitWrong, ace.ExitSuccess, ace.ExitFailed}[n%4]
	status := enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	if exit == ace.ExitFailed {
		status = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
	}
	attrs := map[string]*commonpb.Payload{}
	for name, value := range map[string]string{
		ace.AttrTask: task, ace.AttrExperiment: fmt.Sprintf("finance-%d", n/1000), ace.AttrDataset: "finance",
		ace.AttrModel: "builtin-recipes-1", ace.AttrAdapter: string(ace.Offline), ace.AttrExit: string(exit),
		ace.AttrPhase: string(ace.PhaseDone)} {
		attrs[name] = servedPayload([]byte(strconv.Quote(value)))
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: ace.WorkflowID(task), RunId: servedRunID(n)},
		Type:      &commonpb.WorkflowType{Name: ace.TaskWorkflow}, Status: status, HistoryLength: 41,
		StartTime: timestamppb.New(closed.Add(-2 * time.Second)), CloseTime: timestamppb.New(closed),
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: attrs},
		Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{ace.MemoSummary: servedPayload(
			servedSummary)}},
	}
}

var servedSummary = func() []byte {
	data, err := json.Marshal(ace.Summary{Skills: 3, SkillsOK: 2, Added: 1,
		Usage: ace.Usage{InputTokens: 900, OutputTokens: 100, CostUSD: 0.01}})
	if err != nil {
		panic(err) // a struct of plain fields
	}
	return data
}()

func servedPayload(data []byte) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: data}
}

// CountWorkflow implements [client.Client]. It ignores the query and counts all runs.
func (c *runServer) CountWorkflow(context.Context, *workflowservice.CountWorkflowExecutionsRequest) (
	*workflowservice.CountWorkflowExecutionsResponse, error) {
	return &workflowservice.CountWorkflowExecutionsResponse{Count: int64(c.runs)}, nil
}

// DescribeWorkflowExecution implements [client.Client].
func (c *runServer) DescribeWorkflowExecution(_ context.Context, _, runID string) (
	*workflowservice.DescribeWorkflowExecutionResponse, error) {
	var n int
	if _, err := fmt.Sscanf(runID, "run-%d", &n); err != nil || n < 0 || n >= c.runs {
		return nil, serviceerror.NewNotFound("no run " + runID)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: servedRun(n)}, nil
}

// QueryWorkflow implements [client.Client]. It fails, since the server has no worker.
func (*runServer) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue,
	error) {
	return nil, serviceerror.NewFailedPrecondition("no worker")
}

// GetWorkflowHistory implements [client.Client]. It returns the last event, the same for every run.
func (c *runServer) GetWorkflowHistory(context.Context, string, string, bool,
	enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	return &lastEvent{left: c.history[len(c.history)-1:]}
}

type lastEvent struct{ left []*historypb.HistoryEvent }

func (l *lastEvent) HasNext() bool { return len(l.left) > 0 }

func (l *lastEvent) Next() (*historypb.HistoryEvent, error) {
	if len(l.left) == 0 {
		return nil, serviceerror.NewNotFound("no more events")
	}
	e := l.left[0]
	l.left = nil
	return e, nil
}

// WorkflowService implements [client.Client]. Every run has the same history.
func (c *runServer) WorkflowService() workflowservice.WorkflowServiceClient {
	return servedHistories{c: c}
}

type servedHistories struct {
	historytest.Attributes
	c *runServer
}

func (h servedHistories) GetWorkflowExecutionHistory(context.Context,
	*workflowservice.GetWorkflowExecutionHistoryRequest,
	...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	all := &historypb.History{Events: h.c.history}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: all}, nil
}

// CheckHealth implements [client.Client].
func (*runServer) CheckHealth(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse,
	error) {
	return &client.CheckHealthResponse{}, nil
}
