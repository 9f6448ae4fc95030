package compare

import (
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/history"
)

func (s *builder) marker(e *historypb.HistoryEvent) {
	m := history.MarkerOf(e.GetMarkerRecordedEventAttributes())
	name, random := m.Name, false
	switch m.Name {
	case history.MarkerVersion:
		name = "version " + m.Change
	case history.MarkerSideEffect, history.MarkerMutable:
		name, random = "side effect", !s.all
	case history.MarkerLocalActivity:
		name = "local activity " + m.Local.ActivityType
	}
	s.begin(e, KindMarker, name, "", nil).random = random
	s.end(e, e.GetEventId(), endStatuses[history.EndStatusOf(e)], m.Result, m.Failure)
}

// operation adds activities, child workflows, updates, and calls of other workflows and services.
func (s *builder) operation(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		name, id := a.GetActivityType().GetName(), s.ownID(a.GetActivityId())
		if label, ok := history.OperationLabel(a.GetActivityId()); ok {
			name, id = "operation", label
		}
		st := s.begin(e, KindActivity, name, id, a.GetInput())
		s.setLoaded(st)
		s.setOperation(st)
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
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()
		s.begin(e, KindExternal, "signal "+a.GetSignalName(), "", a.GetInput())
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED:
		a := e.GetNexusOperationScheduledEventAttributes()
		s.begin(e, KindExternal, a.GetService()+"/"+a.GetOperation(), "", history.PayloadList(a.GetInput()))
	}
}

var endStatuses = map[history.EndStatus]string{
	history.EndCompleted: Done, history.EndFailed: Failed, history.EndTimedOut: TimedOut,
	history.EndCanceled: Cancelled, history.EndTerminated: Failed, history.EndContinued: Continued,
}

func (s *builder) close(e *historypb.HistoryEvent) {
	if _, ok := history.CloseStatus(e.GetEventType()); !ok {
		return
	}
	status := endStatuses[history.EndStatusOf(e)]
	result, failure := history.Outcome(e)
	s.begin(e, KindEnd, "run", "", nil)
	s.end(e, e.GetEventId(), status, result, failure)
	s.about.Open = false
	s.about.Status = status
}
