package detail

import (
	"fmt"
	"maps"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/kind"
	"acescope/engine/kind/kinds"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Tail folds the history of a run of any type and reports what each event changes.
type Tail struct {
	w      *watcher
	folder subject                 // of events that are not of a session, a blueprint run or a flow
	state  kind.Fold               // of a run that is not of acescope, otherwise nil
	open   map[string]openActivity // by activity ID; of such a run only
}

// openActivity is an activity that has not ended.
type openActivity struct {
	event  int64 // that scheduled it
	failed int32 // number of the newest attempt whose failure was reported
}

// NewTail returns a Tail that has read nothing.
func NewTail(workflowID, runID string) *Tail {
	w := newWatcher(cluster.NewLink(), runs.ID{WorkflowID: workflowID, RunID: runID}, nil)
	return &Tail{w: w, folder: w.of, open: map[string]openActivity{}}
}

// Apply folds the next event and returns the changes, in order.
func (t *Tail) Apply(e *historypb.HistoryEvent) []histories.Change {
	w := t.w
	w.identify(e)
	closed, ok := w.task.Closing(e)
	switch w.of.(type) {
	case taskRun:
		return t.addNotes(e, t.folder.fold(&w.detail, e))
	case *experimentRun:
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

// addNotes puts the notes of the run's kind before the changes of its task, whose failed steps they replace.
func (t *Tail) addNotes(e *historypb.HistoryEvent, changes []histories.Change) (all []histories.Change) {
	if name := t.w.detail.Type; name == ace.TaskWorkflow {
		return changes
	} else if t.state == nil {
		t.state = kinds.Of(name).New()
	}
	t.state.Apply(e)
	if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
		t.open[a.GetActivityId()] = openActivity{event: e.GetEventId()}
	} else if end, ok := history.EndingOf(e); ok {
		maps.DeleteFunc(t.open, func(_ string, a openActivity) bool { return a.event == end.Started })
	}
	failed := false
	for _, n := range kind.Notes(t.state, e) {
		failed = failed || n.Failure != nil
		all = append(all, t.change(e, histories.NoteChange(n)))
	}
	for _, c := range changes {
		if !failed || c.Type != histories.ChangeStep || c.Step == history.TaskType {
			all = append(all, c)
		}
	}
	return all
}

// Open reports whether [Tail.Pending] may have something to report.
func (t *Tail) Open() bool { return len(t.open) > 0 }

// Pending returns a change for each newest attempt of an open activity that has failed since the last call.
// The history has no event for it before the activity ends.
func (t *Tail) Pending(r *workflowservice.DescribeWorkflowExecutionResponse) (changes []histories.Change) {
	for _, a := range r.GetPendingActivities() {
		known, ok := t.open[a.GetActivityId()]
		failed := a.GetAttempt() - 1 // the attempt that runs or is scheduled has not failed
		if !ok || a.GetLastFailure() == nil || failed <= known.failed {
			continue
		}
		known.failed = failed
		t.open[a.GetActivityId()] = known
		failure := history.FailureOf(a.GetLastFailure())
		ended := a.GetLastAttemptCompleteTime()
		c := histories.Change{Type: histories.ChangeStep, Step: a.GetActivityType().GetName(), Failure: &failure}
		c.Note = fmt.Sprintf("%s attempt %d failed: %s", c.Step, failed, failure.Message)
		if next := a.GetNextAttemptScheduleTime(); next != nil {
			wait := next.AsTime().Sub(ended.AsTime()).Round(time.Millisecond)
			c.Note += ", next attempt after " + wait.String()
		}
		e := &historypb.HistoryEvent{EventId: known.event, EventTime: ended}
		changes = append(changes, t.change(e, c))
	}
	return changes
}

func (t *Tail) change(e *historypb.HistoryEvent, c histories.Change) histories.Change {
	c.WorkflowID, c.RunID = t.w.id.WorkflowID, t.w.id.RunID
	c.TaskID = strings.TrimPrefix(ace.TaskIDOf(t.w.id.WorkflowID), flow.IDPrefix)
	c.Event, c.At = e.GetEventId(), e.GetEventTime().AsTime()
	return c
}
