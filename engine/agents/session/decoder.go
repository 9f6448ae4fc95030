package session

import (
	"encoding/json"
	"maps"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/history"
)

// Decoder turns the events of one run of a session, in order from the first, into facts. The
// zero value is ready to use.
type Decoder struct {
	open map[int64]openActivity // by scheduled event id
	task history.WorkflowTask
}

type openActivity struct{ name, callID string }

// Clone returns an independent copy of the decoder.
func (d *Decoder) Clone() *Decoder {
	return &Decoder{open: maps.Clone(d.open), task: d.task}
}

// Fact returns the fact of an event; ok is false if the event is no fact. The error reports an
// input that does not match the contract.
func (d *Decoder) Fact(e *historypb.HistoryEvent) (f Fact, ok bool, err error) {
	c, closes := d.task.Closing(e)
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		var in Input
		input := history.JSON(e.GetWorkflowExecutionStartedEventAttributes().GetInput())
		if err := json.Unmarshal(input, &in); err != nil {
			return Fact{}, false, err
		}
		return Started(in), true, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		r := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest()
		f, ok = Accepted(r.GetInput().GetName(), r.GetMeta().GetUpdateId(),
			history.JSON(r.GetInput().GetArgs()))
		return f, ok, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return Fact{Kind: FactCancelRequested}, true, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return Fact{}, false, nil
	}
	if f, ok = d.signal(e); ok {
		return f, true, nil
	}
	if f, ok = d.activity(e); ok {
		return f, true, nil
	}
	return Closed(c.Status, c.Failure), closes, nil
}

// signal decodes signals to the session, and its reports to other workflows.
func (d *Decoder) signal(e *historypb.HistoryEvent) (f Fact, ok bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		return Signaled(a.GetSignalName(), history.JSON(a.GetInput()))
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()
		var r Report
		if a.GetSignalName() != SignalReport || json.Unmarshal(history.JSON(a.GetInput()), &r) != nil {
			return Fact{}, false
		}
		return Reported(r.MessageID), true
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
		return Fact{Kind: FactReportUndelivered}, true
	}
	return Fact{}, false
}

func (d *Decoder) activity(e *historypb.HistoryEvent) (f Fact, ok bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		return d.scheduled(e)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
		id := e.GetActivityTaskCancelRequestedEventAttributes().GetScheduledEventId()
		return Fact{Kind: FactTurnCancelRequested}, d.open[id].name == ActivityTurn
	}
	end, ok := history.EndingOf(e)
	act, known := d.open[end.Started]
	if !ok || !known {
		return Fact{}, false
	}
	delete(d.open, end.Started)
	if end.Status == history.EndCompleted {
		return ActivityCompleted(act.name, act.callID, history.JSON(end.Result)), true
	}
	return ActivityFailed(act.name, act.callID, end.Reason()), true
}

// scheduled remembers an activity of the session. A turn begins with its activity.
func (d *Decoder) scheduled(e *historypb.HistoryEvent) (f Fact, ok bool) {
	a := e.GetActivityTaskScheduledEventAttributes()
	act := openActivity{name: a.GetActivityType().GetName()}
	var turn *TurnInput
	switch act.name {
	case ActivityClaim:
	case ActivityTurn:
		turn = &TurnInput{}
		if json.Unmarshal(history.JSON(a.GetInput()), turn) != nil {
			return Fact{}, false
		}
	case ActivityTool:
		var call ToolCall
		_ = json.Unmarshal(history.JSON(a.GetInput()), &call)
		act.callID = call.ID
	default:
		return Fact{}, false
	}
	if d.open == nil {
		d.open = map[int64]openActivity{}
	}
	d.open[e.GetEventId()] = act
	return Fact{Kind: FactTurnBegan, Turn: turn}, turn != nil
}

// ActivityLabel names an activity of a session, such as "turn 3" or "tool read_file"; ok is
// false for other activities.
func ActivityLabel(activity string, input *commonpb.Payloads) (label string, ok bool) {
	var in struct {
		Turn int    `json:"turn"`
		Name string `json:"name"`
	}
	if activity != ActivityTurn && activity != ActivityTool ||
		json.Unmarshal(history.JSON(input), &in) != nil {
		return "", false
	}
	switch {
	case activity == ActivityTurn && in.Turn > 0:
		return "turn " + strconv.Itoa(in.Turn), true
	case activity == ActivityTool && in.Name != "":
		return "tool " + in.Name, true
	}
	return "", false
}

// UpdateText summarizes the argument of a session's update in one line, or returns "" if the
// update's name says enough.
func UpdateText(name string, arg *commonpb.Payloads) string {
	f, ok := Accepted(name, "", history.JSON(arg))
	if !ok {
		return ""
	}
	switch u := f.Update.(type) {
	case *Message:
		return u.Text
	case *ToolRequest:
		return u.Name
	case *Decision:
		return string(u.Action) + " " + u.ID
	case *Interrupt:
		return u.Reason
	case *Stop:
		return u.Reason
	case *Move:
		return u.Host.Name
	}
	return ""
}
