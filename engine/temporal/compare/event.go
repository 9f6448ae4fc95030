package compare

import (
	"encoding/json"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
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

// external adds updates and calls of other workflows and services.
func (s *builder) external(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
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
	case enumspb.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:
		s.end(e, e.GetExternalWorkflowExecutionSignaledEventAttributes().GetInitiatedEventId(), Done, nil, nil)
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED:
		a := e.GetSignalExternalWorkflowExecutionFailedEventAttributes()
		s.end(e, a.GetInitiatedEventId(), Failed, nil, &failurepb.Failure{Message: a.GetCause().String()})
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED:
		a := e.GetNexusOperationScheduledEventAttributes()
		s.begin(e, KindExternal, a.GetService()+"/"+a.GetOperation(), "", list(a.GetInput()))
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_COMPLETED:
		a := e.GetNexusOperationCompletedEventAttributes()
		s.end(e, a.GetScheduledEventId(), Done, list(a.GetResult()), nil)
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_FAILED:
		a := e.GetNexusOperationFailedEventAttributes()
		s.end(e, a.GetScheduledEventId(), Failed, nil, a.GetFailure())
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_TIMED_OUT:
		s.end(e, e.GetNexusOperationTimedOutEventAttributes().GetScheduledEventId(), TimedOut, nil, nil)
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_CANCELED:
		s.end(e, e.GetNexusOperationCanceledEventAttributes().GetScheduledEventId(), Cancelled, nil, nil)
	}
}

func list(p *commonpb.Payload) *commonpb.Payloads {
	if p == nil {
		return nil
	}
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{p}}
}

func (s *builder) activity(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		s.setLoaded(s.begin(e, KindActivity, a.GetActivityType().GetName(), s.ownID(a.GetActivityId()), a.GetInput()))
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

func (s *builder) child(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetStartChildWorkflowExecutionInitiatedEventAttributes()
		s.begin(e, KindChild, a.GetWorkflowType().GetName(), s.childID(a.GetWorkflowId()), a.GetInput())
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
		a := e.GetChildWorkflowExecutionTerminatedEventAttributes()
		s.end(e, a.GetInitiatedEventId(), Failed, nil, &failurepb.Failure{Message: "terminated"})
	}
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
