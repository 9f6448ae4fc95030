package sources

import (
	"encoding/json"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// Lineage ties a run to the runs before and after it under the same workflow id, and to
// its parent. Run ids are "" where there is none.
type Lineage struct {
	Prev   string `json:"previous_run_id,omitempty"` // the run that this one continues, or was reset from
	Next   string `json:"next_run_id,omitempty"`
	First  string `json:"first_run_id,omitempty"` // of the chain, where it is another run
	How    string `json:"begun_by,omitempty"`     // continue-as-new, retry, cron, reset
	Parent string `json:"parent_workflow_id,omitempty"`
	// ParentRun is the run id of Parent.
	ParentRun string `json:"parent_run_id,omitempty"`
	// Fork is the run that this one was forked from, where, and what was changed; nil for a
	// run that began by itself.
	Fork *ace.Forked `json:"forked_from,omitempty"`
}

func (l *Lineage) apply(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a := e.GetWorkflowExecutionStartedEventAttributes()
		l.Prev, l.Parent, l.ParentRun = a.GetContinuedExecutionRunId(), a.GetParentWorkflowExecution().GetWorkflowId(),
			a.GetParentWorkflowExecution().GetRunId()
		l.Fork = forkedFrom(a)
		if first := a.GetFirstExecutionRunId(); first != a.GetOriginalExecutionRunId() {
			l.First = first
		}
		if l.Prev != "" {
			l.How = initiators[a.GetInitiator()]
		}
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
		if a := e.GetWorkflowTaskFailedEventAttributes(); a.GetCause() == enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			l.Prev, l.How = a.GetBaseRunId(), "reset"
		}
	}
	if next := NextRun(e); next != "" {
		l.Next = next
	}
}

var initiators = map[enumspb.ContinueAsNewInitiator]string{
	enumspb.CONTINUE_AS_NEW_INITIATOR_WORKFLOW:      "continue-as-new",
	enumspb.CONTINUE_AS_NEW_INITIATOR_RETRY:         "retry",
	enumspb.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE: "cron",
}

// forkedFrom reads from a run's input where it was forked from.
func forkedFrom(a *historypb.WorkflowExecutionStartedEventAttributes) *ace.Forked {
	var in struct {
		Fork *ace.Forked `json:"fork"`
	}
	if json.Unmarshal(history.JSONOf(nil, first(a.GetInput().GetPayloads())), &in) != nil || in.Fork == nil || in.Fork.WorkflowID == "" {
		return nil
	}
	return in.Fork
}
