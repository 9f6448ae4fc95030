package detail

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// jsonPayloads returns one JSON payload as Temporal's default converter writes it.
func jsonPayloads(v any) *commonpb.Payloads {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte(
		"json/plain")}, Data: data}}}
}

// historyBuilder builds histories.
type historyBuilder struct{ events []*historypb.HistoryEvent }

var madeStart = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func (m *historyBuilder) add(e *historypb.HistoryEvent) *historypb.HistoryEvent {
	e.EventId = int64(len(m.events) + 1)
	e.EventTime = timestamppb.New(madeStart.Add(time.Duration(len(m.events)) * time.Millisecond))
	m.events = append(m.events, e)
	return e
}

func (m *historyBuilder) start(in ace.TaskInput) {
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				WorkflowType: &commonpb.WorkflowType{Name: ace.TaskWorkflow}, Input: jsonPayloads(in)}}})
}

func (m *historyBuilder) signal(events ...ace.ToolEvent) {
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: ace.SignalToolEvent, Input: jsonPayloads(events)}}})
}

// longHistory has n events and calls tool calls, each reported by two signals.
func longHistory(calls, n int) []*historypb.HistoryEvent {
	m := &historyBuilder{}
	m.start(ace.TaskInput{TaskID: "long"})
	yes := true
	for i := range calls {
		id := fmt.Sprint("call-", i)
		name := []string{"look_up", "calculate", "inspect", "search", "fetch"}[i%5]
		at := madeStart.Add(time.Duration(i) * time.Millisecond)
		m.signal(ace.ToolEvent{EventID: id + "-use", CallID: id, Kind: ace.KindToolUse, Name: name, At: at,
			Args: json.RawMessage(fmt.Sprintf(`{"name":"return on equity","n":%d}`, i))})
		m.signal(ace.ToolEvent{EventID: id + "-result", CallID: id, Kind: ace.KindToolResult, OK: &yes,
			At:         at,
			DurationMS: float64(i%997) / 10, Result: json.RawMessage(`{"text":"net income / equity"}`)})
	}
	for len(m.events) < n {
		m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED})
	}
	return m.events
}

// BenchmarkFold50k folds a history of 50,000 events with 20,000 tool calls and publishes it thirty times.
func BenchmarkFold50k(b *testing.B) {
	events := longHistory(20_000, 50_000)
	b.ReportAllocs()
	for b.Loop() {
		w := newWatcher(linkTo(cluster.Deps{}), runs.ID{WorkflowID: "ace/long", RunID: "r"}, nil)
		for i, e := range events {
			if err := w.take(e); err != nil {
				b.Fatal(err)
			}
			if i%(len(events)/30) == 0 {
				w.takeDirty()
			}
		}
		w.takeDirty()
	}
}

// BenchmarkPublish publishes a run of 20,000 calls after one call was added.
func BenchmarkPublish(b *testing.B) {
	events := longHistory(20_000, 50_000)
	w := newWatcher(linkTo(cluster.Deps{}), runs.ID{WorkflowID: "ace/long", RunID: "r"}, nil)
	for _, e := range events[:len(events)-12_000] {
		if err := w.take(e); err != nil {
			b.Fatal(err)
		}
	}
	more := events[len(events)-12_000:]
	b.ReportAllocs()
	at := 0
	for b.Loop() {
		if err := w.take(more[at%len(more)]); err != nil {
			b.Fatal(err)
		}
		at++
		w.takeDirty()
	}
}
