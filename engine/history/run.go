package history

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
	"acescope/engine/run"
	"acescope/engine/runner"
	"acescope/engine/session"
)

// RunDecoder turns the events of a run, given in order from the first, into facts. The zero
// value is ready.
type RunDecoder struct {
	runID string
	open  map[int64]opened // by the event that opened it
}

// opened is what a run began and waits for.
type opened struct {
	what  run.FactKind // that its end tells
	claim int64        // of an execution
}

// Clone is a decoder that goes on by itself from the same place.
func (d *RunDecoder) Clone() *RunDecoder {
	return &RunDecoder{runID: d.runID, open: maps.Clone(d.open)}
}

// Fact is what the event says of the run; false where it says nothing. The error tells of an
// input that does not fit the contract.
func (d *RunDecoder) Fact(e *historypb.HistoryEvent) (run.Fact, bool, error) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		var in run.Input
		if err := json.Unmarshal(JSON(e.GetWorkflowExecutionStartedEventAttributes().GetInput()), &in); err != nil {
			return run.Fact{}, false, err
		}
		d.runID = in.RunID
		return run.Started(in), true, nil
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		return run.Fact{Kind: run.FactTask}, true, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		f, ok := run.Heard(a.GetSignalName(), JSON(a.GetInput()))
		return f, ok, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		in := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput()
		if in.GetName() != run.UpdateStop {
			return run.Fact{}, false, nil
		}
		f, ok := run.StopRequested(JSON(in.GetArgs()))
		return f, ok, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return run.CancelRequested(), true, nil
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		f, ok := told(e.GetMarkerRecordedEventAttributes())
		return f, ok, nil
	}
	if f, ok := d.begins(e); ok {
		return f, true, nil
	}
	if f, ok := d.ends(e); ok {
		return f, true, nil
	}
	closed, ok := closed(e)
	return run.Closed(closed.Exit, closed.Failure), ok, nil
}

func (d *RunDecoder) note(e *historypb.HistoryEvent, o opened) {
	if d.open == nil {
		d.open = map[int64]opened{}
	}
	d.open[e.GetEventId()] = o
}

// begins remembers what the run begins; the run is given to somebody with it, or not.
func (d *RunDecoder) begins(e *historypb.HistoryEvent) (run.Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		var in struct {
			Claim struct {
				Number int64 `json:"claim"`
			} `json:"claim"`
		}
		if a.GetActivityType().GetName() == run.ActivityExecute && json.Unmarshal(JSON(a.GetInput()), &in) == nil {
			d.note(e, opened{run.FactEnded, in.Claim.Number})
			return run.Given(), true
		}
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		return run.Given(), true
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		return d.delivers(e)
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		var summary string
		if json.Unmarshal(JSONOf(e.GetUserMetadata().GetSummary()), &summary) != nil {
			break
		}
		switch summary {
		case run.TimerLimit:
			d.note(e, opened{what: run.FactTimeUp})
		case run.TimerGrace:
			d.note(e, opened{what: run.FactGivenUp})
		}
	}
	return run.Fact{}, false
}

// delivers remembers a message to a session: the run's own, or that to the parent.
func (d *RunDecoder) delivers(e *historypb.HistoryEvent) (run.Fact, bool) {
	a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()
	var m session.Message
	if a.GetSignalName() != session.SignalDeliver || json.Unmarshal(JSON(a.GetInput()), &m) != nil {
		return run.Fact{}, false
	}
	switch m.ID {
	case d.runID:
		d.note(e, opened{what: run.FactSessionBegan})
		return run.Given(), true
	case run.CallbackID(d.runID):
		d.note(e, opened{what: run.FactTold})
	}
	return run.Fact{}, false
}

// ends is what the end of something tells that the run began.
func (d *RunDecoder) ends(e *historypb.HistoryEvent) (run.Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		o, ok := d.ended(a.GetScheduledEventId())
		return run.ExecutionEnded(o.claim, JSON(a.GetResult())), ok
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		o, ok := d.ended(a.GetScheduledEventId())
		return run.ExecutionFailed(o.claim, FailureOf(a.GetFailure())), ok
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		o, ok := d.ended(a.GetScheduledEventId())
		return run.ExecutionFailed(o.claim, FailureOf(a.GetFailure())), ok
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		o, ok := d.ended(e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId())
		return run.ExecutionFailed(o.claim, cancelled()), ok
	case enumspb.EVENT_TYPE_TIMER_FIRED:
		o, ok := d.ended(e.GetTimerFiredEventAttributes().GetStartedEventId())
		return run.Fact{Kind: o.what}, ok
	case enumspb.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
		return d.delivered(e.GetExternalWorkflowExecutionSignaledEventAttributes().GetInitiatedEventId(), true)
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
		return d.delivered(e.GetSignalExternalWorkflowExecutionFailedEventAttributes().GetInitiatedEventId(), false)
	}
	return sessionEvent(e)
}

func (d *RunDecoder) delivered(initiated int64, reached bool) (run.Fact, bool) {
	o, ok := d.ended(initiated)
	switch {
	case o.what == run.FactTold:
		return run.Told(reached), ok
	case !reached:
		return run.SessionGone(NoSession()), ok
	}
	return run.Fact{Kind: o.what}, ok
}

func (d *RunDecoder) ended(event int64) (opened, bool) {
	o, ok := d.open[event]
	delete(d.open, event)
	return o, ok
}

// sessionEvent is what an event tells of the session that the run began.
func sessionEvent(e *historypb.HistoryEvent) (run.Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
		return run.Fact{Kind: run.FactSessionBegan}, true
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
		return run.SessionGone(SessionTaken()), true
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED,
		enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT, enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		return run.SessionGone(SessionEnd(nil)), true
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		f := e.GetChildWorkflowExecutionFailedEventAttributes().GetFailure()
		return run.SessionGone(SessionEnd(temporal.GetDefaultFailureConverter().FailureToError(f))), true
	}
	return run.Fact{}, false
}

// SessionEnd is the failure of a run whose session ended, well or with an error, before it
// said what became of the run.
func SessionEnd(err error) ace.Failure {
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		return FailureFrom(err)
	}
	return ace.Failure{Kind: ace.Failed, Message: "the session ended before the agent answered"}
}

// NoSession is the failure of a run whose session is not there to be resumed, and
// SessionTaken that of one whose session could not be begun.
func NoSession() ace.Failure {
	return ace.Failure{Kind: ace.Failed, Message: "the session is not open any more"}
}

// SessionTaken is described at [NoSession].
func SessionTaken() ace.Failure {
	return ace.Failure{Kind: ace.Failed, Message: "the session could not be begun: there is one of that id already"}
}

// told is what came of telling the dispatcher: its answer, or that it could not be told. A
// failure that names a time is tried again after that.
func told(a *historypb.MarkerRecordedEventAttributes) (run.Fact, bool) {
	var about struct {
		ActivityType string        `json:"ActivityType"`
		Backoff      time.Duration `json:"Backoff"`
	}
	if json.Unmarshal(JSON(a.GetDetails()["data"]), &about) != nil || about.ActivityType != runner.ActivityTell || about.Backoff > 0 {
		return run.Fact{}, false
	}
	if a.GetFailure() != nil {
		return run.Untold(FailureOf(a.GetFailure())), true
	}
	return run.Answered(JSON(a.GetDetails()["result"]))
}

// RunLabel names what a run does by what it is about: "execute site-crawler on lnch_…"; ok is
// false for other activities.
func RunLabel(activity string, input *commonpb.Payloads) (label string, ok bool) {
	if activity != run.ActivityExecute {
		return "", false
	}
	var in struct {
		Input struct {
			AgentName string `json:"agent_name"`
			TaskName  string `json:"task_name"`
		} `json:"input"`
		Claim struct {
			Runner string `json:"runner_id"`
			Queue  string `json:"queue"`
		} `json:"claim"`
	}
	if json.Unmarshal(JSON(input), &in) != nil {
		return "", false
	}
	label = "execute " + cmp.Or(in.Input.TaskName, in.Input.AgentName, "the run")
	if where := cmp.Or(in.Claim.Runner, in.Claim.Queue); where != "" {
		label += " on " + where
	}
	return label, true
}
