package workflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	updatepb "go.temporal.io/api/update/v1"

	"acescope/engine/kind"
	"acescope/engine/kind/kinds"
	"acescope/engine/stepper"
	"acescope/engine/temporal/replay/replaytest"
)

// order is a run of a workflow that acescope does not know, with every kind of operation.
func order() *replaytest.History {
	m := replaytest.Begin("OrderWorkflow")
	start := m.Events[0].GetWorkflowExecutionStartedEventAttributes()
	start.Input = replaytest.Encoded(map[string]int{"order": 7})
	start.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{"note": one("first"), "gone": one("x")}}
	m.Events[0].UserMetadata = &sdkpb.UserMetadata{Summary: one("seven books")}
	at := m.Append(&historypb.WorkflowTaskScheduledEventAttributes{Attempt: 1})
	m.Append(&historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: at})
	task := m.Append(&historypb.WorkflowTaskCompletedEventAttributes{ScheduledEventId: at,
		SdkMetadata: &sdkpb.WorkflowTaskCompletedMetadata{SdkName: "temporal-python", SdkVersion: "1.35.0"}})

	charge := m.Activity(task, "charge", map[string]int{"cents": 1999})
	began := m.Append(&historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: charge, Attempt: 2,
		LastFailure: application("card declined")})
	m.Append(&historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: charge, StartedEventId: began,
		Result: replaytest.Encoded("paid")})
	mail := m.Activity(task, "mail")
	began = m.Append(&historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: mail, Attempt: 1})
	m.Append(&historypb.ActivityTaskFailedEventAttributes{ScheduledEventId: mail, StartedEventId: began,
		Failure: application("no such host")})

	m.ChildDone(m.Child(task, "ShipmentWorkflow", "ship-7"), "ShipmentWorkflow", "ship-7")
	m.Fired(m.Timer(task, time.Minute))
	m.Append(&historypb.WorkflowExecutionSignaledEventAttributes{SignalName: "address",
		Input: replaytest.Encoded("Main St")})
	accepted := m.Append(&historypb.WorkflowExecutionUpdateAcceptedEventAttributes{
		AcceptedRequest: &updatepb.Request{Input: &updatepb.Input{Name: "add", Args: replaytest.Encoded(3)}}})
	m.Append(&historypb.WorkflowExecutionUpdateCompletedEventAttributes{AcceptedEventId: accepted,
		Outcome: &updatepb.Outcome{Value: &updatepb.Outcome_Failure{Failure: application("too many")}}})
	nexus := m.Append(&historypb.NexusOperationScheduledEventAttributes{Endpoint: "bank", Service: "ledger",
		Operation: "book"})
	m.Append(&historypb.NexusOperationStartedEventAttributes{ScheduledEventId: nexus})
	m.Append(&historypb.NexusOperationCancelRequestedEventAttributes{ScheduledEventId: nexus})
	m.Append(&historypb.NexusOperationCancelRequestCompletedEventAttributes{ScheduledEventId: nexus})
	m.Append(&historypb.WorkflowPropertiesModifiedEventAttributes{UpsertedMemo: &commonpb.Memo{
		Fields: map[string]*commonpb.Payload{"note": one("second"),
			"gone": {Metadata: map[string][]byte{"encoding": []byte("binary/null")}}}}})
	return m
}

func one(v any) *commonpb.Payload { return replaytest.Encoded(v).Payloads[0] }

func application(message string) *failurepb.Failure {
	return &failurepb.Failure{Message: message, FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
		ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "OrderError"}}}
}

// describe returns the sections at the end as lines: title, remark, head, outcome, then the fields.
func describe(events []*historypb.HistoryEvent) string {
	f := kinds.Of("OrderWorkflow").New()
	for _, e := range events {
		f.Apply(e)
	}
	var b strings.Builder
	for _, s := range f.Sections(kind.Books{}, nil) {
		for _, i := range s.Items {
			fmt.Fprintf(&b, "%s: %s", strings.TrimSpace(s.Title+" "+s.Remark),
				strings.TrimSpace(i.Head+" "+string(i.Outcome)))
			for _, field := range i.Fields {
				fmt.Fprintf(&b, " %s=%s", field.Label, field.Text)
			}
			if i.Run != nil {
				fmt.Fprintf(&b, " run=%s", i.Run.RunID)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestSections(t *testing.T) {
	m := order()
	got := describe(m.Events)
	for _, want := range []string{
		"Workflow OrderWorkflow:  status=running workflow task=completed task queue=q " +
			`SDK=temporal-python 1.35.0 summary=seven books input={"order":7}`,
		`Activities: charge ok input={"cents":1999} result="paid" ` +
			"attempts=2; the one before failed: card declined waited=1s took=1s",
		"Activities: mail failed waited=1s took=1s error=OrderError: no such host",
		"Child workflows: ShipmentWorkflow ok", "workflow=ship-7 run=child-run",
		"Timers: timer ok took=1s note=1m0s",
		`Signals received: address input="Main St"`,
		"Updates: add failed input=3 took=1s error=OrderError: too many",
		"Nexus operations: ledger/book running waited=1s note=cancel request delivered",
		"Memo:  note=second\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "gone") {
		t.Errorf("a field that was set to null is shown:\n%s", got)
	}
	m.Append(&historypb.WorkflowExecutionFailedEventAttributes{Failure: application("out of stock")})
	if got := describe(m.Events); !strings.Contains(got, "Failure: OrderError failed =out of stock") {
		t.Error(got)
	}
}

// The calls of an agent are described once, with their sums; what is not understood keeps its payloads.
func TestCallSections(t *testing.T) {
	m := replaytest.Begin("Desk")
	task := m.Task()
	m.Done(m.Activity(task, "CallChatModel", map[string]any{"messages": []string{"Hi"},
		"model_options": map[string]string{"model": "gpt-5"}}),
		map[string]any{"generations": []any{map[string]any{"message": map[string]any{
			"tool_calls": []any{map[string]any{"id": "c1", "name": "look_up", "arguments": "{}"},
				map[string]any{"id": "c2", "name": "ask", "arguments": "{}"}}}}},
			"metadata": map[string]any{"usage": map[string]int{"prompt_tokens": 5, "completion_tokens": 7}}})
	m.Done(m.Activity(task, "look_up", 3), "found")
	m.Done(m.Activity(task, "invoke_model", map[string]string{"text": "of another shape"}), "well")
	m.Done(m.Activity(task, "charge", 4), "paid")
	m.Append(&historypb.WorkflowExecutionCompletedEventAttributes{})
	got := describe(m.Events)
	for _, want := range []string{
		"Usage spring-ai: all requests=2 tokens=12 (5 input, 7 output), 1 of 2 requests not recorded",
		"Model and tool calls: gpt-5 ok user=Hi answer=look_up({})\nask({}) tokens=12 (5 input, 7 output)",
		`Model and tool calls: look_up ok input={} result="found"`,
		"Model and tool calls: ask unknown input={} note=the history does not record its result",
		`Model and tool calls: invoke_model ok tokens=not recorded cost=unknown ` +
			`input={"text":"of another shape"} result="well"`,
		`Activities: charge ok input=4 result="paid"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Count(got, "look_up ok") != 1 {
		t.Errorf("a call is described twice:\n%s", got)
	}
}

// Every event changes the state, and the states are the same forward and backward.
func TestEveryEventChanges(t *testing.T) {
	s := stepper.New(order().Events, stepper.Options{})
	var forward []string
	for pos := 1; pos <= s.Len(); pos++ {
		f := s.Frame(pos)
		if len(f.Changes) == 0 {
			t.Errorf("event %d (%s) changes nothing", pos, f.EventType)
		}
		forward = append(forward, state(t, s, pos))
	}
	for pos := s.Len(); pos >= 1; pos-- {
		if got := state(t, s, pos); got != forward[pos-1] {
			t.Fatalf("event %d backward\n%s\nforward\n%s", pos, got, forward[pos-1])
		}
	}
	if s.EventType(s.Marks(stepper.ByTool)[0]) != "ActivityTaskScheduled" ||
		len(s.Marks(stepper.ByError)) != 2 {
		t.Errorf("tools %v, errors %v", s.Marks(stepper.ByTool), s.Marks(stepper.ByError))
	}
}

func state(t *testing.T, s *stepper.Stepper, pos int) string {
	t.Helper()
	data, err := json.Marshal([]any{s.Values(pos), s.Sections(pos, kind.Books{})})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Many operations are counted, and the newest are described.
func TestManyOperations(t *testing.T) {
	m := replaytest.Begin("Loop")
	task := m.Task()
	for i := range 1200 {
		m.Done(m.Activity(task, "poll", i), i)
	}
	f := kinds.Of("Loop").New()
	for _, e := range m.Events {
		f.Apply(e)
	}
	for _, s := range f.Sections(kind.Books{}, nil) {
		if s.Title == "Activities" && (s.Remark != "the newest 100 of 1,200" || len(s.Items) != 100 ||
			!strings.Contains(fmt.Sprint(s.Items[99]), "1199")) {
			t.Errorf("%s: %d items", s.Remark, len(s.Items))
		}
	}
	for _, v := range f.Values() {
		if v.Path == "activities.poll.completed" && v.V != 1200 {
			t.Errorf("%v", v)
		}
	}
}

// A worker of another type that follows the contract is described as a task too.
func TestContractOfAnotherType(t *testing.T) {
	events := replaytest.Recorded(t, "wrong")
	events[0].GetWorkflowExecutionStartedEventAttributes().WorkflowType.Name = "AceInPython"
	s := stepper.New(events, stepper.Options{})
	titles := ""
	for _, section := range s.Sections(s.Len(), kind.Books{}) {
		titles += section.Title + ","
	}
	if !strings.Contains(titles, "Answer,") || !strings.Contains(titles, "Workflow,") || s.WrongAt() == 0 {
		t.Errorf("%s wrong at %d", titles, s.WrongAt())
	}
}

func TestChildTerminated(t *testing.T) {
	m := replaytest.Begin("Parent")
	child := m.Child(m.Task(), "C", "c")
	m.Append(&historypb.ChildWorkflowExecutionTerminatedEventAttributes{InitiatedEventId: child})
	if got := describe(m.Events); !strings.Contains(got, "Child workflows: C terminated") {
		t.Error(got)
	}
	m.Append(&historypb.StartChildWorkflowExecutionFailedEventAttributes{
		InitiatedEventId: m.Child(4, "C", "d"),
		Cause:            enumspb.START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS})
	if got := describe(m.Events); !strings.Contains(got, "error=WorkflowAlreadyExists") {
		t.Error(got)
	}
}
