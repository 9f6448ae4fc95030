package history

import (
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine/ace"
)

// Ending is the end of a workflow task, activity, child workflow, timer, Nexus operation or update, or of the
// delivery of a signal or cancel request.
type Ending struct {
	Started int64 // ID of the event that scheduled, initiated or started it
	Status  EndStatus
	Result  *commonpb.Payloads
	Failure *failurepb.Failure // nil if the event records none
}

// EndStatus is the status of an [Ending].
type EndStatus uint8

// Statuses of an ending. A timer that fired and a request that was delivered are completed.
const (
	EndCompleted EndStatus = iota + 1
	EndFailed
	EndTimedOut
	EndCanceled
	EndTerminated
	EndRejected
	EndContinued
)

// endNames are the ends of the names of events that end something.
var endNames = []struct {
	suffix string
	status EndStatus
}{{"Completed", EndCompleted}, {"Fired", EndCompleted}, {"ExternalWorkflowExecutionSignaled", EndCompleted},
	{"ExternalWorkflowExecutionCancelRequested", EndCompleted}, {"Failed", EndFailed},
	{"TimedOut", EndTimedOut}, {"Canceled", EndCanceled}, {"Terminated", EndTerminated}, {"Rejected",
		EndRejected},
	{"ContinuedAsNew", EndContinued}}

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

// EndStatusOf returns how an event ends the run or a part of it, or 0 if it ends nothing.
func EndStatusOf(e *historypb.HistoryEvent) EndStatus {
	switch t := e.GetEventType(); t {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED, enumspb.EVENT_TYPE_MARKER_RECORDED:
		_, f := Outcome(e)
		if f.GetActivityFailureInfo() != nil { // the Java SDK wraps the failure of a local activity
			f = f.GetCause()
		}
		switch {
		case f == nil:
			return EndCompleted
		case f.GetCanceledFailureInfo() != nil:
			return EndCanceled
		case f.GetTimeoutFailureInfo() != nil:
			return EndTimedOut
		}
		return EndFailed
	default:
		for _, end := range endNames {
			if strings.HasSuffix(t.String(), end.suffix) {
				return end.status
			}
		}
		return 0
	}
}

// EndingOf returns the ending that an event states. It returns false for other events, for the end of the
// run, and for the failure of a local activity that will be retried.
func EndingOf(e *historypb.HistoryEvent) (Ending, bool) {
	end := Ending{Status: EndStatusOf(e)}
	if end.Status == 0 {
		return end, false
	}
	switch a := Attributes(e).(type) {
	case *historypb.MarkerRecordedEventAttributes:
		if !MarkerOf(a).Local.Retried {
			end.Started = e.GetEventId()
		}
	case interface{ GetRequestedEventId() int64 }:
		end.Started = a.GetRequestedEventId()
	default:
		end.Started = RootOf(e)
	}
	end.Result, end.Failure = Outcome(e)
	return end, end.Started != 0
}

// RootOf returns the ID of the event that scheduled, initiated, admitted, accepted or started the work of an
// event, or 0.
func RootOf(e *historypb.HistoryEvent) int64 {
	switch a := Attributes(e).(type) {
	case interface{ GetScheduledEventId() int64 }:
		return a.GetScheduledEventId()
	case interface{ GetInitiatedEventId() int64 }:
		return a.GetInitiatedEventId()
	case interface{ GetAcceptedEventId() int64 }:
		return a.GetAcceptedEventId()
	case interface{ GetStartedEventId() int64 }:
		return a.GetStartedEventId()
	case *historypb.WorkflowExecutionUpdateAcceptedEventAttributes:
		if a.GetAcceptedRequest() == nil { // a reset admitted the request again
			return a.GetAcceptedRequestSequencingEventId()
		}
	}
	return 0
}

// Outcome returns the result or failure that an ending, or the event that closes a run, records.
// The result of a run that continues as new is the input of the next run.
func Outcome(e *historypb.HistoryEvent) (*commonpb.Payloads, *failurepb.Failure) {
	switch a := Attributes(e).(type) {
	case *historypb.WorkflowExecutionContinuedAsNewEventAttributes: // which has GetFailure too
		return a.GetInput(), nil
	case *historypb.WorkflowExecutionUpdateCompletedEventAttributes:
		return a.GetOutcome().GetSuccess(), a.GetOutcome().GetFailure()
	case *historypb.MarkerRecordedEventAttributes:
		return MarkerOf(a).Result, a.GetFailure()
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
	case *historypb.RequestCancelExternalWorkflowExecutionFailedEventAttributes:
		return nil, &failurepb.Failure{Message: a.GetCause().String()}
	case *historypb.ChildWorkflowExecutionTerminatedEventAttributes:
		return nil, &failurepb.Failure{Message: "terminated"}
	case *historypb.ChildWorkflowExecutionTimedOutEventAttributes:
		return nil, &failurepb.Failure{Message: "the child workflow timed out",
			FailureInfo: &failurepb.Failure_TimeoutFailureInfo{ // as the Go SDK reports it
				TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{
					TimeoutType: enumspb.TIMEOUT_TYPE_START_TO_CLOSE}}}
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
