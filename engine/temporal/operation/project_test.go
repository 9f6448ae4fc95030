package operation

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/temporal/replay/replaytest"
)

// projected is a history under construction.
type projected struct{ replaytest.History }

func payloads(t *testing.T, values ...any) *commonpb.Payloads {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(values...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (m *projected) scheduled(kind, id string, input *commonpb.Payloads) int64 {
	return m.Append(&historypb.ActivityTaskScheduledEventAttributes{ActivityId: id,
		ActivityType: &commonpb.ActivityType{Name: kind}, Input: input})
}

func (m *projected) completed(scheduled int64, result *commonpb.Payloads) {
	m.Append(&historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: scheduled, Result: result})
}

func (m *projected) marker(name string, failure *failurepb.Failure, details map[string]*commonpb.Payloads) {
	m.Append(&historypb.MarkerRecordedEventAttributes{MarkerName: name, Details: details, Failure: failure})
}

func request(step string) Request {
	return Request{OperationID: idOf(prefixOperation, step, "", 1), Type: Action, Step: step, Occurrence: 1,
		Parameters: json.RawMessage(`{"p":1}`)}
}

func typesOf(events []Event) (types []EventType) {
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}

// TestS2_13 checks that every failed operation gives operation_failed with its error, and that
// every event type can occur.
func TestS2_13(t *testing.T) {
	var m projected
	app := &failurepb.Failure{Message: "no",
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: TypeAgent, NonRetryable: true}}}
	id := m.scheduled("operation.action", "op.a.-.1", payloads(t, request("a")))
	m.Append(&historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: id, Attempt: 3})
	m.Append(&historypb.ActivityTaskFailedEventAttributes{ScheduledEventId: id, Failure: app})
	id = m.scheduled("operation.action", "op.b.-.1", payloads(t, request("b")))
	timeout := &failurepb.TimeoutFailureInfo{TimeoutType: enumspb.TIMEOUT_TYPE_HEARTBEAT}
	m.Append(&historypb.ActivityTaskTimedOutEventAttributes{ScheduledEventId: id,
		Failure: &failurepb.Failure{Message: "late",
			FailureInfo: &failurepb.Failure_TimeoutFailureInfo{TimeoutFailureInfo: timeout}}})
	id = m.scheduled("operation.action", "op.c.-.1", payloads(t, request("c")))
	m.Append(&historypb.ActivityTaskCanceledEventAttributes{ScheduledEventId: id})
	m.marker("LocalActivity", app,
		map[string]*commonpb.Payloads{"data": payloads(t,
			map[string]any{"ActivityID": "9", "ActivityType": "near", "Attempt": 2})})

	events := Project(m.Events)
	want := []EventType{OperationStarted, OperationFailed, OperationStarted, OperationFailed,
		OperationStarted, OperationFailed, OperationFailed}
	if !slices.Equal(typesOf(events), want) {
		t.Fatalf("%v", typesOf(events))
	}
	for i, kind := range map[int]ace.Status{1: ace.Failed, 3: ace.TimedOut, 5: ace.Canceled, 6: ace.Failed} {
		e := events[i]
		if e.Error == nil || e.Error.Kind != kind || e.Error.Message == "" || e.OperationID == "" ||
			e.Step == "" || e.OperationType == "" {
			t.Errorf("%+v %+v", e, e.Error)
		}
	}
	if events[1].Error.Type != TypeAgent || events[1].Attempt != 3 || events[1].At.IsZero() ||
		events[6].Attempt != 2 {
		t.Errorf("%+v", events[1])
	}

	one, low := workflow.DefaultVersion, workflow.DefaultVersion
	req := request("d")
	req.Variable = "v"
	req.Notes = []Note{{Event: TimeAccessed, Key: "time.now.-.1", Time: time.Unix(1, 0).UTC()},
		{Event: VersionDecision, Key: "old", Version: &one, Min: &low, Max: &one},
		{Event: VariableSet, Key: "w", Value: json.RawMessage("1")}}
	id = m.scheduled("operation.action", "op.d.-.1", payloads(t, req))
	m.completed(id, payloads(t, Result{OperationID: "op.d.-.1", Ref: &ace.Ref{SHA256: "ab", Size: 40000},
		Cached: true}))
	m.marker("SideEffect", nil, map[string]*commonpb.Payloads{"data": payloads(t,
		drawn{RandomGenerated, "random.x.-.1", "ff", json.RawMessage("4")})})
	seen := map[EventType]bool{}
	for _, e := range Project(m.Events) {
		seen[e.Type] = true
		if e.Type == OperationCompleted && (e.ResultRef == nil || !e.Cached || e.Result != nil) {
			t.Errorf("%+v", e)
		}
		if e.Type == VersionDecision && (*e.Version != workflow.DefaultVersion || e.ChangeID != "old" ||
			e.MinVersion == nil) {
			t.Errorf("%+v", e)
		}
	}
	for _, kind := range EventTypes() {
		if !seen[kind] && kind != StepChanged { // only flows have steps
			t.Errorf("no event %s", kind)
		}
	}
}

// TestForeign reads a history of a workflow that does not use this package.
func TestForeign(t *testing.T) {
	var m projected
	id := m.scheduled(ace.ActivityGenerator, "5", payloads(t, map[string]int{"n": 1}))
	m.completed(id, nil)
	id = m.scheduled("charge", "6", payloads(t, 1, "two", nil))
	m.completed(id, &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("binary/encrypted")}, Data: []byte("?")}}})
	m.completed(id, payloads(t, 1))   // twice
	m.completed(4711, payloads(t, 1)) // not scheduled
	m.marker("SideEffect", nil, map[string]*commonpb.Payloads{"data": payloads(t, "a uuid")})
	m.marker("SideEffect", nil, nil)
	m.marker("Version", nil, map[string]*commonpb.Payloads{"change-id": payloads(t, "c"),
		"version": payloads(t, 2)})
	m.marker("Version", nil, nil)
	m.marker("LocalActivity", nil,
		map[string]*commonpb.Payloads{"data": payloads(t,
			map[string]any{"ActivityID": "9", "ActivityType": "near"}), "result": payloads(t, 5)})
	m.marker("LocalActivity", nil, nil)
	m.scheduled("operation.action", "op.x.-.1", payloads(t, "not a request"))
	// without attributes
	m.Add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED})
	events := Project(m.Events)
	want := []EventType{OperationStarted, OperationCompleted, OperationStarted, OperationCompleted,
		RandomGenerated, RandomGenerated, VersionDecision,
		VersionDecision, OperationCompleted, OperationStarted, OperationStarted}
	if !slices.Equal(typesOf(events), want) {
		t.Fatalf("%v", typesOf(events))
	}
	if e := events[0]; e.OperationType != AgentResponse || e.Step != ace.ActivityGenerator ||
		e.OperationID != "5" || string(e.Parameters) != `{"n":1}` {
		t.Errorf("%+v", e)
	}
	if e := events[2]; e.OperationType != ExternalCall || string(e.Parameters) != `[1,"two",null]` {
		t.Errorf("%+v", e)
	}
	if !events[3].Unread || events[3].Result != nil || string(events[4].Data) != `"a uuid"` ||
		*events[6].Version != 2 || !events[7].Unread || string(events[8].Result) != "5" {
		t.Errorf("%+v", events[3:])
	}
	for _, e := range events {
		data, err := json.Marshal(e)
		var back Event
		if err != nil || json.Unmarshal(data, &back) != nil || !reflect.DeepEqual(e, back) {
			t.Errorf("%s, %v", data, err)
		}
	}
	if Project(nil) != nil {
		t.Error("events of an empty history")
	}
}
