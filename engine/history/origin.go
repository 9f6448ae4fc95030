package history

import (
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// Ways in which a run is begun by another under the same workflow id. A run that begins by
// itself has none of them.
const (
	ByContinueAsNew = "continue-as-new"
	ByRetry         = "retry"
	ByCron          = "cron"
	ByReset         = "reset"
)

// ResetFrom is the run that another one was reset from: its events up to and with Event are
// the first of the other one's history.
type ResetFrom struct {
	RunID string `json:"run_id"`
	Event int64  `json:"event_id"`
}

// Origin is where a run comes from, as far as its history is applied. The zero Origin knows
// nothing. Run ids are "" where there is none.
type Origin struct {
	WorkflowID string
	RunID      string     // of the run itself
	First      string     // of its chain
	Prev       string     // the run that it continues, or is the next attempt of
	How        string     // by which it was begun, "" where it began by itself
	Reset      *ResetFrom // nil for a run that was not reset; the newest where it was more than once
	Next       string     // the run that it hands over to
}

// OriginOf is where the run of a history comes from.
func OriginOf(events []*historypb.HistoryEvent) Origin {
	var o Origin
	for _, e := range events {
		o.Apply(e)
	}
	return o
}

// Apply takes over what an event tells. Events are applied in order.
func (o *Origin) Apply(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a := e.GetWorkflowExecutionStartedEventAttributes()
		o.WorkflowID, o.RunID, o.First, o.Prev = a.GetWorkflowId(), a.GetOriginalExecutionRunId(), a.GetFirstExecutionRunId(), a.GetContinuedExecutionRunId()
		if o.Prev != "" {
			o.How = initiators[a.GetInitiator()]
		}
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		// A reset run begins with the events of another one, its start among them: only
		// here is it told whose history it is.
		if a := e.GetWorkflowTaskFailedEventAttributes(); a.GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			o.Reset, o.How = &ResetFrom{a.GetBaseRunId(), e.GetEventId() - 1}, ByReset
			if a.GetNewRunId() != "" {
				o.RunID = a.GetNewRunId()
			}
		}
	default:
		if next := NextRun(e); next != "" {
			o.Next = next
		}
	}
}

var initiators = map[enumspb.ContinueAsNewInitiator]string{
	enumspb.CONTINUE_AS_NEW_INITIATOR_WORKFLOW:      ByContinueAsNew,
	enumspb.CONTINUE_AS_NEW_INITIATOR_RETRY:         ByRetry,
	enumspb.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE: ByCron,
}

// NextRun is the run that a closing event hands over to (continue-as-new, retry, cron), ""
// if none.
func NextRun(e *historypb.HistoryEvent) string {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return e.GetWorkflowExecutionCompletedEventAttributes().GetNewExecutionRunId()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		return e.GetWorkflowExecutionFailedEventAttributes().GetNewExecutionRunId()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return e.GetWorkflowExecutionTimedOutEventAttributes().GetNewExecutionRunId()
	}
	return ""
}
