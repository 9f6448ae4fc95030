package history

import (
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine/ace"
)

// Ending is the end of an activity, child workflow, timer, Nexus operation, or signal to another
// workflow.
type Ending struct {
	Started int64 // ID of the event that scheduled, initiated or started it
	Status  EndStatus
	Result  *commonpb.Payloads
	Failure *failurepb.Failure // nil if the event records none
}

// EndStatus is the status of an [Ending].
type EndStatus int

// Statuses of an ending. A timer that fired is completed.
const (
	EndCompleted EndStatus = iota + 1
	EndFailed
	EndTimedOut
	EndCanceled
)

var endStatuses = map[enumspb.EventType]EndStatus{
	enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:                   EndCompleted,
	enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:                      EndFailed,
	enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:                   EndTimedOut,
	enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:                    EndCanceled,
	enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:     EndFailed,
	enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:        EndCompleted,
	enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:           EndFailed,
	enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:        EndTimedOut,
	enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:         EndCanceled,
	enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:       EndFailed,
	enumspb.EVENT_TYPE_TIMER_FIRED:                               EndCompleted,
	enumspb.EVENT_TYPE_TIMER_CANCELED:                            EndCanceled,
	enumspb.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED:      EndCompleted,
	enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED: EndFailed,
	enumspb.EVENT_TYPE_NEXUS_OPERATION_COMPLETED:                 EndCompleted,
	enumspb.EVENT_TYPE_NEXUS_OPERATION_FAILED:                    EndFailed,
	enumspb.EVENT_TYPE_NEXUS_OPERATION_TIMED_OUT:                 EndTimedOut,
	enumspb.EVENT_TYPE_NEXUS_OPERATION_CANCELED:                  EndCanceled,
}

var closeStatuses = map[enumspb.EventType]enumspb.WorkflowExecutionStatus{
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:        enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:           enumspb.WORKFLOW_EXECUTION_STATUS_FAILED,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:         enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:       enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:        enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
	enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW: enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
}

// CloseStatus returns the status of a run whose last event has the type, or false if such an
// event does not close a run.
func CloseStatus(t enumspb.EventType) (enumspb.WorkflowExecutionStatus, bool) {
	status, ok := closeStatuses[t]
	return status, ok
}

// EndingOf returns the ending that an event states, or false for other events.
func EndingOf(e *historypb.HistoryEvent) (Ending, bool) {
	status, ok := endStatuses[e.GetEventType()]
	if !ok {
		return Ending{}, false
	}
	end := Ending{Status: status}
	switch a := Attributes(e).(type) {
	case interface{ GetScheduledEventId() int64 }:
		end.Started = a.GetScheduledEventId()
	case interface{ GetInitiatedEventId() int64 }:
		end.Started = a.GetInitiatedEventId()
	case interface{ GetStartedEventId() int64 }:
		end.Started = a.GetStartedEventId()
	}
	end.Result, end.Failure = Outcome(e)
	return end, true
}

// Outcome returns the result or failure that an ending, or the event that closes a run, records.
// The result of a run that continues as new is the input of the next run.
func Outcome(e *historypb.HistoryEvent) (*commonpb.Payloads, *failurepb.Failure) {
	switch a := Attributes(e).(type) {
	case *historypb.WorkflowExecutionContinuedAsNewEventAttributes: // which has GetFailure too
		return a.GetInput(), nil
	case interface{ GetResult() *commonpb.Payloads }:
		return a.GetResult(), nil
	case interface{ GetResult() *commonpb.Payload }:
		return PayloadList(a.GetResult()), nil
	case interface{ GetFailure() *failurepb.Failure }:
		return nil, a.GetFailure()
	case *historypb.WorkflowExecutionTerminatedEventAttributes:
		return nil, &failurepb.Failure{Message: "terminated: " + a.GetReason()}
	case *historypb.StartChildWorkflowExecutionFailedEventAttributes:
		return nil, &failurepb.Failure{Message: a.GetCause().String()}
	case *historypb.SignalExternalWorkflowExecutionFailedEventAttributes:
		return nil, &failurepb.Failure{Message: a.GetCause().String()}
	case *historypb.ChildWorkflowExecutionTerminatedEventAttributes:
		return nil, &failurepb.Failure{Message: "terminated"}
	}
	return nil, nil
}

// Reason returns why the operation did not complete.
func (e Ending) Reason() ace.Failure {
	if e.Status == EndCanceled {
		return Canceled()
	}
	return FailureOf(e.Failure)
}

// PayloadList returns a list of one payload, or nil for nil.
func PayloadList(p *commonpb.Payload) *commonpb.Payloads {
	if p == nil {
		return nil
	}
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{p}}
}

var attributesOneof = (&historypb.HistoryEvent{}).ProtoReflect().Descriptor().Oneofs().ByName("attributes")

// Attributes returns the attributes of an event, or nil for an event without attributes.
func Attributes(e *historypb.HistoryEvent) proto.Message {
	m := e.ProtoReflect()
	field := m.WhichOneof(attributesOneof)
	if field == nil {
		return nil
	}
	return m.Get(field).Message().Interface()
}
