package compare

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// Kinds of steps.
const (
	KindStart    = "start"
	KindActivity = "activity"
	KindTool     = "tool call"
	KindChild    = "child workflow"
	KindTimer    = "timer"
	KindSignal   = "signal"
	KindMarker   = "marker"
	KindEnd      = "end"
)

// Ways in which a step ends.
const (
	Done      = "done"
	Failed    = "failed"
	TimedOut  = "timed out"
	Cancelled = "cancelled"
	Open      = "open"
)

// Step is one thing that a run did. Input and Result are JSON, nil where there is none
// or where it is not JSON; then Note says what it is.
type Step struct {
	Key        string          `json:"key"` // what it is in both runs: kind, name, and which time
	Kind       string          `json:"kind"`
	Name       string          `json:"name"`
	Event      int64           `json:"event_id"`
	End        int64           `json:"end_event_id,omitempty"`
	At         time.Time       `json:"at"`
	DurationMS float64         `json:"duration_ms"`
	Attempt    int32           `json:"attempt,omitempty"`
	Status     string          `json:"status"`
	Error      string          `json:"error,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Note       string          `json:"note,omitempty"`
}

// stepper takes a history apart.
type stepper struct {
	steps  []Step
	open   map[int64]int // step by the event that began it
	times  map[string]int
	prefix string // of this run's own ids, which name the same thing otherwise in another run
	fold   ace.State
	dec    history.Decoder
}

// Steps takes a history apart, in order. Tool calls come behind the activity whose
// session made them.
func Steps(events []*historypb.HistoryEvent) ([]Step, *ace.State) {
	s := &stepper{open: map[int64]int{}, times: map[string]int{}}
	for _, e := range events {
		s.take(e)
		if fact, ok, _ := s.dec.Fact(e); ok {
			s.fold.Apply(fact)
			if fact.Kind == ace.FactStepCompleted && fact.Step == ace.PhaseSkills {
				s.tools(e)
			}
		}
	}
	return s.steps, &s.fold
}

func (s *stepper) begin(e *historypb.HistoryEvent, kind, name, id string, input *commonpb.Payloads) {
	key := kind + " " + name
	if id != "" {
		key += " " + id
	}
	s.times[key]++
	if n := s.times[key]; n > 1 || id == "" && kind != KindStart && kind != KindEnd {
		key += fmt.Sprintf(" #%d", n)
	}
	st := Step{Key: key, Kind: kind, Name: name, Event: e.GetEventId(), At: e.GetEventTime().AsTime(), Status: Open}
	st.Input, st.Note = payload(input)
	s.open[e.GetEventId()] = len(s.steps)
	s.steps = append(s.steps, st)
}

// end ends the step that an event began.
func (s *stepper) end(e *historypb.HistoryEvent, began int64, status string, result *commonpb.Payloads, f *failurepb.Failure) {
	i, ok := s.open[began]
	if !ok {
		return
	}
	delete(s.open, began)
	st := &s.steps[i]
	st.End, st.Status = e.GetEventId(), status
	st.DurationMS = float64(e.GetEventTime().AsTime().Sub(st.At)) / float64(time.Millisecond)
	var note string
	if st.Result, note = payload(result); note != "" {
		st.Note = note
	}
	if f != nil {
		st.Error = history.FailureOf(f).Message
	}
}

func (s *stepper) once(e *historypb.HistoryEvent, kind, name string, input *commonpb.Payloads) {
	s.begin(e, kind, name, "", input)
	s.end(e, e.GetEventId(), Done, nil, nil)
}

func (s *stepper) take(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a := e.GetWorkflowExecutionStartedEventAttributes()
		s.prefix = ownPrefix(a.GetWorkflowId())
		s.once(e, KindStart, a.GetWorkflowType().GetName(), a.GetInput())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		s.once(e, KindSignal, a.GetSignalName(), a.GetInput())
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		s.once(e, KindMarker, e.GetMarkerRecordedEventAttributes().GetMarkerName(), nil)
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		s.begin(e, KindTimer, e.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration().String(), "", nil)
	case enumspb.EVENT_TYPE_TIMER_FIRED:
		s.end(e, e.GetTimerFiredEventAttributes().GetStartedEventId(), Done, nil, nil)
	case enumspb.EVENT_TYPE_TIMER_CANCELED:
		s.end(e, e.GetTimerCanceledEventAttributes().GetStartedEventId(), Cancelled, nil, nil)
	default:
		s.activity(e)
		s.child(e)
		s.close(e)
	}
}

func (s *stepper) activity(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		s.begin(e, KindActivity, a.GetActivityType().GetName(), "", a.GetInput())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		a := e.GetActivityTaskStartedEventAttributes()
		if i, ok := s.open[a.GetScheduledEventId()]; ok {
			s.steps[i].Attempt = a.GetAttempt()
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		s.end(e, a.GetScheduledEventId(), Done, a.GetResult(), nil)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		s.end(e, a.GetScheduledEventId(), Failed, nil, a.GetFailure())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		s.end(e, a.GetScheduledEventId(), TimedOut, nil, a.GetFailure())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		s.end(e, e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), Cancelled, nil, nil)
	}
}

func (s *stepper) child(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetStartChildWorkflowExecutionInitiatedEventAttributes()
		s.begin(e, KindChild, a.GetWorkflowType().GetName(), strings.TrimPrefix(ace.TaskIDOf(a.GetWorkflowId()), s.prefix), a.GetInput())
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
		a := e.GetStartChildWorkflowExecutionFailedEventAttributes()
		s.end(e, a.GetInitiatedEventId(), Failed, nil, &failurepb.Failure{Message: a.GetCause().String()})
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
		a := e.GetChildWorkflowExecutionCompletedEventAttributes()
		s.end(e, a.GetInitiatedEventId(), Done, a.GetResult(), nil)
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		a := e.GetChildWorkflowExecutionFailedEventAttributes()
		s.end(e, a.GetInitiatedEventId(), Failed, nil, a.GetFailure())
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
		s.end(e, e.GetChildWorkflowExecutionTimedOutEventAttributes().GetInitiatedEventId(), TimedOut, nil, nil)
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		s.end(e, e.GetChildWorkflowExecutionCanceledEventAttributes().GetInitiatedEventId(), Cancelled, nil, nil)
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		s.end(e, e.GetChildWorkflowExecutionTerminatedEventAttributes().GetInitiatedEventId(), Failed, nil, &failurepb.Failure{Message: "terminated"})
	}
}

func (s *stepper) close(e *historypb.HistoryEvent) {
	finish := func(status string, result *commonpb.Payloads, f *failurepb.Failure) {
		s.begin(e, KindEnd, "run", "", nil)
		s.end(e, e.GetEventId(), status, result, f)
	}
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		finish(Done, e.GetWorkflowExecutionCompletedEventAttributes().GetResult(), nil)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		finish(Failed, nil, e.GetWorkflowExecutionFailedEventAttributes().GetFailure())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		finish(TimedOut, nil, nil)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		finish(Cancelled, nil, nil)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		finish(Failed, nil, &failurepb.Failure{Message: "terminated: " + e.GetWorkflowExecutionTerminatedEventAttributes().GetReason()})
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		finish(Done, e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetInput(), nil)
	}
}

// tools adds the calls of the session that an event ended.
func (s *stepper) tools(e *historypb.HistoryEvent) {
	for _, c := range s.fold.Calls() {
		s.times[c.Name]++
		st := Step{Key: fmt.Sprintf("%s %s #%d", KindTool, c.Name, s.times[c.Name]), Kind: KindTool, Name: c.Name, Event: e.GetEventId(),
			At: c.At, DurationMS: c.DurationMS, Status: Done, Error: c.Error, Input: c.Args, Result: c.Result}
		switch {
		case !c.Accepted:
			st.Status = "denied"
		case c.Pending:
			st.Status = Open
		case !c.OK:
			st.Status = Failed
		}
		s.steps = append(s.steps, st)
	}
}

// ownPrefix is what a run's children have in their ids from its own.
func ownPrefix(workflowID string) string {
	if id, ok := strings.CutPrefix(workflowID, ace.ExperimentIDPrefix); ok {
		return id + "-"
	}
	return ""
}

// payload is JSON, or a note of what it is instead.
func payload(p *commonpb.Payloads) (json.RawMessage, string) {
	switch n := len(p.GetPayloads()); {
	case n == 0:
		return nil, ""
	case n == 1:
		data := history.JSONOf(nil, p.GetPayloads()[0])
		if data == nil {
			return nil, fmt.Sprintf("%d bytes, encoded as %s", len(p.GetPayloads()[0].GetData()), p.GetPayloads()[0].GetMetadata()["encoding"])
		}
		return data, ""
	}
	list := make([]json.RawMessage, 0, len(p.GetPayloads()))
	for _, one := range p.GetPayloads() {
		data := history.JSONOf(nil, one)
		if data == nil {
			data, _ = json.Marshal(fmt.Sprintf("(%d bytes, encoded as %s)", len(one.GetData()), one.GetMetadata()["encoding"]))
		}
		list = append(list, data)
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, "the arguments are not JSON"
	}
	return data, ""
}
