// Package history reads Temporal's history events and errors as facts of the
// contract. The workflow and whoever reads its history use the same few functions, so
// that both fold the same facts. It may import engine/ace and Temporal's API and SDK
// types; it holds no connection and does no I/O.
//
// Order: facts come in the order of the events. Loss: events that say nothing of a run
// give no fact; a payload that cannot be read gives a fact that says so.
package history

import (
	"encoding/json"
	"maps"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"acescope/engine/ace"
)

// Decoder turns the events of one run, given in order from the first, into facts.
// The zero value is ready.
type Decoder struct {
	steps  map[int64]ace.Phase // by scheduled event id, while the activity is open
	silent map[int64]struct{}  // started event ids of the timers that give an observed run up
}

// Fact is what the event says of the run; false where it says nothing. The error tells
// of an input that does not fit the contract: the run is none that can be folded.
func (d *Decoder) Fact(e *historypb.HistoryEvent) (ace.Fact, bool, error) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		fact, err := ace.StartedFrom(JSON(e.GetWorkflowExecutionStartedEventAttributes().GetInput()))
		return fact, err == nil, err
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		if a.GetSignalName() != ace.SignalToolEvent {
			return ace.Fact{}, false, nil
		}
		return ace.ToolEventsFrom(JSON(a.GetInput())), true, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return ace.CancelRequested(), true, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return ace.Fact{}, false, nil // it goes on, under another run id
	}
	if fact, ok := d.step(e); ok {
		return fact, true, nil
	}
	if d.timer(e) {
		return ace.Silent(), true, nil
	}
	fact, ok := closed(e)
	return fact, ok, nil
}

func (d *Decoder) step(e *historypb.HistoryEvent) (ace.Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		d.schedule(e)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		if step, ok := d.finish(a.GetScheduledEventId()); ok {
			return ace.StepCompleted(step, JSON(a.GetResult())), true
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
		a := e.GetActivityTaskFailedEventAttributes()
		if step, ok := d.finish(a.GetScheduledEventId()); ok {
			return ace.StepFailed(step, FailureOf(a.GetFailure())), true
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
		a := e.GetActivityTaskTimedOutEventAttributes()
		if step, ok := d.finish(a.GetScheduledEventId()); ok {
			return ace.StepFailed(step, FailureOf(a.GetFailure())), true
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		a := e.GetActivityTaskCanceledEventAttributes()
		if step, ok := d.finish(a.GetScheduledEventId()); ok {
			return ace.StepFailed(step, cancelled()), true
		}
	}
	return ace.Fact{}, false
}

// timer tells whether the event is the end of the waiting for an observer who is silent.
func (d *Decoder) timer(e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		var summary string
		data := JSONOf(e.GetUserMetadata().GetSummary())
		if json.Unmarshal(data, &summary) == nil && summary == ace.TimerSilent {
			if d.silent == nil {
				d.silent = map[int64]struct{}{}
			}
			d.silent[e.GetEventId()] = struct{}{}
		}
	case enumspb.EVENT_TYPE_TIMER_FIRED:
		_, ok := d.silent[e.GetTimerFiredEventAttributes().GetStartedEventId()]
		return ok
	}
	return false
}

func (d *Decoder) schedule(e *historypb.HistoryEvent) {
	a := e.GetActivityTaskScheduledEventAttributes()
	step, ok := ace.StepOf(a.GetActivityType().GetName())
	if a.GetActivityType().GetName() == ace.ActivityLoadStep {
		var in ace.LoadStepInput
		ok = json.Unmarshal(JSON(a.GetInput()), &in) == nil
		step = in.Phase
	}
	if !ok {
		return
	}
	if d.steps == nil {
		d.steps = map[int64]ace.Phase{}
	}
	d.steps[e.GetEventId()] = step
}

func (d *Decoder) finish(scheduled int64) (ace.Phase, bool) {
	step, ok := d.steps[scheduled]
	delete(d.steps, scheduled)
	return step, ok
}

func closed(e *historypb.HistoryEvent) (ace.Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return ace.Closed(ace.Success, nil), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		f := FailureOf(e.GetWorkflowExecutionFailedEventAttributes().GetFailure())
		return ace.Closed(ace.Failed, &f), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return ace.Closed(ace.Timeout, &ace.Failure{Kind: ace.Timeout, Message: "the workflow timed out"}), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return ace.Closed(ace.Cancelled, nil), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		a := e.GetWorkflowExecutionTerminatedEventAttributes()
		return ace.Closed(ace.Failed, &ace.Failure{Kind: ace.Failed, Type: "Terminated", Message: a.GetReason()}), true
	}
	return ace.Fact{}, false
}

// JSON is the JSON of the first payload, nil where there is none or where it is not
// JSON (encoded or of another kind).
func JSON(p *commonpb.Payloads) []byte {
	if len(p.GetPayloads()) == 0 {
		return nil
	}
	return JSONOf(p.GetPayloads()[0])
}

// JSONOf is the JSON of one payload; nil where it is not JSON.
func JSONOf(p *commonpb.Payload) []byte {
	switch string(p.GetMetadata()[converter.MetadataEncoding]) {
	case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
		return p.GetData()
	}
	return nil
}

// MetaCodec is the metadata of a payload that a codec server could not decode: the reason,
// in a line. It is put there on the way in and never sent.
const MetaCodec = "acescope-codec-server"

// CodecReason is why a payload is still encoded, "" where no codec server was asked.
func CodecReason(p *commonpb.Payload) string { return string(p.GetMetadata()[MetaCodec]) }

// Clone is a copy to go on with from here.
func (d *Decoder) Clone() *Decoder {
	return &Decoder{steps: maps.Clone(d.steps), silent: maps.Clone(d.silent)}
}
