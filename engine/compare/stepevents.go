package compare

import (
	"encoding/json"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
)

// marker takes what the SDKs record beside activities.
func (s *stepper) marker(e *historypb.HistoryEvent) {
	a := e.GetMarkerRecordedEventAttributes()
	d := a.GetDetails()
	name, result := a.GetMarkerName(), d["data"]
	varies := false
	switch name {
	case "Version":
		id, _, _ := s.payload(d["change-id"])
		name, result = "version "+plain(id), d["version"]
	case "SideEffect", "MutableSideEffect":
		name, varies = "side effect", !s.all
	case "LocalActivity":
		var about struct{ ActivityType string }
		data, _, _ := s.payload(d["data"])
		_ = json.Unmarshal(data, &about) // one without a name stays so
		name, result = "local activity "+about.ActivityType, d["result"]
	}
	s.begin(e, KindMarker, name, "", nil).varies = varies
	s.end(e, e.GetEventId(), Done, result, a.GetFailure())
	if a.GetFailure() != nil {
		s.steps[len(s.steps)-1].Status = Failed
	}
}

// plain is a JSON string without its quotes, other JSON as it is.
func plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// outside takes updates, and what the run asked of others.
func (s *stepper) outside(e *historypb.HistoryEvent) {
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
		s.begin(e, KindExternal, a.GetService()+"/"+a.GetOperation(), "", one(a.GetInput()))
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_COMPLETED:
		a := e.GetNexusOperationCompletedEventAttributes()
		s.end(e, a.GetScheduledEventId(), Done, one(a.GetResult()), nil)
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_FAILED:
		a := e.GetNexusOperationFailedEventAttributes()
		s.end(e, a.GetScheduledEventId(), Failed, nil, a.GetFailure())
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_TIMED_OUT:
		s.end(e, e.GetNexusOperationTimedOutEventAttributes().GetScheduledEventId(), TimedOut, nil, nil)
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_CANCELED:
		s.end(e, e.GetNexusOperationCanceledEventAttributes().GetScheduledEventId(), Cancelled, nil, nil)
	}
}

func one(p *commonpb.Payload) *commonpb.Payloads {
	if p == nil {
		return nil
	}
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{p}}
}

func (s *stepper) activity(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		s.loaded(s.begin(e, KindActivity, a.GetActivityType().GetName(), s.ownID(a.GetActivityId()), a.GetInput()))
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
		s.end(e, e.GetChildWorkflowExecutionTerminatedEventAttributes().GetInitiatedEventId(), Failed, nil, &failurepb.Failure{Message: "terminated"})
	}
}

func (s *stepper) close(e *historypb.HistoryEvent) {
	finish := func(status string, result *commonpb.Payloads, f *failurepb.Failure) {
		s.begin(e, KindEnd, "run", "", nil)
		s.end(e, e.GetEventId(), status, result, f)
		s.about.Open, s.about.Status = false, status
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
		finish(Continued, e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetInput(), nil)
	}
}
