package histories

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	updatepb "go.temporal.io/api/update/v1"
	"google.golang.org/protobuf/proto"

	"acescope/sources/historytest"
)

func unlucky(message string) *failurepb.Failure {
	return &failurepb.Failure{Message: message, FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
		ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "Unlucky"}}}
}

func requestOf(update string) *updatepb.Request {
	return &updatepb.Request{Input: &updatepb.Input{Name: update}}
}

var other = &commonpb.WorkflowExecution{WorkflowId: "other"}

// eventsAfter returns the events of a run of another program that end with an event per attributes. The first
// of them has ID 5.
func eventsAfter(all ...proto.Message) []*historypb.HistoryEvent {
	b := historytest.New("Elsewhere", nil)
	for _, attributes := range all {
		b.End(time.Second, attributes)
	}
	return b.Events
}

var (
	operation = &historypb.NexusOperationScheduledEventAttributes{Service: "Greeter", Operation: "slow"}
	began     = &historypb.NexusOperationStartedEventAttributes{ScheduledEventId: 5}
	asked     = &historypb.NexusOperationCancelRequestedEventAttributes{ScheduledEventId: 5}
	delivered = &historypb.NexusOperationCancelRequestCompletedEventAttributes{ScheduledEventId: 5,
		RequestedEventId: 7}
	undelivered = &historypb.NexusOperationCancelRequestFailedEventAttributes{ScheduledEventId: 5,
		RequestedEventId: 7, Failure: unlucky("no handler")}
	accepted = &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{AcceptedRequest: requestOf("add")}
	refused  = &historypb.WorkflowExecutionUpdateCompletedEventAttributes{AcceptedEventId: 5,
		Outcome: &updatepb.Outcome{Value: &updatepb.Outcome_Failure{Failure: unlucky("thirteen")}}}
	signal = &historypb.SignalExternalWorkflowExecutionInitiatedEventAttributes{SignalName: "go",
		WorkflowExecution: other}
	cancel = &historypb.RequestCancelExternalWorkflowExecutionInitiatedEventAttributes{WorkflowExecution: other}
	closed = &historypb.WorkflowExecutionCompletedEventAttributes{}
)

func localActivity(data string, f *failurepb.Failure) *historypb.MarkerRecordedEventAttributes {
	return &historypb.MarkerRecordedEventAttributes{MarkerName: "core_local_activity", Failure: f,
		Details: map[string]*commonpb.Payloads{"data": historytest.Payload("json/plain", []byte(data))}}
}

// A request, and its delivery, are not the end of what it is about.
func TestSpansOfRequests(t *testing.T) {
	book := `{"activity_type":"book","activity_id":"3","attempt":1}`
	for i, c := range []struct {
		events []proto.Message
		want   string // span, state, note or error
	}{
		{[]proto.Message{operation, began, asked}, "Greeter/slow running is asked to cancel"},
		{[]proto.Message{operation, began, asked, delivered},
			"Greeter/slow running received the cancel request"},
		{[]proto.Message{operation, began, asked, undelivered},
			"Greeter/slow running did not receive the cancel request: Unlucky: no handler"},
		{[]proto.Message{operation, began, asked, delivered,
			&historypb.NexusOperationCompletedEventAttributes{ScheduledEventId: 5}},
			"Greeter/slow done received the cancel request"},
		{[]proto.Message{operation, began, asked, delivered,
			&historypb.NexusOperationCanceledEventAttributes{ScheduledEventId: 5}},
			"Greeter/slow canceled received the cancel request"},
		{[]proto.Message{&historypb.ActivityTaskScheduledEventAttributes{
			ActivityType: &commonpb.ActivityType{Name: "charge"}},
			&historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: 5},
			&historypb.ActivityTaskCancelRequestedEventAttributes{ScheduledEventId: 5}},
			"charge running is asked to cancel"},
		{[]proto.Message{&historypb.WorkflowExecutionCancelRequestedEventAttributes{}},
			"Elsewhere running is asked to cancel"},
		{[]proto.Message{accepted}, "add running"},
		{[]proto.Message{accepted, refused}, "add failed Unlucky: thirteen"},
		{[]proto.Message{accepted, &historypb.WorkflowExecutionUpdateCompletedEventAttributes{
			AcceptedEventId: 5}}, "add done"},
		{[]proto.Message{&historypb.WorkflowExecutionUpdateAdmittedEventAttributes{Request: requestOf("add")}},
			"add scheduled"},
		{[]proto.Message{&historypb.WorkflowExecutionUpdateAdmittedEventAttributes{Request: requestOf("add")},
			&historypb.WorkflowExecutionUpdateAcceptedEventAttributes{AcceptedRequestSequencingEventId: 5},
			&historypb.WorkflowExecutionUpdateCompletedEventAttributes{AcceptedEventId: 6,
				Outcome: refused.Outcome}}, "add failed Unlucky: thirteen"},
		{[]proto.Message{signal}, "go other scheduled"},
		{[]proto.Message{signal, closed}, "go other scheduled"}, // whether it was delivered is not recorded
		{[]proto.Message{signal, &historypb.ExternalWorkflowExecutionSignaledEventAttributes{
			InitiatedEventId: 5}}, "go other done"},
		{[]proto.Message{signal, &historypb.SignalExternalWorkflowExecutionFailedEventAttributes{
			InitiatedEventId: 5, Cause: 1, WorkflowExecution: other}},
			"go other failed other: ExternalWorkflowExecutionNotFound"},
		{[]proto.Message{cancel}, "cancel request to other scheduled"},
		{[]proto.Message{cancel, &historypb.ExternalWorkflowExecutionCancelRequestedEventAttributes{
			InitiatedEventId: 5}}, "cancel request to other done"},
		{[]proto.Message{cancel, &historypb.RequestCancelExternalWorkflowExecutionFailedEventAttributes{
			InitiatedEventId: 5, Cause: 1, WorkflowExecution: other}},
			"cancel request to other failed other: ExternalWorkflowExecutionNotFound"},
		{[]proto.Message{localActivity(book, nil)}, "book done"},
		{[]proto.Message{localActivity(book, unlucky("disk full"))}, "book failed Unlucky: disk full"},
		{[]proto.Message{localActivity(`{"activity_type":"book","attempt":2,"backoff":{"seconds":9}}`,
			unlucky("disk full"))}, "book failed attempt 2, to be retried: Unlucky: disk full"},
	} {
		l := NewEventLog("w", "r", eventsAfter(c.events...), historytest.Start)
		var spans []string
		for _, s := range l.Spans {
			spans = append(spans, strings.TrimSpace(fmt.Sprintf("%s %s %s%s", s.Name, s.State, s.Error,
				s.Note)))
		}
		if !slices.Contains(spans, c.want) {
			t.Errorf("%d: %q, want %q", i, spans, c.want)
		}
	}
}

// The words, the filter of errors and the changes agree with the spans.
func TestWordsOfRequests(t *testing.T) {
	for _, c := range []struct {
		events []proto.Message
		failed bool
		words  string // of the last event
		change string
	}{
		{[]proto.Message{accepted, refused}, true, "update add failed: Unlucky: thirteen",
			"update add failed: thirteen"},
		{[]proto.Message{operation, began, asked, delivered}, false,
			"nexus Greeter/slow received the cancel request", ""},
		{[]proto.Message{operation, began, asked, undelivered}, true,
			"nexus Greeter/slow did not receive the cancel request: Unlucky: no handler",
			"cancel request to slow failed: no handler"},
		{[]proto.Message{cancel}, false, "cancel request to other is scheduled: other", ""},
		{[]proto.Message{cancel, &historypb.RequestCancelExternalWorkflowExecutionFailedEventAttributes{
			InitiatedEventId: 5, Cause: 1}}, true,
			"cancel request to other failed: ExternalWorkflowExecutionNotFound",
			"cancel request to other failed: ExternalWorkflowExecutionNotFound"},
		{[]proto.Message{&historypb.WorkflowExecutionUpdateAdmittedEventAttributes{
			Request: requestOf("add")}}, false, "update add was admitted", ""},
		{[]proto.Message{localActivity(`{"activity_type":"book"}`, unlucky("disk full"))}, true,
			"marker book failed: Unlucky: disk full", "book failed: disk full"},
		{[]proto.Message{localActivity(`{"activity_type":"book","backoff":{"seconds":9}}`, unlucky("x"))},
			true,
			"marker book failed: attempt 0, to be retried: Unlucky: x", ""},
		{[]proto.Message{localActivity(`{"activity_type":"book"}`, nil)}, false, "marker book was recorded",
			""},
		{[]proto.Message{&historypb.StartChildWorkflowExecutionInitiatedEventAttributes{
			WorkflowType: &commonpb.WorkflowType{Name: "Child"}},
			&historypb.ChildWorkflowExecutionTimedOutEventAttributes{InitiatedEventId: 5}}, true,
			"child Child timed out: StartToClose: the child workflow timed out",
			"Child timed_out: the child workflow timed out"},
	} {
		events := eventsAfter(c.events...)
		l := NewEventLog("w", "r", events, historytest.Start)
		e := l.Row(l.Len() - 1)
		if words := l.words(e); words != c.words || e.Error != c.failed {
			t.Errorf("%q %t, want %q %t", words, e.Error, c.words, c.failed)
		}
		m, err := EventFilter{Errors: true}.Compile()
		if err != nil || m.Event(l, e) != c.failed {
			t.Errorf("%q: filter of errors, %v", c.words, err)
		}
		f := NewFolder("w", "r")
		changes := ""
		for _, e := range events[4:] {
			for _, change := range f.Apply(e) {
				changes += change.Text()
			}
		}
		if changes != c.change {
			t.Errorf("%q: changes %q, want %q", c.words, changes, c.change)
		}
	}
}
