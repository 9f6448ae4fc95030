package compare

import (
	"encoding/json"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/history"
)

// marker adds a step for a marker of the SDKs.
func (s *builder) marker(e *historypb.HistoryEvent) {
	a := e.GetMarkerRecordedEventAttributes()
	d := a.GetDetails()
	name, result := a.GetMarkerName(), d["data"]
	random := false
	switch name {
	case "Version":
		id, _, _ := s.payload(d["change-id"])
		name, result = "version "+plain(id), d["version"]
	case "SideEffect", "MutableSideEffect":
		name, random = "side effect", !s.all
	case "LocalActivity":
		var about struct{ ActivityType string }
		data, _, _ := s.payload(d["data"])
		_ = json.Unmarshal(data, &about) // the name may be missing
		name, result = "local activity "+about.ActivityType, d["result"]
	}
	s.begin(e, KindMarker, name, "", nil).random = random
	s.end(e, e.GetEventId(), Done, result, a.GetFailure())
	if a.GetFailure() != nil {
		s.steps[len(s.steps)-1].Status = Failed
	}
}

// plain returns JSON without the quotes of a string.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// operation adds activities, child workflows, updates, and calls of other workflows and services.
func (s *builder) operation(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		s.setLoaded(s.begin(e, KindActivity, a.GetActivityType().GetName(), s.ownID(a.GetActivityId()), a.GetInput()))
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		a := e.GetActivityTaskStartedEventAttributes()
		if i, ok := s.open[a.GetScheduledEventId()]; ok {
			s.steps[i].Attempt = a.GetAttempt()
		}
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetStartChildWorkflowExecutionInitiatedEventAttributes()
		s.begin(e, KindChild, a.GetWorkflowType().GetName(), s.childID(a.GetWorkflowId()), a.GetInput())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		r := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest()
		s.begin(e, KindUpdate, r.GetInput().GetName(), "", r.GetInput().GetArgs())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		a := e.GetWorkflowExecutionUpdateCompletedEventAttributes()
		if f := a.GetOutcome().GetFailure(); f != nil {
			s.end(e, a.GetAcceptedEventId(), Failed, nil, f)
		} else {
			s.end(e, a.GetAcceptedEventId(), Done, a.GetOutcome().GetSuccess(), nil)
		}
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()
		s.begin(e, KindExternal, "signal "+a.GetSignalName(), "", a.GetInput())
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED:
		a := e.GetNexusOperationScheduledEventAttributes()
		s.begin(e, KindExternal, a.GetService()+"/"+a.GetOperation(), "", history.PayloadList(a.GetInput()))
	}
}

// endStatuses maps the statuses of endings to those of steps.
var endStatuses = map[history.EndStatus]string{
	history.EndCompleted: Done, history.EndFailed: Failed, history.EndTimedOut: TimedOut, history.EndCanceled: Cancelled,
}

func (s *builder) close(e *historypb.HistoryEvent) {
	finish := func(status string, result *commonpb.Payloads, f *failurepb.Failure) {
		s.begin(e, KindEnd, "run", "", nil)
		s.end(e, e.GetEventId(), status, result, f)
		s.about.Open = false
		s.about.Status = status
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
		reason := e.GetWorkflowExecutionTerminatedEventAttributes().GetReason()
		finish(Failed, nil, &failurepb.Failure{Message: "terminated: " + reason})
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		finish(Continued, e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetInput(), nil)
	}
}
