package stepper

import (
	"encoding/json"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	updatepb "go.temporal.io/api/update/v1"

	"acescope/engine/agents/session"
	"acescope/engine/temporal/replay/replaytest"
)

func update(m *replaytest.History, name, id string, arg any) {
	input := &updatepb.Input{Name: name, Args: replaytest.Encoded(arg)}
	m.Append(&historypb.WorkflowExecutionUpdateAcceptedEventAttributes{
		AcceptedRequest: &updatepb.Request{Meta: &updatepb.Meta{UpdateId: id}, Input: input},
	})
}

// A session has the same frames forward and backward, and its values can be watched.
func TestSession(t *testing.T) {
	m := replaytest.Begin(session.Workflow)
	m.Events[0].GetWorkflowExecutionStartedEventAttributes().Input = replaytest.Encoded(
		session.Input{SessionID: "s1", Agent: "claude", WorkingDir: "/w"})
	claim := m.Activity(m.Task(), session.ActivityClaim)
	m.Done(claim, session.Host{Name: "vm", Queue: "q"})
	for i := range 40 {
		update(m, session.UpdateSend, "m"+string(rune('a'+i%26)), session.Message{Text: "x"})
		update(m, session.UpdateReceive, "r", session.Receive{Ack: int64(i)})
	}
	update(m, session.UpdateStop, "stop", session.Note{By: "ada"})
	s := New(m.Events, Options{})
	if s.About.TaskID != "s1" || s.About.Foreign != "" || len(s.Marks(ByPhase)) < 2 {
		t.Errorf("%+v, phases %v", s.About, s.Marks(ByPhase))
	}
	var want []string
	for pos := 1; pos <= s.Len(); pos++ {
		data, err := json.Marshal(s.Frame(pos).Session)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, string(data))
	}
	for pos := s.Len(); pos >= 1; pos-- {
		if got := text(s.Frame(pos).Session); got != want[pos-1] {
			t.Fatalf("event %d backward:\n%s\nforward\n%s", pos, got, want[pos-1])
		}
	}
	for _, expr := range []string{"status", "/session/status"} {
		w, err := s.Watch(expr)
		if err != nil {
			t.Fatal(err)
		}
		if there, back := seen(w, s.Len()); len(there) < 2 || len(there) != len(back) {
			t.Errorf("%s changes forward at %v, backward %v", expr, there, back)
		}
		if got := string(w.At(s.Len())); got != `"ended"` {
			t.Errorf("%s: at the end %s", expr, got)
		}
	}
}
