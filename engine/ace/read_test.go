package ace_test

import (
	"slices"
	"strings"
	"testing"

	"acescope/engine/ace"
)

const hash = "9d0f40084f6da80c8e1ce266e765fc5a4df5d6b1d29ad2d35f45fd60a42ab186"

// foldOther folds the steps of a program that runs no reflector, as in design document 001.
func foldOther(results map[ace.Phase]string) *ace.State {
	s := state()
	for _, p := range []ace.Phase{ace.PhaseGenerator, ace.PhaseSkills, ace.PhaseCurator, ace.PhasePersist} {
		s.Apply(ace.StepScheduled(p))
		s.Apply(ace.ReadStep(p, []byte(results[p]), ""))
	}
	return s
}

// TestDocument001 reads results in the shapes of design document 001.
func TestDocument001(t *testing.T) {
	s := foldOther(map[ace.Phase]string{
		ace.PhaseGenerator: `{"prompt_tokens": 12, "sampled_plan": "look, then answer", "trajectory_id": "t1"}`,
		ace.PhaseSkills: `[{"name":"plan","args":{"q":1},"result":"ok","accepted":true},
			{"name":"plan","result":1,"accepted":true}, {"name":"rm","accepted":false}]`,
		ace.PhaseCurator: `{"accepted_deltas": ["check the units", {"type":"ADD","content":"c"}], "rationale": "r"}`,
		ace.PhasePersist: `"` + hash + `"`,
	})
	s.Apply(ace.Closed(ace.Completed, nil))
	if s.Status() != ace.Completed || s.Failure != nil || s.Phase != ace.PhaseDone {
		t.Errorf("%s, phase %s, failure %+v", s.Status(), s.Phase, s.Failure)
	}
	if a := s.SkillUsage(); a.Total != 3 || a.Skills[0] != (ace.SkillUsage{Name: "plan", Calls: 2, OK: 2}) ||
		a.Skills[1].Denied != 1 {
		t.Errorf("calls %+v", a)
	}
	d := s.PlaybookDelta()
	if d.PlaybookBefore != "v1" || d.PlaybookAfter != hash || len(d.Operations) != 2 ||
		d.Operations[0].Content != "check the units" {
		t.Errorf("delta %+v", d)
	}
	if s.Plan != "look, then answer" || s.Usage.InputTokens != 12 {
		t.Errorf("plan %q, usage %+v", s.Plan, s.Usage)
	}
	var got []string
	for _, st := range s.Steps {
		got = append(got, st.Status)
	}
	want := []string{ace.StatusDone, ace.StatusDone, ace.StatusNotReached, ace.StatusDone, ace.StatusDone}
	if !slices.Equal(got, want) {
		t.Errorf("steps %q, want %q", got, want)
	}
	if note := s.Steps[1].Unread; len(note) != 1 ||
		!strings.HasPrefix(note[0], "invocations: 3 of 3 have no unique ID") {
		t.Errorf("notes %q", note)
	}
}

// TestReadNotes names every part that does not fit and keeps the others.
func TestReadNotes(t *testing.T) {
	for _, c := range []struct {
		step ace.Phase
		data string
		want string
	}{
		{ace.PhaseGenerator, `"just a plan"`, ""},
		{ace.PhaseGenerator, `[1]`, "result: a list instead of an object"},
		{ace.PhaseGenerator, `{"plan":["a"],"answer":"4"}`, "plan: a list instead of text"},
		{ace.PhaseGenerator, `{"prompt_tokens":"many","usage":[]}`,
			"prompt_tokens: text instead of a whole number; usage: a list instead of an object"},
		{ace.PhaseGenerator, `{"status":"ok"}`, "result: an object without a field of the contract"},
		{ace.PhaseGenerator, `{`, "result: invalid JSON"},
		{ace.PhaseGenerator, `null`, ""},
		{ace.PhaseSkills, `{"invocations":[{"id":"a","name":"x","at":"yesterday"},7]}`,
			"invocations[0].at: text instead of a time; invocations[1]: a number instead of an object"},
		{ace.PhaseSkills, `[{"id":"a"},{"id":"a"},{"id":"#2"}]`,
			"invocations: 1 of 3 have no unique ID and are numbered by position"},
		{ace.PhaseReflector, `{"insights":"i","correct":"yes"}`, "correct: text instead of a boolean"},
		{ace.PhaseCurator, `{"accepted":[{"type":"TAG","metadata":{"helpful":"x"}}]}`,
			"accepted[0].metadata: an object that does not fit the contract"},
		{ace.PhasePersist, `"saved to a file"`,
			`result: the text "saved to a file" is not the hash of a playbook`},
	} {
		f := ace.ReadStep(c.step, []byte(c.data), "")
		if got := strings.Join(f.Unread, "; "); got != c.want {
			t.Errorf("%s %s:\n%s\nwant\n%s", c.step, c.data, got, c.want)
		}
		if f.Result == nil {
			t.Errorf("%s %s: no result", c.step, c.data)
		}
	}
	if f := ace.ReadStep(ace.PhaseReflector, []byte(`{"correct":"yes"}`),
		""); f.Result.(*ace.ReflectorResult).Correct != nil {
		t.Error("an unreadable verdict became one")
	}
}

// TestStepsEndWithRun checks that no step of a closed run is still running, and that only scheduled
// steps were reached.
func TestStepsEndWithRun(t *testing.T) {
	terminated := &ace.Failure{Kind: ace.Terminated, Type: ace.TypeTerminated, Message: "by hand"}
	for _, c := range []struct {
		closed    ace.Fact
		scheduled bool
		want      string
	}{
		{ace.Closed(ace.Canceled, nil), true, ace.StatusCanceled},
		{ace.Closed(ace.Canceled, nil), false, ace.StatusNotReached},
		{ace.Closed(ace.Terminated, terminated), true, ace.StatusTerminated},
		{ace.Closed(ace.TimedOut, nil), true, ace.StatusTimedOut},
		{ace.Closed(ace.Failed, nil), true, ace.StatusFailed},
		{ace.Closed(ace.Completed, nil), true, ace.StatusUnfinished},
	} {
		s := state(ace.StepScheduled(ace.PhaseGenerator), ace.StepCompleted(ace.PhaseGenerator, nil))
		if c.scheduled {
			s.Apply(ace.StepScheduled(ace.PhaseSkills))
		}
		s.Apply(c.closed)
		if s.Steps[0].Status != ace.StatusDone || s.Steps[1].Status != c.want ||
			s.Steps[2].Status != ace.StatusNotReached {
			t.Errorf("closed as %s: %+v, want %s", c.closed.Status, s.Steps, c.want)
		}
	}
}

// TestRunSurvivesStep checks that the failure of a step is not that of a run that went on.
func TestRunSurvivesStep(t *testing.T) {
	s := state(ace.StepScheduled(ace.PhaseGenerator),
		ace.ReadStep(ace.PhaseGenerator, []byte(`{"plan":7,"answer":"4"}`), ""))
	if s.Failure == nil || s.Failure.Type != ace.TypeBadResult || s.Steps[0].Status != ace.StatusFailed ||
		s.Answer != "4" {
		t.Errorf("%+v", s.CurrentPhase())
	}
	s.Apply(ace.StepScheduled(ace.PhaseSkills))
	if s.Failure != nil || s.Reported != ace.Running || s.Steps[0].Status != ace.StatusDone {
		t.Errorf("%+v", s.CurrentPhase())
	}
	s.Apply(ace.StepFailed(ace.PhaseSkills, ace.Failure{Kind: ace.Failed, Message: "boom"}))
	s.Apply(ace.Closed(ace.Completed, nil))
	if s.Failure != nil || s.Status() != ace.Completed || s.Steps[1].Status != ace.StatusFailed {
		t.Errorf("%+v", s.CurrentPhase())
	}
}

// TestForeignWorkflowHasNoSteps checks that a workflow of another type has steps only if it schedules one.
func TestForeignWorkflowHasNoSteps(t *testing.T) {
	f, _ := ace.ReadStarted([]byte(`{"order":17,"observed":true}`), "", "OrderWorkflow")
	var s ace.State
	s.Apply(f)
	s.Apply(ace.Closed(ace.Completed, nil))
	if len(s.Steps) != 0 || s.Phase != "" || s.Status() != ace.Completed {
		t.Errorf("%+v", s.CurrentPhase())
	}
	s = ace.State{}
	s.Apply(f)
	s.Apply(ace.StepScheduled(ace.PhaseCurator))
	if s.Phase != ace.PhaseCurator || s.Steps[0].Status != ace.StatusPending ||
		s.Steps[3].Status != ace.StatusRunning {
		t.Errorf("%+v", s.CurrentPhase())
	}
}

// TestEventsWithoutIDs counts each tool event that names no event and no call.
func TestEventsWithoutIDs(t *testing.T) {
	data := []byte(`[{"kind":"tool_use","name":"x"},{"kind":"tool_use","name":"x"}]`)
	s := state(ace.ReadToolEvents(data, 7), ace.ReadToolEvents(data, 9))
	if got := s.SkillUsage().Total; got != 4 {
		t.Errorf("%d calls, want 4", got)
	}
}
