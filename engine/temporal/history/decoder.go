// Package history reads Temporal's history events and errors as facts of the contract. The
// workflow and the readers of its history use the same functions, so that both fold the same
// facts. The package may import engine/ace and Temporal's API and SDK types; it does no I/O.
//
// Order: facts come in the order of the events. Loss: events that do not concern the run
// give no fact; an unreadable payload gives a fact that says so.
package history

import (
	"encoding/json"
	"maps"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// Decoder converts the events of one ACE run, passed in order from the first, into facts.
// The zero value is ready to use.
type Decoder struct {
	steps  map[int64]ace.Phase // phases of the open activities, by scheduled event ID
	timers map[int64]string    // summaries of the timers of the contract, by started event ID
	task   WorkflowTask
}

// Fact returns the fact that the event states about the run, or false if it does not state a fact. Of
// payloads that do not fit the contract it reads the parts that fit; the fact names the other parts. The
// error reports an input that does not fit the contract.
func (d *Decoder) Fact(e *historypb.HistoryEvent) (ace.Fact, bool, error) {
	closing, closes := d.task.Closing(e)
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a := e.GetWorkflowExecutionStartedEventAttributes()
		fact, err := ace.ReadStarted(JSON(a.GetInput()), Unread(a.GetInput()), a.GetWorkflowType().GetName())
		return fact, true, err
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		switch a.GetSignalName() {
		case ace.SignalToolEvent:
			return ace.ReadToolEvents(JSON(a.GetInput()), e.GetEventId()), true, nil
		case ace.SignalReview:
			return ace.ReviewedFrom(JSON(a.GetInput())), true, nil
		}
		return ace.Fact{}, false, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return ace.CancelRequested(), true, nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return ace.Fact{}, false, nil // the task continues under another run ID
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		phase, ok := d.schedule(e.GetEventId(), e.GetActivityTaskScheduledEventAttributes())
		return ace.StepScheduled(phase), ok, nil
	}
	if fact, ok := d.step(e); ok {
		return fact, true, nil
	}
	if fact, ok := d.timer(e); ok {
		return fact, true, nil
	}
	return closing, closes, nil
}

func (d *Decoder) step(e *historypb.HistoryEvent) (ace.Fact, bool) {
	end, ok := EndingOf(e)
	if !ok {
		return ace.Fact{}, false
	}
	phase, ok := d.steps[end.Started]
	delete(d.steps, end.Started)
	switch {
	case !ok:
		return ace.Fact{}, false
	case end.Status == EndCompleted:
		return ace.ReadStep(phase, JSON(end.Result), Unread(end.Result)), true
	}
	return ace.StepFailed(phase, end.Reason()), true
}

func (d *Decoder) schedule(id int64, a *historypb.ActivityTaskScheduledEventAttributes) (ace.Phase, bool) {
	phase, ok := ace.StepOf(a.GetActivityType().GetName())
	if a.GetActivityType().GetName() == ace.ActivityLoadStep {
		var in ace.LoadStepInput
		ok = json.Unmarshal(JSON(a.GetInput()), &in) == nil
		phase = in.Phase
	}
	if !ok || phase.Activity() == "" {
		return "", false
	}
	if d.steps == nil {
		d.steps = map[int64]ace.Phase{}
	}
	d.steps[id] = phase
	return phase, true
}

// timer returns the fact that the start or the end of a timer of the contract states.
func (d *Decoder) timer(e *historypb.HistoryEvent) (ace.Fact, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		var summary string
		data := PayloadJSON(e.GetUserMetadata().GetSummary())
		if json.Unmarshal(data, &summary) != nil || summary != ace.TimerIdle && summary != ace.TimerReview {
			break
		}
		if d.timers == nil {
			d.timers = map[int64]string{}
		}
		d.timers[e.GetEventId()] = summary
		if summary == ace.TimerReview {
			limit := e.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration()
			return ace.ReviewOpened(e.GetEventTime().AsTime().Add(limit)), true
		}
	case enumspb.EVENT_TYPE_TIMER_FIRED:
		switch d.timers[e.GetTimerFiredEventAttributes().GetStartedEventId()] {
		case ace.TimerIdle:
			return ace.IdleTimeout(), true
		case ace.TimerReview:
			return ace.ReviewTimeout(), true
		}
	}
	return ace.Fact{}, false
}

// Clone returns an independent copy that can decode further events.
func (d *Decoder) Clone() *Decoder {
	return &Decoder{steps: maps.Clone(d.steps), timers: maps.Clone(d.timers), task: d.task}
}

// Closing applies an event, and returns the fact that it states about the end of the run, or false for other
// events. The failure of a run that timed out or was terminated says what was wrong with its workflow task.
func (t *WorkflowTask) Closing(e *historypb.HistoryEvent) (ace.Fact, bool) {
	t.Apply(e)
	f := &ace.Failure{Kind: ace.TimedOut, Message: "the workflow timed out"}
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return ace.Closed(ace.Completed, nil), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return ace.Closed(ace.ContinuedAsNew, nil), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return ace.Closed(ace.Canceled, nil), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		*f = FailureOf(e.GetWorkflowExecutionFailedEventAttributes().GetFailure())
		return ace.Closed(ace.Failed, f), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		f.Kind, f.Type = ace.Terminated, ace.TypeTerminated
		f.Message = e.GetWorkflowExecutionTerminatedEventAttributes().GetReason()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
	default:
		return ace.Fact{}, false
	}
	f.Message = strings.TrimPrefix(f.Message+t.Trouble(e.GetEventTime()), "; ")
	return ace.Closed(f.Kind, f), true
}

// ExperimentDecoder converts the events of one experiment run, passed in order from the
// first, into facts. The zero value is ready to use.
type ExperimentDecoder struct {
	activities map[int64]string // types of the open activities, by scheduled event ID
	task       WorkflowTask
}

// Fact returns the fact that the event states about the experiment, or false if it does not state a fact. The
// error reports an input that does not fit the contract.
func (d *ExperimentDecoder) Fact(e *historypb.HistoryEvent) (ace.ExperimentFact, bool, error) {
	closing, closes := d.task.Closing(e)
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		fact, err := ace.ExperimentStartedFrom(
			JSON(e.GetWorkflowExecutionStartedEventAttributes().GetInput()))
		return fact, err == nil, err
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		if d.activities == nil {
			d.activities = map[int64]string{}
		}
		d.activities[e.GetEventId()] = e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		fact, ok := d.activity(e.GetActivityTaskCompletedEventAttributes())
		return fact, ok, nil
	}
	if fact, ok := taskEnded(e); ok {
		return fact, true, nil
	}
	if !closes {
		return ace.ExperimentFact{}, false, nil
	}
	return ace.ExperimentFact{Closed: &ace.ExperimentClosed{Status: closing.Status,
			Failure: closing.Failure}},
		true, nil
}

func (d *ExperimentDecoder) activity(a *historypb.ActivityTaskCompletedEventAttributes) (ace.ExperimentFact,
	bool) {
	name := d.activities[a.GetScheduledEventId()]
	delete(d.activities, a.GetScheduledEventId())
	data := JSON(a.GetResult())
	switch name {
	case ace.ActivityHead:
		var r ace.HeadResult
		return ace.ExperimentFact{Head: &r}, json.Unmarshal(data, &r) == nil
	case ace.ActivityEvaluate:
		var r ace.EvaluateResult
		return ace.ExperimentFact{Evaluated: &r}, json.Unmarshal(data, &r) == nil
	case ace.ActivityPlanTrials:
		var r ace.PlanTrialsResult
		return ace.ExperimentFact{Planned: &r}, json.Unmarshal(data, &r) == nil
	}
	return ace.ExperimentFact{}, false
}

// taskEnded returns the fact that the closing event of a child workflow states, or false
// for other events.
func taskEnded(e *historypb.HistoryEvent) (ace.ExperimentFact, bool) {
	var f ace.Failure
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
		var r ace.TaskResult
		data := JSON(e.GetChildWorkflowExecutionCompletedEventAttributes().GetResult())
		err := json.Unmarshal(data, &r)
		if err == nil {
			return ace.ExperimentFact{Completed: &r}, true
		}
		f = ace.Failure{Kind: ace.Failed, Type: ace.TypeBadResult, Message: err.Error()}
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		f = FailureOf(e.GetChildWorkflowExecutionFailedEventAttributes().GetFailure())
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		f = Canceled()
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
		f = ace.Failure{Kind: ace.TimedOut, Message: "the task timed out"}
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		f = ace.Failure{Kind: ace.Terminated, Type: "Terminated", Message: "the task was terminated"}
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
		f = ace.Failure{Kind: ace.Failed, Type: "NotStarted", Message: "a task of that id was there already"}
	default:
		return ace.ExperimentFact{}, false
	}
	return ace.ExperimentFact{Failed: &f}, true
}

// Clone returns an independent copy that can decode further events.
func (d *ExperimentDecoder) Clone() *ExperimentDecoder {
	return &ExperimentDecoder{activities: maps.Clone(d.activities), task: d.task}
}
