// Package runstest simulates a server with any number of closed task runs, for benchmarks of
// the list. It imports engine/ace and historytest only.
//
// Order: that of a server, the newest first, page by page. Bounds: a run is made on request and
// not kept, so it does not count as memory of the process. A run depends only on its number.
package runstest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/operatorservice/v1"
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

// Newest is when the newest run closed; each older one closed a second earlier.
var Newest = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// WorkflowID returns the workflow ID of the n-th run; 0 is the newest.
func WorkflowID(n int) string { return ace.WorkflowID(taskID(n)) }

// RunID returns the run ID of the n-th run.
func RunID(n int) string { return fmt.Sprintf("run-%06d", n) }

func taskID(n int) string { return fmt.Sprintf("t-%06d", n) }

// Client lists and counts runs. It has only the methods that the list of runs needs; any other
// method panics.
type Client struct {
	client.Client
	runs    int
	pages   atomic.Int64
	history []*historypb.HistoryEvent // of every run
}

// New returns the client of a server with runs.
func New(runs int) *Client { return &Client{runs: runs, history: historytest.Task(true).Events} }

// Pages returns how many pages were read.
func (c *Client) Pages() int64 { return c.pages.Load() }

// sessionWorkflow is the workflow type of agent sessions; this server has no sessions.
const sessionWorkflow = "AceSessionWorkflow"

// ListWorkflow implements [client.Client]. Experiments and sessions are not found; otherwise the
// query is ignored.
func (c *Client) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (
	*workflowservice.ListWorkflowExecutionsResponse, error) {
	c.pages.Add(1)
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	if strings.Contains(r.GetQuery(), ace.ExperimentWorkflow) || strings.Contains(r.GetQuery(), sessionWorkflow) {
		return out, nil
	}
	at := 0
	if len(r.GetNextPageToken()) > 0 {
		at = int(binary.BigEndian.Uint64(r.GetNextPageToken()))
	}
	end := min(at+int(r.GetPageSize()), c.runs)
	for n := at; n < end; n++ {
		out.Executions = append(out.Executions, info(n))
	}
	if end < c.runs {
		out.NextPageToken = binary.BigEndian.AppendUint64(nil, uint64(end))
	}
	return out, nil
}

func info(n int) *workflowpb.WorkflowExecutionInfo {
	closed := Newest.Add(-time.Duration(n) * time.Second)
	exit := [...]ace.ExitStatus{ace.Success, ace.Wrong, ace.Success, ace.Failed}[n%4]
	status := enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	if exit == ace.Failed {
		status = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
	}
	attrs := map[string]*commonpb.Payload{}
	for name, value := range map[string]string{
		ace.AttrTask: taskID(n), ace.AttrExperiment: fmt.Sprintf("finance-%d", n/1000), ace.AttrDataset: "finance",
		ace.AttrModel: "builtin-recipes-1", ace.AttrAdapter: string(ace.Offline), ace.AttrExit: string(exit),
		ace.AttrPhase: string(ace.PhaseDone)} {
		attrs[name] = payload([]byte(strconv.Quote(value)))
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: WorkflowID(n), RunId: RunID(n)},
		Type:      &commonpb.WorkflowType{Name: ace.TaskWorkflow}, Status: status, HistoryLength: 41,
		StartTime: timestamppb.New(closed.Add(-2 * time.Second)), CloseTime: timestamppb.New(closed),
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: attrs},
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{ace.MemoSummary: payload(summary)}},
	}
}

var summary = func() []byte {
	data, err := json.Marshal(ace.Summary{Skills: 3, SkillsOK: 2, Added: 1,
		Usage: ace.Usage{InputTokens: 900, OutputTokens: 100, CostUSD: 0.01}})
	if err != nil {
		panic(err) // a struct of plain fields
	}
	return data
}()

func payload(data []byte) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: data}
}

// CountWorkflow implements [client.Client]. It ignores the query and counts all runs.
func (c *Client) CountWorkflow(context.Context, *workflowservice.CountWorkflowExecutionsRequest) (
	*workflowservice.CountWorkflowExecutionsResponse, error) {
	return &workflowservice.CountWorkflowExecutionsResponse{Count: int64(c.runs)}, nil
}

// DescribeWorkflowExecution implements [client.Client].
func (c *Client) DescribeWorkflowExecution(_ context.Context, _, runID string) (
	*workflowservice.DescribeWorkflowExecutionResponse, error) {
	var n int
	if _, err := fmt.Sscanf(runID, "run-%d", &n); err != nil || n < 0 || n >= c.runs {
		return nil, serviceerror.NewNotFound("no run " + runID)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info(n)}, nil
}

// QueryWorkflow implements [client.Client]. It fails, since the server has no worker.
func (*Client) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, serviceerror.NewFailedPrecondition("no worker")
}

// GetWorkflowHistory implements [client.Client]. It returns the last event, the same for every run.
func (c *Client) GetWorkflowHistory(context.Context, string, string, bool,
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
func (c *Client) WorkflowService() workflowservice.WorkflowServiceClient { return histories{c: c} }

type histories struct {
	workflowservice.WorkflowServiceClient
	c *Client
}

func (h histories) GetWorkflowExecutionHistory(context.Context, *workflowservice.GetWorkflowExecutionHistoryRequest,
	...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	all := &historypb.History{Events: h.c.history}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: all}, nil
}

// CheckHealth implements [client.Client].
func (*Client) CheckHealth(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	return &client.CheckHealthResponse{}, nil
}

// OperatorService implements [client.Client].
func (*Client) OperatorService() operatorservice.OperatorServiceClient { return operator{} }

type operator struct {
	operatorservice.OperatorServiceClient
}

// ListSearchAttributes returns those of the contract.
func (operator) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest,
	...grpc.CallOption) (*operatorservice.ListSearchAttributesResponse, error) {
	known := map[string]enumspb.IndexedValueType{}
	for _, name := range ace.SearchAttributes() {
		known[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: known}, nil
}
