package history

import (
	"encoding/json"
	"maps"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/session"
)

// SessionDecoder turns the events of one run of an agent session, given in order from the
// first, into facts. The zero value is ready.
type SessionDecoder struct {
	open map[int64]sessionActivity // by scheduled event id
}

type sessionActivity struct{ name, callID string }

// Clone is a decoder that goes on by itself from the same place.
func (d *SessionDecoder) Clone() *SessionDecoder {
	return &SessionDecoder{open: maps.Clone(d.open)}
}

// Fact is what the event says of the session; false where it says nothing. The error
// tells of an input that does not fit the contract.
func (d *SessionDecoder) Fact(e *historypb.HistoryEvent) (session.Fact, bool, error) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		var in session.Input
		if err := json.Unmarshal(JSON(e.GetWorkflowExecutionStartedEventAttributes().GetInput()), &in); err != nil {
			return session.Fact{}, false, err
		}
		return session.Started(in), true, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		r := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest()
		f, ok := session.Accepted(r.GetInput().GetName(), r.GetMeta().GetUpdateId(), JSON(r.GetInput().GetArgs()))
		return f, ok, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return session.CancelRequested(), true, nil
	}
	if f, ok := d.signal(e); ok {
		return f, true, nil
	}
	if f, ok := d.activity(e); ok {
		return f, true, nil
	}
	if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW {
		return session.Fact{}, false, nil
	}
	c, ok := closed(e)
	return session.Closed(c.Exit, c.Failure), ok, nil
}

// signal is what a signal tells: one to the session, or a report of it to another workflow.
func (d *SessionDecoder) signal(e *historypb.HistoryEvent) (session.Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		return session.Signalled(a.GetSignalName(), JSON(a.GetInput()))
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()
		var r session.Report
		if a.GetSignalName() != session.SignalReport || json.Unmarshal(JSON(a.GetInput()), &r) != nil {
			return session.Fact{}, false
		}
		return session.Reported(r.MessageID), true
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
		return session.Unheard(), true
	}
	return session.Fact{}, false
}

func (d *SessionDecoder) activity(e *historypb.HistoryEvent) (session.Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return d.scheduled(e)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
		id := e.GetActivityTaskCancelRequestedEventAttributes().GetScheduledEventId()
		return session.TurnCut(), d.open[id].name == session.ActivityTurn
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		if act, ok := d.ended(a.GetScheduledEventId()); ok {
			return session.Ended(act.name, act.callID, JSON(a.GetResult())), true
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		if act, ok := d.ended(a.GetScheduledEventId()); ok {
			return session.Failed(act.name, act.callID, FailureOf(a.GetFailure())), true
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		if act, ok := d.ended(a.GetScheduledEventId()); ok {
			return session.Failed(act.name, act.callID, FailureOf(a.GetFailure())), true
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		a := e.GetActivityTaskCanceledEventAttributes()
		if act, ok := d.ended(a.GetScheduledEventId()); ok {
			return session.Failed(act.name, act.callID, cancelled()), true
		}
	}
	return session.Fact{}, false
}

// scheduled remembers an activity of the session; a turn has begun with it.
func (d *SessionDecoder) scheduled(e *historypb.HistoryEvent) (session.Fact, bool) {
	a := e.GetActivityTaskScheduledEventAttributes()
	act := sessionActivity{name: a.GetActivityType().GetName()}
	var turn *session.TurnInput
	switch act.name {
	case session.ActivityClaim:
	case session.ActivityTurn:
		turn = &session.TurnInput{}
		if json.Unmarshal(JSON(a.GetInput()), turn) != nil {
			return session.Fact{}, false
		}
	case session.ActivityTool:
		var call session.ToolCall
		_ = json.Unmarshal(JSON(a.GetInput()), &call)
		act.callID = call.ID
	default:
		return session.Fact{}, false
	}
	if d.open == nil {
		d.open = map[int64]sessionActivity{}
	}
	d.open[e.GetEventId()] = act
	return session.Fact{Kind: session.FactTurnBegan, Turn: turn}, turn != nil
}

func (d *SessionDecoder) ended(scheduled int64) (sessionActivity, bool) {
	act, ok := d.open[scheduled]
	delete(d.open, scheduled)
	return act, ok
}

// SessionLabel names an activity of a session by what it is about: "turn 3", "tool
// read_file"; ok is false for other activities.
func SessionLabel(activity string, input *commonpb.Payloads) (label string, ok bool) {
	switch activity {
	case session.ActivityTurn:
		var in struct {
			Turn int `json:"turn"`
		}
		if json.Unmarshal(JSON(input), &in) == nil && in.Turn > 0 {
			return "turn " + strconv.Itoa(in.Turn), true
		}
	case session.ActivityTool:
		var in struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(JSON(input), &in) == nil && in.Name != "" {
			return "tool " + in.Name, true
		}
	}
	return "", false
}

// SessionUpdate says in a line what an update of a session asks for, "" where its name
// says it all.
func SessionUpdate(name string, arg *commonpb.Payloads) string {
	f, ok := session.Accepted(name, "", JSON(arg))
	if !ok {
		return ""
	}
	switch u := f.Update.(type) {
	case *session.Message:
		return u.Text
	case *session.ToolRequest:
		return u.Name
	case *session.Decision:
		return string(u.Action) + " " + u.ID
	case *session.Interrupt:
		return u.Reason
	case *session.Stop:
		return u.Reason
	}
	return ""
}
