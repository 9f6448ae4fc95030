package replay

import (
	"encoding/json"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	updatepb "go.temporal.io/api/update/v1"

	"acescope/engine/session"
)

func (m *made) update(name, id string, arg any) {
	m.add(&historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionUpdateAcceptedEventAttributes{
		WorkflowExecutionUpdateAcceptedEventAttributes: &historypb.WorkflowExecutionUpdateAcceptedEventAttributes{
			AcceptedRequest: &updatepb.Request{Meta: &updatepb.Meta{UpdateId: id}, Input: &updatepb.Input{Name: name, Args: encoded(arg)}}}}})
}

// A session is folded at any of its events, whichever way one goes there, and what is known
// of it can be watched.
func TestStepsOfSession(t *testing.T) {
	m := begin(session.Workflow)
	m.events[0].GetWorkflowExecutionStartedEventAttributes().Input = encoded(session.Input{SessionID: "s1", Agent: "claude", WorkingDir: "/w"})
	claim := m.activity(m.task(), session.ActivityClaim)
	m.done(claim, session.Host{Name: "vm", Queue: "q"})
	for i := range 40 {
		m.update(session.UpdateSend, "m"+string(rune('a'+i%26)), session.Message{Text: "x"})
		m.update(session.UpdateReceive, "r", session.Receive{Ack: int64(i)})
	}
	m.update(session.UpdateStop, "stop", session.Note{By: "ada"})
	s := NewStepper(m.events, StepOptions{})
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
			t.Fatalf("event %d backwards:\n%s\nforwards\n%s", pos, got, want[pos-1])
		}
	}
	w, err := s.Watch("status")
	if err != nil {
		t.Fatal(err)
	}
	if there, back := seen(w, s.Len()); len(there) < 2 || len(there) != len(back) {
		t.Errorf("status changes at %v, backwards %v", there, back)
	}
	if got := string(w.At(s.Len())); got != `"ended"` {
		t.Errorf("at the end %s", got)
	}
}
