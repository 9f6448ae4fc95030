package detail

import (
	"encoding/json"
	"slices"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/replay/replaytest"
	"acescope/sources/historytest"
)

// oddShapes are the ways in which a payload is changed, given the payload's own data and that of the
// fuzzer.
var oddShapes = []func(p *commonpb.Payload, data []byte){
	func(p *commonpb.Payload, data []byte) { p.Data = data },
	func(p *commonpb.Payload, data []byte) { p.Data, _ = json.Marshal(string(data)) },
	func(p *commonpb.Payload, _ []byte) { p.Data = slices.Concat([]byte("["), p.Data, []byte("]")) },
	func(p *commonpb.Payload, _ []byte) { p.Data = []byte("null") },
	func(p *commonpb.Payload, _ []byte) { p.Data = p.Data[:len(p.Data)/2] },
	func(p *commonpb.Payload, _ []byte) { p.Data = nil },
	func(p *commonpb.Payload, data []byte) { p.Metadata = map[string][]byte{"encoding": data} },
	func(p *commonpb.Payload, data []byte) {
		proto.Reset(p)
		proto.Merge(p, historytest.Stored(string(data), 9).Payloads[0])
	},
	func(p *commonpb.Payload, data []byte) { // each member in turn
		var members map[string]json.RawMessage
		if json.Unmarshal(p.Data, &members) != nil || !json.Valid(data) {
			return
		}
		for name := range members {
			members[name] = data
		}
		p.Data, _ = json.Marshal(members)
	},
	func(p *commonpb.Payload, data []byte) { // one byte
		if len(data) > 1 && len(p.Data) > 0 {
			p.Data = slices.Clone(p.Data)
			p.Data[int(data[0])*7%len(p.Data)] = data[1]
		}
	},
}

// closings are the ways in which a server closes a run; nil leaves the recorded one.
var closings = []proto.Message{
	nil,
	&historypb.WorkflowExecutionCompletedEventAttributes{},
	&historypb.WorkflowExecutionFailedEventAttributes{Failure: historytest.Failure("boom")},
	&historypb.WorkflowExecutionCanceledEventAttributes{},
	&historypb.WorkflowExecutionTerminatedEventAttributes{Reason: "by hand"},
	&historypb.WorkflowExecutionTimedOutEventAttributes{},
}

// FuzzOddPayloads changes one payload of a recorded history. Readers must never panic, and must say of
// the run what its server says.
func FuzzOddPayloads(f *testing.F) {
	recorded := [][]*historypb.HistoryEvent{historytest.Document001().Events, historytest.Task(true).Events}
	for _, name := range append(replaytest.RecordedNames, "observed", "fork", "session-talk", "run-completed",
		"run-agent") {
		recorded = append(recorded, replaytest.Recorded(f, name))
	}
	for i := range recorded {
		for shape := range oddShapes {
			for at := range 12 {
				f.Add(uint(i), uint(at), uint(shape), uint(at+shape), []byte(`["x"]`))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which, at, shape, closing uint, data []byte) {
		events := slices.Clone(recorded[which%uint(len(recorded))])
		var payloads []int
		for i, e := range events {
			if len(history.FoldedPayloads(e)) > 0 {
				payloads = append(payloads, i)
			}
		}
		i := payloads[at%uint(len(payloads))]
		events[i] = proto.CloneOf(events[i])
		oddShapes[shape%uint(len(oddShapes))](history.FoldedPayloads(events[i])[0], data)
		if end := closings[closing%uint(len(closings))]; end != nil {
			events = closeWith(events, end)
		}
		checkAgainstServer(t, events)
	})
}

// closeWith replaces the event that closes a run, or adds one.
func closeWith(events []*historypb.HistoryEvent, end proto.Message) []*historypb.HistoryEvent {
	last := events[len(events)-1]
	if historytest.Closed(events) {
		events = events[:len(events)-1]
	}
	e := replaytest.EventOf(end)
	e.EventId, e.EventTime = int64(len(events)+1), last.GetEventTime()
	return append(events, e)
}

func checkAgainstServer(t *testing.T, events []*historypb.HistoryEvent) {
	t.Helper()
	d, err := ReadEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(d); err != nil {
		t.Fatal(err)
	}
	tail := NewTail("w", "r")
	for _, e := range events {
		for _, change := range tail.Apply(e) {
			_ = change.Text()
			if _, err := json.Marshal(change); err != nil {
				t.Fatal(err)
			}
		}
	}
	last := events[len(events)-1]
	closed, ok := (&history.WorkflowTask{}).Closing(last)
	if !ok || d.ContinuedAs != "" {
		return
	}
	got := d.Phase.Status
	if got != closed.Status {
		t.Fatalf("status %s, the server closed the run as %s", got, last.GetEventType())
	}
	if closed.Status == ace.Completed && d.Phase.Failure != nil && d.BlueprintRun == nil {
		t.Fatalf("the completed run has the failure %+v", d.Phase.Failure)
	}
	for _, st := range d.Phase.Steps {
		if d.BlueprintRun == nil && (st.Status == ace.StatusRunning || st.Status == ace.StatusPending) {
			t.Fatalf("the step %s of the closed run is %s", st.Phase, st.Status)
		}
	}
}
