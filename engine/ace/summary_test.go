package ace

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSummaryDescribesTask(t *testing.T) {
	label, wrong := "3.0", false
	run := func(in TaskInput, result ReflectorResult, more ...Fact) Summary {
		var s State
		s.Apply(Started(in))
		s.Apply(StepCompleted(PhaseGenerator, []byte(`{"plan":"p","trajectory_id":"t","answer":"2.5"}`)))
		s.Apply(StepCompleted(PhaseSkills, []byte(`{}`)))
		raw, _ := json.Marshal(result)
		s.Apply(StepCompleted(PhaseReflector, raw))
		for _, f := range more {
			s.Apply(f)
		}
		return s.Summary()
	}
	in := TaskInput{Prompt: "Find\n  the  ratio. " + strings.Repeat("x", 500), Label: &label,
		Revision: Revision}
	got := run(in, ReflectorResult{Correct: &wrong, Cause: "wrong\ndenominator"})
	if !strings.HasPrefix(got.Subject, "Find the ratio. xx") || len(got.Subject) > maxSentence+len("…") {
		t.Errorf("subject %q", got.Subject)
	}
	if got.Answer != "2.5" || got.Expected != "3.0" || got.Cause != "wrong denominator" {
		t.Errorf("%+v", got)
	}

	in.Subject = "Ratio"
	failed := run(in, ReflectorResult{}, StepFailed(PhaseCurator, Failure{Message: "no model"}))
	if failed.Subject != "Ratio" || failed.Cause != "no model" {
		t.Errorf("failed: %+v", failed)
	}
	right := true
	if got := run(in, ReflectorResult{Correct: &right, Cause: "none"}); got.Cause != "" {
		t.Errorf("correct, because %q", got.Cause)
	}
	in.Revision = 2
	if got := run(in, ReflectorResult{Correct: &wrong, Cause: "c"}); got.Subject+got.Answer+got.Expected+
		got.Cause != "" {
		t.Errorf("revision 2: %+v", got)
	}
}

// Operations that wait for a review are not accepted, and do not count if the run is canceled.
func TestSummaryOfReview(t *testing.T) {
	in := TaskInput{Branch: "b", Protocol: Protocol{Review: &Review{}}}
	for revision, want := range map[int]int{Revision: 0, 4: 0, 3: 1} {
		in.Revision = revision
		var s State
		s.Apply(Started(in))
		for _, step := range Steps()[:4] {
			s.Apply(StepCompleted(step, []byte(`{"accepted":[{"type":"ADD"}]}`)))
		}
		s.Apply(CancelRequested())
		for _, op := range s.PlaybookDelta().Operations {
			if op.Outcome != OutcomeProposed {
				t.Errorf("revision %d: waits with %q", revision, op.Outcome)
			}
		}
		s.Apply(Closed(Canceled, nil))
		if sum := s.Summary(); sum.Added != want || s.Review.Status != ReviewWaiting {
			t.Errorf("revision %d: %+v", revision, sum)
		}
		if ops := s.PlaybookDelta().Operations; ops[0].Outcome != OutcomeUnmerged {
			t.Errorf("revision %d: canceled with %q", revision, ops[0].Outcome)
		}
	}
}

// Operations of a run that fails or is terminated before it merged them are not accepted.
func TestSummaryOfUnmerged(t *testing.T) {
	for revision, want := range map[int]int{Revision: 0, 4: 1} {
		var s State
		s.Apply(Started(TaskInput{Branch: "b", Revision: revision}))
		for _, step := range Steps()[:4] {
			s.Apply(StepCompleted(step, []byte(`{"accepted":[{"type":"ADD"}],"rejected":[{"type":"ADD"}]}`)))
		}
		terminated := s.Clone()
		terminated.Apply(StepScheduled(PhasePersist))
		terminated.Apply(Closed(Terminated, nil))
		s.Apply(StepFailed(PhasePersist, Failure{Message: "no store"}))
		if sum := s.Summary(); sum.Added != want || sum.Rejected != 1 {
			t.Errorf("revision %d: %+v", revision, sum)
		}
		s.Apply(Closed(Failed, nil))
		for _, closed := range []*State{&s, terminated} {
			ops := closed.PlaybookDelta().Operations
			if ops[0].Outcome != OutcomeUnmerged || ops[1].Outcome != OutcomeRejected {
				t.Errorf("revision %d, %s: %+v", revision, closed.Status(), ops)
			}
		}
	}
}
