package ace_test

import (
	"encoding/json"
	"testing"

	"acescope/engine/ace"
)

// stepDone returns the fact of a step's result.
func stepDone(t *testing.T, step ace.Phase, result any) ace.Fact {
	t.Helper()
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return ace.StepCompleted(step, data)
}

func graded(correct bool, insights string) ace.ReflectorResult {
	return ace.ReflectorResult{Correct: &correct, Insights: insights,
		StepReport: ace.StepReport{Usage: &ace.Usage{OutputTokens: 1}}}
}

// The budget ends a run between two answers: the steps of the first one stay done, and the curator is not
// reached.
func TestBudgetEndsRounds(t *testing.T) {
	in := ace.TaskInput{TaskID: "t", Label: new("42"), Budget: &ace.Budget{Tokens: 3},
		Protocol: ace.Protocol{Rounds: 2, NoSkills: true}}
	s := state(ace.Started(in))
	s.Apply(stepDone(t, ace.PhaseGenerator,
		ace.GeneratorResult{Answer: "1", StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 2}}}))
	s.Apply(stepDone(t, ace.PhaseReflector, graded(false, "add")))
	if s.Stopped == "" || s.Reported != ace.Completed || len(s.Passes) != 0 || s.Verdict() != ace.Wrong {
		t.Fatalf("%+v", s)
	}
	want := []string{ace.StatusDone, ace.StatusNotReached, ace.StatusDone, ace.StatusNotReached,
		ace.StatusNotReached}
	for i, st := range s.Steps {
		if st.Status != want[i] {
			t.Errorf("%s is %s, not %s", st.Phase, st.Status, want[i])
		}
	}
}

// Later answers add to the usage of a step and leave the first answer, its verdict and clones alone.
func TestPassesAddUp(t *testing.T) {
	in := ace.TaskInput{TaskID: "t", Label: new("42"), Protocol: ace.Protocol{Rounds: 2, NoSkills: true}}
	s := state(ace.Started(in))
	generated := ace.GeneratorResult{Answer: "1",
		StepReport: ace.StepReport{Usage: &ace.Usage{InputTokens: 2}, Time: &ace.StepTime{DurationMS: 5}}}
	s.Apply(stepDone(t, ace.PhaseGenerator, generated))
	s.Apply(stepDone(t, ace.PhaseReflector, graded(false, "add")))
	if s.Phase != ace.PhaseGenerator || s.Reflection() != "add" {
		t.Fatalf("%s, %q", s.Phase, s.Reflection())
	}
	before := s.Clone()
	generated.Answer = "42"
	s.Apply(stepDone(t, ace.PhaseGenerator, generated))
	if s.WhenToReflect() != ace.ReflectWrong {
		t.Errorf("%q", s.WhenToReflect())
	}
	s.Apply(stepDone(t, ace.PhaseReflector, graded(true, "")))
	if s.Phase != ace.PhaseCurator || s.Answer != "1" || s.Verdict() != ace.Wrong ||
		*s.Result().Regenerated != true {
		t.Errorf("%+v", s)
	}
	if insights, _, correct := s.Lesson(); insights != "add" || *correct {
		t.Errorf("%q, %v", insights, *correct)
	}
	if st := s.Steps[0]; st.Usage.InputTokens != 4 || st.Time.DurationMS != 10 || s.Usage.Tokens() != 6 {
		t.Errorf("%+v %+v %+v", st.Usage, st.Time, s.Usage)
	}
	if before.Passes[0].Answer != "" || before.Steps[0].Usage.InputTokens != 2 {
		t.Errorf("the clone changed: %+v", before.Passes)
	}
}

// A fork reuses the results of each answer that it has, and then goes on.
func TestForkOfRounds(t *testing.T) {
	steps := func(generator, reflector string) map[ace.Phase]ace.ReusedStep {
		return map[ace.Phase]ace.ReusedStep{
			ace.PhaseGenerator: {Result: json.RawMessage(generator)},
			ace.PhaseReflector: {Result: json.RawMessage(reflector)},
		}
	}
	in := ace.TaskInput{TaskID: "t", Label: new("42"), Protocol: ace.Protocol{Rounds: 2, NoSkills: true}}
	in.Fork = &ace.Fork{
		Forked: ace.Forked{WorkflowID: "ace/o", Phase: ace.PhaseGenerator},
		Steps:  steps(`{"answer": "1"}`, `{"correct": false, "insights": "add"}`),
	}
	s := state(ace.Started(in))
	if s.Phase != ace.PhaseGenerator || len(s.Passes) != 1 || s.Reuses(ace.PhaseGenerator) ||
		!s.Steps[0].Reused {
		t.Errorf("%s, %+v", s.Phase, s.Passes)
	}
	in.Fork.Passes = append(in.Fork.Passes, steps(`{"answer": "42", "usage": {"input_tokens": 3}}`,
		`{"correct": true}`))
	s = state(ace.Started(in))
	if s.Phase != ace.PhaseCurator || s.Verdict() != ace.Wrong || s.Passes[0].Answer != "42" ||
		s.Usage != (ace.Usage{}) {
		t.Errorf("%s, %s, %+v, %+v", s.Phase, s.Verdict(), s.Passes, s.Usage)
	}
}
