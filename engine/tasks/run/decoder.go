package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/history"
)

// Decoder decodes the events of a run, in order from the first, into facts. The zero value is
// ready to use.
type Decoder struct {
	runID string
	open  map[int64]operation // by the id of the event that started it
	task  history.WorkflowTask
}

// operation is an activity, timer or signal that the run waits for.
type operation struct {
	end   FactKind // the fact of its end
	claim int64    // of an execution
}

// Clone returns a copy that decodes independently.
func (d *Decoder) Clone() *Decoder {
	return &Decoder{runID: d.runID, open: maps.Clone(d.open), task: d.task}
}

// Fact decodes an event. It returns false if the event does not state a fact of the run, and an error if the
// input does not match the contract.
func (d *Decoder) Fact(e *historypb.HistoryEvent) (Fact, bool, error) {
	end, closes := d.task.Closing(e)
	if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
		var in Input
		if err := json.Unmarshal(history.JSON(a.GetInput()), &in); err != nil {
			return Fact{}, false, err
		}
		d.runID = in.RunID
		return Started(in), true, nil
	}
	for _, decode := range []func(*historypb.HistoryEvent) (Fact, bool){received, d.started, d.ended,
		sessionFact} {
		if f, ok := decode(e); ok {
			return f, true, nil
		}
	}
	return Closed(end.Status, end.Failure), closes, nil
}

// received decodes signals, updates, the request to cancel, the dispatcher's answer and the ends of workflow
// tasks.
func received(e *historypb.HistoryEvent) (Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		return Fact{Kind: FactTask}, true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		return SignalFact(a.GetSignalName(), history.JSON(a.GetInput()))
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		in := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput()
		if in.GetName() == UpdateStop {
			return StopRequested(history.JSON(in.GetArgs()))
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return CancelRequested(), true
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		return dispatcherAnswer(e.GetMarkerRecordedEventAttributes())
	}
	return Fact{}, false
}

// dispatcherAnswer decodes the marker of the local activity that notifies the dispatcher. A
// failure with a backoff is retried.
func dispatcherAnswer(a *historypb.MarkerRecordedEventAttributes) (Fact, bool) {
	var marker struct {
		ActivityType string        `json:"ActivityType"`
		Backoff      time.Duration `json:"Backoff"`
	}
	err := json.Unmarshal(history.JSON(a.GetDetails()["data"]), &marker)
	if err != nil || marker.ActivityType != runner.ActivityTell || marker.Backoff > 0 {
		return Fact{}, false
	}
	if a.GetFailure() != nil {
		return DispatcherFailed(history.FailureOf(a.GetFailure())), true
	}
	return Answered(history.JSON(a.GetDetails()["result"]))
}

// started decodes the start of an operation and remembers it.
func (d *Decoder) started(e *historypb.HistoryEvent) (Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		var in struct {
			Claim struct {
				Number int64 `json:"claim"`
			} `json:"claim"`
		}
		if a.GetActivityType().GetName() == ActivityExecute && json.Unmarshal(history.JSON(a.GetInput()),
			&in) == nil {
			d.note(e, operation{FactEnded, in.Claim.Number})
			return Submitted(), true
		}
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		return Submitted(), true
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		return d.signalStarted(e)
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		var summary string
		_ = json.Unmarshal(history.PayloadJSON(e.GetUserMetadata().GetSummary()), &summary) // "" if invalid
		switch summary {
		case TimerLimit:
			d.note(e, operation{end: FactTimeLimit})
		case TimerGrace:
			d.note(e, operation{end: FactSessionTimeout})
		}
	}
	return Fact{}, false
}

// signalStarted decodes a message to the agent's session or to the parent session.
func (d *Decoder) signalStarted(e *historypb.HistoryEvent) (Fact, bool) {
	a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()
	var m session.Message
	if a.GetSignalName() != session.SignalDeliver || json.Unmarshal(history.JSON(a.GetInput()), &m) != nil {
		return Fact{}, false
	}
	switch m.ID {
	case d.runID:
		d.note(e, operation{end: FactSessionStarted})
		return Submitted(), true
	case CallbackID(d.runID):
		d.note(e, operation{end: FactParentNotified})
	}
	return Fact{}, false
}

func (d *Decoder) note(e *historypb.HistoryEvent, o operation) {
	if d.open == nil {
		d.open = map[int64]operation{}
	}
	d.open[e.GetEventId()] = o
}

// ended decodes the end of an operation that the run had started.
func (d *Decoder) ended(e *historypb.HistoryEvent) (Fact, bool) {
	end, ok := history.EndingOf(e)
	if !ok {
		return Fact{}, false
	}
	o, ok := d.open[end.Started]
	delete(d.open, end.Started)
	completed := end.Status == history.EndCompleted
	switch o.end {
	case FactEnded:
		if completed {
			return ExecutionEnded(o.claim, history.JSON(end.Result)), ok
		}
		return ExecutionFailed(o.claim, end.Reason()), ok
	case FactParentNotified:
		return ParentNotified(completed), ok
	case FactSessionStarted:
		if !completed {
			return SessionGone(SessionNotFound()), ok
		}
	}
	return Fact{Kind: o.end}, ok && completed // ignore a canceled timer
}

// sessionFact decodes an event of the session that the run started.
func sessionFact(e *historypb.HistoryEvent) (Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
		return Fact{Kind: FactSessionStarted}, true
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
		return SessionGone(SessionIDInUse()), true
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED,
		enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED,
		enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT,
		enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		return SessionGone(SessionEndedEarly(nil)), true
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		f := e.GetChildWorkflowExecutionFailedEventAttributes().GetFailure()
		return SessionGone(SessionEndedEarly(temporal.GetDefaultFailureConverter().FailureToError(f))), true
	}
	return Fact{}, false
}

// SessionEndedEarly is the failure of a run whose session ended, with or without an error, before it
// reported on the run.
func SessionEndedEarly(err error) ace.Failure {
	if _, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return history.FailureFrom(err)
	}
	return ace.Failure{Kind: ace.Failed, Message: "the session ended before the agent answered"}
}

// SessionNotFound is the failure of a run whose session cannot be resumed.
func SessionNotFound() ace.Failure {
	return ace.Failure{Kind: ace.Failed, Message: "the session is not open any more"}
}

// SessionIDInUse is the failure of a run whose session id is in use.
func SessionIDInUse() ace.Failure {
	return ace.Failure{Kind: ace.Failed,
		Message: "the session could not be begun: there is one of that id already"}
}

// ActivityLabel returns a label of an execution, such as "execute site-crawler on lnch_1". ok is
// false for other activities.
func ActivityLabel(activity string, input *commonpb.Payloads) (label string, ok bool) {
	var x Execution
	if activity != ActivityExecute || json.Unmarshal(history.JSON(input), &x) != nil {
		return "", false
	}
	label = "execute " + cmp.Or(x.Input.Name(), "the run")
	if where := cmp.Or(x.Claim.RunnerID, x.Claim.Queue); where != "" {
		label += " on " + where
	}
	return label, true
}
