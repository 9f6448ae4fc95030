package historytest

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// Of says which run of which workflow the history is of, which run it continues ("" for
// none), and which was the first of them.
func (b *Builder) Of(workflowID, runID, continues, first string) *Builder {
	a := b.Events[0].GetWorkflowExecutionStartedEventAttributes()
	a.WorkflowId, a.OriginalExecutionRunId, a.ContinuedExecutionRunId, a.FirstExecutionRunId = workflowID, runID, continues, first
	if continues != "" {
		a.Initiator = enumspb.CONTINUE_AS_NEW_INITIATOR_WORKFLOW
	}
	return b
}

// ContinueAs closes the run, to be continued as another.
func (b *Builder) ContinueAs(after time.Duration, runID string) *Builder {
	b.Add(after, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{
			NewExecutionRunId: runID, Initiator: enumspb.CONTINUE_AS_NEW_INITIATOR_WORKFLOW}}
	})
	return b
}

// Reset begins the history of the run that base is reset as, after so many of its events.
func Reset(base *Builder, kept int, baseRun, runID string) *Builder {
	b := &Builder{Events: base.Events[:kept:kept], at: base.Events[kept-1].GetEventTime().AsTime()}
	b.Add(time.Millisecond, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{
			Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW, BaseRunId: baseRun, NewRunId: runID}}
	})
	b.Task(time.Millisecond)
	return b
}
