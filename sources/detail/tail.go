package detail

import (
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Tail folds the history of a run of any type and reports what each event changes.
type Tail struct {
	w      *watcher
	folder subject // of events that are not of a session, a blueprint run or a flow
}

// NewTail returns a Tail that has read nothing.
func NewTail(workflowID, runID string) *Tail {
	w := newWatcher(cluster.NewLink(), runs.ID{WorkflowID: workflowID, RunID: runID}, nil)
	return &Tail{w, w.of}
}

// Apply folds the next event and returns the changes, in order.
func (t *Tail) Apply(e *historypb.HistoryEvent) []histories.Change {
	w := t.w
	w.identify(e)
	closed, ok := w.task.Closing(e)
	switch w.of.(type) {
	case taskRun, *experimentRun:
		return t.folder.fold(&w.detail, e)
	}
	var changes []histories.Change
	for _, c := range w.of.fold(&w.detail, e) {
		if c.Status == "" { // the status follows
			changes = append(changes, t.change(e, c))
		}
	}
	continued := e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
	if ok && !continued {
		changes = append(changes, t.change(e, histories.Change{Type: histories.ChangeStatus,
			Status: closed.Status, Failure: closed.Failure}))
	}
	return changes
}

func (t *Tail) change(e *historypb.HistoryEvent, c histories.Change) histories.Change {
	c.WorkflowID, c.RunID = t.w.id.WorkflowID, t.w.id.RunID
	c.TaskID = strings.TrimPrefix(ace.TaskIDOf(t.w.id.WorkflowID), flow.IDPrefix)
	c.Event, c.At = e.GetEventId(), e.GetEventTime().AsTime()
	return c
}
