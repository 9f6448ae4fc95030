package histories

import (
	"encoding/json"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// Lineage names the previous and next run of a workflow id, and the parent. Run ids are "" otherwise.
type Lineage struct {
	Prev  string `json:"previous_run_id,omitempty"` // the run that this one continues
	Next  string `json:"next_run_id,omitempty"`
	First string `json:"first_run_id,omitempty"` // of the chain, "" if it is this run
	How   string `json:"begun_by,omitempty"`     // continue-as-new, retry, cron, reset
	// Reset is the run that this one was reset from, and the last event that they share; nil if it was not
	// reset.
	Reset *history.ResetFrom `json:"reset_from,omitempty"`
	// ResetAs is the newest run that this one was reset as. The server reports it; the history does not.
	ResetAs   string `json:"reset_as_run_id,omitempty"`
	Parent    string `json:"parent_workflow_id,omitempty"`
	ParentRun string `json:"parent_run_id,omitempty"`
	// Fork is the run that this one was forked from, the position, and the edits; nil if it is not a fork.
	Fork *ace.Forked `json:"forked_from,omitempty"`

	Origin history.Origin `json:"-"`
}

// Known reports whether any field is set.
func (l Lineage) Known() bool {
	l.Origin = history.Origin{}
	return l != Lineage{}
}

func (l *Lineage) Apply(e *historypb.HistoryEvent) {
	o := &l.Origin
	o.Apply(e)
	l.Prev, l.How, l.Reset, l.Next = o.Prev, o.How, o.Reset, o.Next
	if l.First = o.First; l.First == o.RunID || o.Prev == "" {
		l.First = ""
	}
	if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED {
		a := e.GetWorkflowExecutionStartedEventAttributes()
		l.Parent, l.ParentRun = a.GetParentWorkflowExecution().GetWorkflowId(),
			a.GetParentWorkflowExecution().GetRunId()
		l.Fork = forkedFrom(a)
	}
}

// forkedFrom reads the original of a fork from the run's input.
func forkedFrom(a *historypb.WorkflowExecutionStartedEventAttributes) *ace.Forked {
	var in struct {
		Fork *ace.Forked `json:"fork"`
	}
	if json.Unmarshal(history.PayloadJSON(cluster.First(a.GetInput().GetPayloads())), &in) != nil ||
		in.Fork == nil || in.Fork.WorkflowID == "" {
		return nil
	}
	return in.Fork
}
