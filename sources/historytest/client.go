package historytest

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// Client serves the histories of runs by run ID, page by page, forward and backward. It has only
// the methods that reading them needs; any other method panics.
type Client struct {
	client.Client
	mu      sync.Mutex
	runs    map[string]*run
	fail    func(call string) error
	Pending []*workflowpb.PendingActivityInfo
	calls   map[string]int
}

type run struct {
	events  []*historypb.HistoryEvent
	changed chan struct{} // closed and replaced when events are added
}

// NewClient returns a client without runs.
func NewClient() *Client { return &Client{runs: map[string]*run{}, calls: map[string]int{}} }

// Put appends events to a run.
func (c *Client) Put(runID string, events ...*historypb.HistoryEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[runID]
	if r == nil {
		r = &run{changed: make(chan struct{})}
		c.runs[runID] = r
	}
	r.events = append(slices.Clip(r.events), events...)
	close(r.changed)
	r.changed = make(chan struct{})
}

// Fail sets a function that makes calls fail. It gets "forward", "backward" or "describe" and
// returns nil for a call that succeeds. A call waits while it blocks.
func (c *Client) Fail(fn func(call string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = fn
}

// Calls returns how often a call was made, failed calls included.
func (c *Client) Calls(call string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[call]
}

func (c *Client) start(call, runID string) (*run, error) {
	c.mu.Lock()
	c.calls[call]++
	fail := c.fail
	c.mu.Unlock()
	if fail != nil {
		if err := fail(call); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[runID]
	if r == nil {
		return nil, serviceerror.NewNotFound("no run " + runID)
	}
	return r, nil
}

func (c *Client) events(r *run) ([]*historypb.HistoryEvent, chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return r.events, r.changed
}

// DescribeWorkflowExecution implements [client.Client].
func (c *Client) DescribeWorkflowExecution(_ context.Context, workflowID, runID string) (
	*workflowservice.DescribeWorkflowExecutionResponse, error) {
	r, err := c.start("describe", runID)
	if err != nil {
		return nil, err
	}
	events, _ := c.events(r)
	firstRun := runID
	if len(events) > 0 {
		if id := events[0].GetWorkflowExecutionStartedEventAttributes().GetFirstExecutionRunId(); id != "" {
			firstRun = id
		}
	}
	status := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	if Closed(events) {
		status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: c.Pending,
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: status,
			HistoryLength: int64(len(events)),
			Execution:     &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID},
			FirstRunId:    firstRun}}, nil
}

// Closed reports whether the last event closes a run.
func Closed(events []*historypb.HistoryEvent) bool {
	if len(events) == 0 {
		return false
	}
	_, closed := history.CloseStatus(events[len(events)-1].GetEventType())
	return closed
}

// WorkflowService implements [client.Client].
func (c *Client) WorkflowService() workflowservice.WorkflowServiceClient { return service{c: c} }

type service struct {
	Attributes
	c *Client
}

// Attributes is a service that knows the search attributes of the contract, and nothing else.
type Attributes struct {
	workflowservice.WorkflowServiceClient
}

// GetSearchAttributes implements [workflowservice.WorkflowServiceClient].
func (Attributes) GetSearchAttributes(
	context.Context, *workflowservice.GetSearchAttributesRequest, ...grpc.CallOption,
) (*workflowservice.GetSearchAttributesResponse, error) {
	known := map[string]enumspb.IndexedValueType{}
	for _, name := range ace.SearchAttributes() {
		known[name] = enumspb.INDEXED_VALUE_TYPE_KEYWORD
	}
	return &workflowservice.GetSearchAttributesResponse{Keys: known}, nil
}

// DescribeNamespace implements [workflowservice.WorkflowServiceClient].
func (Attributes) DescribeNamespace(
	context.Context, *workflowservice.DescribeNamespaceRequest, ...grpc.CallOption,
) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

// maxPage is the maximum number of events of a page, as for a server.
const maxPage = 256

func token(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func (s service) GetWorkflowExecutionHistory(ctx context.Context,
	q *workflowservice.GetWorkflowExecutionHistoryRequest,
	_ ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	r, err := s.c.start("forward", q.GetExecution().GetRunId())
	if err != nil {
		return nil, err
	}
	if q.HistoryEventFilterType == enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT && !q.WaitNewEvent {
		events, _ := s.c.events(r)
		if !Closed(events) {
			events = nil
		}
		last := &historypb.History{Events: events[max(len(events)-1, 0):]}
		return &workflowservice.GetWorkflowExecutionHistoryResponse{History: last}, nil
	}
	size := maxPage
	if q.MaximumPageSize > 0 {
		size = min(size, int(q.MaximumPageSize))
	}
	from := 0
	if len(q.NextPageToken) > 0 {
		from = int(binary.BigEndian.Uint64(q.NextPageToken))
	}
	for {
		events, changed := s.c.events(r)
		if from < len(events) || Closed(events) || !q.WaitNewEvent {
			to := min(from+size, len(events))
			page := &historypb.History{Events: slices.Clone(events[from:to])}
			answer := &workflowservice.GetWorkflowExecutionHistoryResponse{History: page}
			if to < len(events) || q.WaitNewEvent && !Closed(events) {
				answer.NextPageToken = token(to)
			}
			return answer, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

func (s service) GetWorkflowExecutionHistoryReverse(_ context.Context,
	q *workflowservice.GetWorkflowExecutionHistoryReverseRequest,
	_ ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	r, err := s.c.start("backward", q.GetExecution().GetRunId())
	if err != nil {
		return nil, err
	}
	events, _ := s.c.events(r)
	to := len(events)
	if len(q.NextPageToken) > 0 {
		to = int(binary.BigEndian.Uint64(q.NextPageToken))
	}
	from := max(to-min(int(q.MaximumPageSize), maxPage), 0)
	page := slices.Clone(events[from:to])
	slices.Reverse(page)
	answer := &workflowservice.GetWorkflowExecutionHistoryReverseResponse{History: &historypb.History{Events: page}}
	if from > 0 {
		answer.NextPageToken = token(from)
	}
	return answer, nil
}
