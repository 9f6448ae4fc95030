package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// Page sizes of a history, in batches of events as the server stores them. The server's maximum is 256.
const (
	NewestBatches = 100 // newest first: small, because the user waits for it
	OlderBatches  = 256
	// pageTimeout bounds the reading of recorded events, pollTimeout the waiting for new ones: the server
	// answers an idle poll after about 20 seconds.
	pageTimeout = 15 * time.Second
	pollTimeout = 65 * time.Second
)

// Pages reads the history of one run in pages. A token names the next page and stays valid when the
// connection is lost.
type Pages struct {
	C                 client.Client
	Namespace         string
	WorkflowID, RunID string
}

// Forward returns a page of events, oldest first, and the token of the next page, which is empty at the end.
// With wait, it waits for new events of an open run; the page may then be empty.
func (p Pages) Forward(ctx context.Context, token []byte, wait bool) ([]*historypb.HistoryEvent, []byte,
	error) {
	limit := pageTimeout
	if wait {
		limit = pollTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := p.C.WorkflowService().GetWorkflowExecutionHistory(ctx,
		&workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: p.Namespace, Execution: p.execution(), NextPageToken: token, WaitNewEvent: wait,
			SkipArchival:           wait,
			HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT})
	if err != nil {
		return nil, nil, err
	}
	events, err := p.eventsOf(r)
	return Recorded(events), r.GetNextPageToken(), err
}

// eventsOf returns the events of a response, which may hold them as the server stores them.
func (p Pages) eventsOf(r *workflowservice.GetWorkflowExecutionHistoryResponse) ([]*historypb.HistoryEvent,
	error) {
	events := r.GetHistory().GetEvents()
	for _, blob := range r.GetRawHistory() {
		var h historypb.History
		if err := proto.Unmarshal(blob.GetData(), &h); err != nil {
			return nil, fmt.Errorf("history of %s: %w", p.WorkflowID, err)
		}
		events = append(events, h.GetEvents()...)
	}
	return events, nil
}

// startEvents is the number of events that tell who decides a run: the SDK is in the first completed workflow
// task.
const startEvents = 20

// Start returns the first events of the run.
func (p Pages) Start(ctx context.Context) ([]*historypb.HistoryEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	r, err := p.C.WorkflowService().GetWorkflowExecutionHistory(ctx,
		&workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: p.Namespace, Execution: p.execution(), MaximumPageSize: startEvents})
	if err != nil {
		return nil, err
	}
	events, err := p.eventsOf(r)
	return Recorded(events), err
}

// Backward returns a page of events, oldest first, before the pages read so far; without a token the newest
// page. The returned token is empty at the beginning of the history.
func (p Pages) Backward(ctx context.Context, size int, token []byte) ([]*historypb.HistoryEvent, []byte,
	error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	r, err := p.C.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx,
		&workflowservice.GetWorkflowExecutionHistoryReverseRequest{
			Namespace: p.Namespace, Execution: p.execution(), MaximumPageSize: int32(size),
			NextPageToken: token})
	if err != nil {
		return nil, nil, err
	}
	events := r.GetHistory().GetEvents()
	slices.Reverse(events)
	return events, r.GetNextPageToken(), nil
}

// lastEvents bounds the newest events that tell the state of a workflow task.
const lastEvents = 50

// LastTask returns the newest event of a run, or nil, and the state of its workflow task after
// it, from its newest events.
func (p Pages) LastTask(ctx context.Context) (*historypb.HistoryEvent, history.WorkflowTask, error) {
	var task history.WorkflowTask
	var last *historypb.HistoryEvent
	events, _, err := p.Backward(ctx, lastEvents, nil)
	for _, last = range events {
		task.Apply(last)
	}
	return last, task, err
}

// Describe returns the server's description of the run. The pending activities include a workflow task that
// fails or waits, see [history.WorkflowTask.Pending].
func (p Pages) Describe(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	d, err := p.C.DescribeWorkflowExecution(ctx, p.WorkflowID, p.RunID)
	if err != nil {
		return nil, err
	}
	var task history.WorkflowTask
	if d.GetPendingWorkflowTask().GetAttempt() > 1 {
		_, task, _ = p.LastTask(ctx) // without it, the message is unknown
	}
	d.PendingActivities = task.Pending(d, time.Now())
	return d, nil
}

func (p Pages) execution() *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: p.WorkflowID, RunId: p.RunID}
}

// Recorded removes the workflow task that a server appends to the last page of an open run. It is not part of
// the history, and other events may get its ids.
func Recorded(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
	n := len(events)
	for n > 0 && events[n-1].GetTaskId() == 0 && isTaskBegin(events[n-1].GetEventType()) {
		n--
	}
	return events[:n]
}

func isTaskBegin(t enumspb.EventType) bool {
	return t == enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED || t == enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED
}

// ReadHistory reads the recorded history of a run. It fails above [MaxEvents] events.
func ReadHistory(ctx context.Context, c client.Client, namespace, workflowID,
	runID string) ([]*historypb.HistoryEvent, error) {
	p := Pages{c, namespace, workflowID, runID}
	var all []*historypb.HistoryEvent
	var token []byte
	for {
		events, next, err := p.Forward(ctx, token, false)
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
		if len(all) > MaxEvents {
			return nil, fmt.Errorf("the history of %s has more than %s", workflowID,
				ace.Count(MaxEvents, "event"))
		}
		if token = next; len(token) == 0 {
			return all, nil
		}
	}
}
