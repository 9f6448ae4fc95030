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
)

// Pages of a history. The sizes are in batches of events, as the server stores them; it
// caps them at 256.
const (
	NewestBatches = 100 // newest first: small, since somebody waits for it
	OlderBatches  = 256
	// pageTimeout bounds the reading of what is recorded, pollTimeout that of what is to
	// come: the server answers an idle poll after about 20 seconds.
	pageTimeout = 15 * time.Second
	pollTimeout = 65 * time.Second
)

// Pages reads the history of one run page by page. A token names where the next page
// begins and stays good when the connection is lost, so that no page is read twice.
type Pages struct {
	C                 client.Client
	Namespace         string
	WorkflowID, RunID string
}

// Forward is a page of events, oldest first, and the token of the next one; no token
// where the history ends. With wait it waits for more as long as the run is open; the
// page may then be empty.
func (p Pages) Forward(ctx context.Context, token []byte, wait bool) ([]*historypb.HistoryEvent, []byte, error) {
	limit := pageTimeout
	if wait {
		limit = pollTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := p.C.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: p.Namespace, Execution: p.execution(), NextPageToken: token, WaitNewEvent: wait, SkipArchival: wait,
		HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT})
	if err != nil {
		return nil, nil, err
	}
	events, err := p.eventsOf(r)
	return Recorded(events), r.GetNextPageToken(), err
}

// eventsOf are the events of an answer, which may hold them as the server stores them.
func (p Pages) eventsOf(r *workflowservice.GetWorkflowExecutionHistoryResponse) ([]*historypb.HistoryEvent, error) {
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

// Backward is a page of events, oldest first, that come before those of the pages read
// so far; without a token the newest. No token comes back where the history begins.
func (p Pages) Backward(ctx context.Context, size int, token []byte) ([]*historypb.HistoryEvent, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	r, err := p.C.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: p.Namespace, Execution: p.execution(), MaximumPageSize: int32(size), NextPageToken: token})
	if err != nil {
		return nil, nil, err
	}
	events := r.GetHistory().GetEvents()
	slices.Reverse(events)
	return events, r.GetNextPageToken(), nil
}

func (p Pages) execution() *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: p.WorkflowID, RunId: p.RunID}
}

// Recorded leaves out the workflow task that a server adds to the last page of an open
// run though it is not part of the history yet: its ids may be given to other events.
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
