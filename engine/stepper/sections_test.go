package stepper

import (
	"slices"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/engine/kind"
	"acescope/engine/learning/playbook"
	"acescope/engine/temporal/replay/replaytest"
)

// wrongBooks has the bullets that the wrong task used.
func wrongBooks() kind.Books {
	bullets := kind.Bullets{
		"calc-1": {Bullet: playbook.Bullet{ID: "calc-1", Content: "Divide."},
			Added: &playbook.Source{TaskID: "q-0"}},
		"calc-2": {Bullet: playbook.Bullet{ID: "calc-2", Content: "Guess."}},
	}
	return kind.Books{Given: bullets, Before: bullets}
}

// changedAt returns the items that an event changed, by section.
func changedAt(s *Stepper, event int64) map[string][]kind.Item {
	changed := map[string][]kind.Item{}
	for _, section := range s.Sections(int(event), wrongBooks()) {
		for _, i := range section.Items {
			if i.Changed {
				changed[section.Title] = append(changed[section.Title], i)
			}
		}
	}
	return changed
}

// eventWith returns the first event that changed a section in which a field contains a text.
func eventWith(t *testing.T, s *Stepper, section, text string) int64 {
	t.Helper()
	for pos := 1; pos <= s.Len(); pos++ {
		for _, i := range changedAt(s, int64(pos))[section] {
			if strings.Contains(i.Key(), text) {
				return int64(pos)
			}
		}
	}
	t.Fatalf("no event changes %s with %q", section, text)
	return 0
}

// The section that an event changes has the content: the call with its payloads, the operation with the
// bullet before and after, the answer beside the label.
func TestSections(t *testing.T) {
	s := New(replaytest.WrongTask(), Options{})
	call := changedAt(s, eventWith(t, s, "Tool calls", "23076.92"))["Tool calls"]
	want := kind.Item{Head: "calculate", Outcome: kind.OutcomeOK, Changed: true, Fields: []kind.Field{
		{Label: "arguments", Kind: kind.FieldPayload, Text: `{"expression":"150000 / 6.5"}`},
		{Label: "result", Kind: kind.FieldPayload, Text: `{"value":23076.92}`}, {Label: "took",
			Text: "3 ms"}}}
	if len(call) != 1 || text(call[0]) != text(want) {
		t.Errorf("%s", text(call))
	}
	curator := changedAt(s, eventWith(t, s, "Operations", "UPDATE"))["Operations"]
	update := curator[slices.IndexFunc(curator,
		func(i kind.Item) bool { return i.Head == string(ace.OpUpdate) })]
	if got := text(update.Fields); !strings.Contains(got, `"removed","text":"Divide."`) ||
		!strings.Contains(got, `"added","text":"Divide only if`) {
		t.Errorf("%s", got)
	}
	rejected := curator[slices.IndexFunc(curator,
		func(i kind.Item) bool { return i.Outcome == kind.OutcomeRejected })]
	if !strings.Contains(text(rejected.Fields), "used by others") {
		t.Errorf("%s", text(rejected))
	}
	answer := changedAt(s, eventWith(t, s, "Answer", "23076.92"))["Answer"]
	if got := text(answer[0].Fields); !strings.Contains(got, `"expected","text":"2437.5"`) {
		t.Errorf("%s", got)
	}
	if at := eventWith(t, s, "Playbook", "v2 of books, 3 bullets"); at < eventWith(t, s, "Operations",
		"UPDATE") {
		t.Errorf("the playbook is merged at event %d", at)
	}
	foreign := replaytest.Begin("SomebodysWorkflow")
	if got := New(foreign.Events, Options{}).Sections(1, kind.Books{}); len(got) != 1 ||
		!strings.Contains(text(got[0]), "SomebodysWorkflow") {
		t.Errorf("%v", got)
	}
	for _, name := range []string{"experiment", "session-talk", "run-completed"} {
		other := New(replaytest.Recorded(t, name), Options{})
		if len(other.Sections(other.Len(), kind.Books{})) == 0 {
			t.Errorf("%s has no sections", name)
		}
	}
}

// The event that completes a task of an experiment shows the task, other events do not.
func TestTaskOfExperiment(t *testing.T) {
	s := New(replaytest.Recorded(t, "experiment"), Options{})
	shown := 0
	for pos := 1; pos <= s.Len(); pos++ {
		got, task := changedAt(s, s.EventID(pos))["Task"], s.Frame(pos).Task
		if task == nil {
			if len(got) > 0 {
				t.Errorf("event %d shows %s", pos, text(got))
			}
			continue
		}
		shown++
		want := kind.OutcomeWrong
		if *task.Correct {
			want = kind.OutcomeCorrect
		}
		if len(got) != 1 || got[0].Head != task.TaskID || got[0].Outcome != want {
			t.Errorf("event %d of task %s shows %s", pos, task.TaskID, text(got))
		}
	}
	if e := s.Frame(s.Len()).Experiment.Epochs[0]; shown == 0 || shown != e.Tasks-e.Failed {
		t.Errorf("%d tasks are shown, of %+v", shown, e)
	}
}

// A payload that the state keeps as a preview is whole at the event that reports it, and does not count as a
// change later.
func TestWholePayloads(t *testing.T) {
	long := `{"expression":"` + strings.Repeat("1+", 400) + `1"}`
	m := replaytest.Begin(ace.TaskWorkflow)
	m.Signal(ace.ToolEvent{EventID: "u", CallID: "c", Kind: ace.KindToolUse, Name: "calculate",
		Args: []byte(long)})
	m.Task()
	s := New(m.Events, Options{})
	if got := changedAt(s, 2)["Tool calls"]; len(got) != 1 || got[0].Fields[0].Text != long {
		t.Errorf("%s", text(got))
	}
	if got := changedAt(s, 3); len(got) > 0 {
		t.Errorf("%s", text(got))
	}
}

// A wrong answer is found at the event that produced it, and a step by error stops there.
func TestWrongAnswer(t *testing.T) {
	s := New(replaytest.WrongTask(), Options{})
	w := s.Wrong(wrongBooks())
	if w == nil || w.Answer != "23076.92" || w.Expected != "2437.5" || w.Plan == "" || len(w.Bullets) != 2 ||
		w.Bullets[0].AddedBy != "q-0" || w.Bullets[1].Tag != "harmful" || w.GradedAt <= w.EventID {
		t.Fatalf("%s", text(w))
	}
	if w.EventID != eventWith(t, s, "Answer", "23076.92") || !slices.Contains(s.Marks(ByError), s.WrongAt()) {
		t.Errorf("event %d, errors %v", w.EventID, s.Marks(ByError))
	}
	if other := New(replaytest.Recorded(t, "wrong"), Options{}); other.WrongAt() != 14 {
		t.Errorf("the recorded run became wrong at event %d", other.WrongAt())
	}
	if right := New(replaytest.Recorded(t, "right"), Options{}); right.Wrong(kind.Books{}) != nil {
		t.Errorf("%s", text(right.Wrong(kind.Books{})))
	}
}

// BenchmarkSections measures a step through a run with many tool calls.
func BenchmarkSections(b *testing.B) {
	s := New(longRun(40_000), Options{})
	last := s.Len() - 40
	b.ResetTimer()
	for i := range b.N {
		s.Sections(last-i%20, kind.Books{})
	}
}
