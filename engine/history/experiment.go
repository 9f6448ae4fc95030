package history

import (
	"encoding/json"
	"maps"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// ExperimentDecoder turns the events of one experiment run, given in order from the
// first, into facts. The zero value is ready.
type ExperimentDecoder struct {
	activities map[int64]string // by scheduled event id, while they are open
}

// Fact is what the event says of the experiment; false where it says nothing. The error
// tells of an input that does not fit the contract.
func (d *ExperimentDecoder) Fact(e *historypb.HistoryEvent) (ace.ExperimentFact, bool, error) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		fact, err := ace.ExperimentStartedFrom(JSON(e.GetWorkflowExecutionStartedEventAttributes().GetInput()))
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
	if fact, ok := TaskEnded(e); ok {
		return fact, true, nil
	}
	if fact, ok := closed(e); ok {
		return ace.ExperimentFact{Closed: &ace.Closing{Exit: fact.Exit, Failure: fact.Failure}}, true, nil
	}
	return ace.ExperimentFact{}, false, nil
}

func (d *ExperimentDecoder) activity(a *historypb.ActivityTaskCompletedEventAttributes) (ace.ExperimentFact, bool) {
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
	}
	return ace.ExperimentFact{}, false
}

// TaskEnded is what the event of a child workflow's end says; false for other events.
func TaskEnded(e *historypb.HistoryEvent) (ace.ExperimentFact, bool) {
	failed := func(f ace.Failure) (ace.ExperimentFact, bool) { return ace.ExperimentFact{Failed: &f}, true }
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
		var r ace.TaskResult
		data := JSON(e.GetChildWorkflowExecutionCompletedEventAttributes().GetResult())
		if err := json.Unmarshal(data, &r); err != nil {
			return failed(ace.Failure{Kind: ace.Failed, Type: ace.TypeBadResult, Message: err.Error()})
		}
		return ace.ExperimentFact{Ended: &r}, true
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		return failed(FailureOf(e.GetChildWorkflowExecutionFailedEventAttributes().GetFailure()))
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		return failed(cancelled())
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
		return failed(ace.Failure{Kind: ace.Timeout, Message: "the task timed out"})
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		return failed(ace.Failure{Kind: ace.Failed, Type: "Terminated", Message: "the task was terminated"})
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
		return failed(ace.Failure{Kind: ace.Failed, Type: "NotStarted", Message: "a task of that id was there already"})
	}
	return ace.ExperimentFact{}, false
}

// Clone is a copy to go on with from here.
func (d *ExperimentDecoder) Clone() *ExperimentDecoder {
	return &ExperimentDecoder{activities: maps.Clone(d.activities)}
}
