package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// Kinds of commands.
const (
	kindActivity = "activity"
	kindTimer    = "timer"
	kindChild    = "child workflow"
	kindSignal   = "signal to another workflow"
	kindCancel   = "cancel of another workflow"
	kindMarker   = "marker"
	kindLocal    = "local activity"
	kindUpdate   = "update"
	kindAttrs    = "search attributes"
	kindMemo     = "memo"
	kindNexus    = "nexus operation"
	kindComplete = "completion"
	kindFail     = "failure"
	kindCanceled = "cancellation"
	kindNew      = "continue as new"
)

// Names of the markers that the Go SDK writes.
const (
	markerSideEffect    = "SideEffect"
	markerVersion       = "Version"
	markerMutable       = "MutableSideEffect"
	markerLocalActivity = "LocalActivity"
)

// recorded is a command of a history: the event that it led to.
type recorded struct {
	Command
	event *historypb.HistoryEvent
}

// commandOf is the command that led to an event and the workflow task it belongs to;
// false for events that are none, or that replaying does not compare: version markers,
// which may be taken out of the code, and cancellations, which follow from the context.
func commandOf(e *historypb.HistoryEvent) (Command, int64, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		return Command{kindActivity, a.GetActivityType().GetName(), a.GetActivityId(), inputOf(a.GetInput())}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		a := e.GetTimerStartedEventAttributes()
		return Command{kindTimer, "", a.GetTimerId(), a.GetStartToFireTimeout().AsDuration().String()}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetStartChildWorkflowExecutionInitiatedEventAttributes()
		return Command{kindChild, a.GetWorkflowType().GetName(), a.GetWorkflowId(), inputOf(a.GetInput())}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()
		return Command{kindSignal, a.GetSignalName(), a.GetWorkflowExecution().GetWorkflowId(), inputOf(a.GetInput())}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetRequestCancelExternalWorkflowExecutionInitiatedEventAttributes()
		return Command{Kind: kindCancel, ID: a.GetWorkflowExecution().GetWorkflowId()}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		a := e.GetMarkerRecordedEventAttributes()
		if a.GetMarkerName() == markerLocalActivity {
			return Command{Kind: kindLocal, Name: localOf(a)}, a.GetWorkflowTaskCompletedEventId(), true
		}
		compared := a.GetMarkerName() != markerVersion && a.GetMarkerName() != markerMutable
		return Command{Kind: kindMarker, Name: a.GetMarkerName()}, a.GetWorkflowTaskCompletedEventId(), compared
	case enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		a := e.GetUpsertWorkflowSearchAttributesEventAttributes()
		_, version := a.GetSearchAttributes().GetIndexedFields()["TemporalChangeVersion"]
		return Command{Kind: kindAttrs}, a.GetWorkflowTaskCompletedEventId(), !version
	case enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
		return Command{Kind: kindMemo}, e.GetWorkflowPropertiesModifiedEventAttributes().GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED:
		a := e.GetNexusOperationScheduledEventAttributes()
		return Command{Kind: kindNexus, Name: a.GetService() + "." + a.GetOperation()}, a.GetWorkflowTaskCompletedEventId(), true
	}
	return closingOf(e)
}

// acceptedOf is the update that an event says was accepted. The event names no workflow
// task: it is the last one completed.
func acceptedOf(e *historypb.HistoryEvent) (Command, bool) {
	a := e.GetWorkflowExecutionUpdateAcceptedEventAttributes()
	return Command{Kind: kindUpdate, Name: a.GetAcceptedRequest().GetInput().GetName(), ID: a.GetProtocolInstanceId()}, a != nil
}

func closingOf(e *historypb.HistoryEvent) (Command, int64, bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		a := e.GetWorkflowExecutionCompletedEventAttributes()
		return Command{Kind: kindComplete, Detail: inputOf(a.GetResult())}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		a := e.GetWorkflowExecutionFailedEventAttributes()
		return Command{Kind: kindFail, Detail: a.GetFailure().GetMessage()}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return Command{Kind: kindCanceled}, e.GetWorkflowExecutionCanceledEventAttributes().GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		a := e.GetWorkflowExecutionContinuedAsNewEventAttributes()
		return Command{Kind: kindNew, Name: a.GetWorkflowType().GetName()}, a.GetWorkflowTaskCompletedEventId(), true
	}
	return Command{}, 0, false
}

// localOf is the type of a local activity, "" where its marker cannot be read here.
func localOf(a *historypb.MarkerRecordedEventAttributes) string {
	var data struct{ ActivityType string }
	for _, p := range a.GetDetails()["data"].GetPayloads() {
		if json.Unmarshal(p.GetData(), &data) == nil {
			return data.ActivityType
		}
	}
	return ""
}

// inputOf is an input or result in a word: its size and the begin of its digest, since a command is
// compared and shown, not read. Payloads are compared by their data alone: metadata may
// grow with the SDK.
func inputOf(p *commonpb.Payloads) string {
	if len(p.GetPayloads()) == 0 {
		return ""
	}
	h, n := sha256.New(), 0
	for _, one := range p.GetPayloads() {
		h.Write([]byte(strconv.Itoa(len(one.GetData())) + ":"))
		h.Write(one.GetData())
		n += len(one.GetData())
	}
	return strconv.Itoa(n) + " bytes, " + hex.EncodeToString(h.Sum(nil)[:4])
}

func lengthOf(d time.Duration) string { return d.String() }
