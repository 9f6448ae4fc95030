package ace_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"acescope/engine/ace"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func use(id, call, name string, second int) ace.ToolEvent {
	return ace.ToolEvent{EventID: id, CallID: call, Kind: ace.KindToolUse, Name: name,
		At: at.Add(time.Duration(second) * time.Second)}
}

func done(id, call string, ok bool, ms float64) ace.ToolEvent {
	return ace.ToolEvent{EventID: id, CallID: call, Kind: ace.KindToolResult, OK: &ok, DurationMS: ms}
}

func state(facts ...ace.Fact) *ace.State {
	s := &ace.State{}
	s.Apply(ace.Started(ace.TaskInput{TaskID: "t", PlaybookHash: "v1"}))
	for _, f := range facts {
		s.Apply(f)
	}
	return s
}

func TestSkillUsageCountsEveryOutcome(t *testing.T) {
	no := false
	s := state(ace.ToolEvents([]ace.ToolEvent{
		use("1", "a", "look", 1), done("2", "a", true, 10),
		use("3", "b", "look", 2), done("4", "b", false, 30),
		use("5", "c", "look", 3),
		use("6", "d", "rm", 4), {EventID: "7", CallID: "d", Kind: ace.KindPermission, Accepted: &no,
			Error: "denied"},
		{EventID: "8", Kind: "dream"}, {EventID: "9", Kind: ace.KindSlashCommand},
	}))
	a := s.SkillUsage()
	want := []ace.SkillUsage{
		{Name: "look", Calls: 3, OK: 1, Failed: 1, Pending: 1, P50MS: 10, P95MS: 30,
			LastAt: at.Add(3 * time.Second)},
		{Name: "rm", Calls: 1, Denied: 1, LastAt: at.Add(4 * time.Second), LastError: "denied"},
	}
	if !reflect.DeepEqual(a.Skills, want) {
		t.Errorf("skills\n%+v\nwant\n%+v", a.Skills, want)
	}
	if a.Total != 4 || a.Other["dream"] != 1 || a.Other[ace.KindSlashCommand] != 1 {
		t.Errorf("answer %+v", a)
	}
}

// TestEventsCountOnce checks that repeated events, and calls that the session's result repeats,
// count once.
func TestEventsCountOnce(t *testing.T) {
	events := []ace.ToolEvent{use("1", "a", "look", 1), done("2", "a", false, 10)}
	s := state(ace.ToolEvents(events), ace.ToolEvents(events),
		ace.Fact{Kind: ace.FactStepCompleted, Step: ace.PhaseSkills, Result: &ace.SkillSessionResult{
			Invocations: []ace.Invocation{{ID: "a", Name: "look", Accepted: true, OK: true,
				DurationMS: 11}}}})
	if a := s.SkillUsage(); a.Total != 1 || a.Skills[0].OK != 1 || a.Skills[0].P50MS != 11 {
		t.Errorf("%+v", a)
	}
}

// TestOrderOfEventsAndResults interleaves tool events and step results at random.
func TestOrderOfEventsAndResults(t *testing.T) {
	steps := []ace.Fact{
		ace.StepCompleted(ace.PhaseGenerator, []byte(`{"plan":"p","answer":"1"}`)),
		ace.StepCompleted(ace.PhaseSkills,
			[]byte(`{"invocations":[{"id":"c1","name":"look","accepted":true,"ok":true,"at":"2026-01-02T03:04:06Z"}],"answer":"2"}`)),
		ace.StepCompleted(ace.PhaseReflector, []byte(`{"insights":"i","correct":false}`)),
	}
	var events []ace.Fact
	for i := range 6 {
		events = append(events, ace.ToolEvents([]ace.ToolEvent{use(fmt.Sprint("u", i), fmt.Sprint("c", i),
			"look", i)}))
	}
	want := ""
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		s := state(interleave(r, steps, events)...)
		got, err := json.Marshal([]any{s.CurrentPhase(), s.SkillUsage(), s.PlaybookDelta()})
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = string(got)
		}
		if string(got) != want {
			t.Fatalf("result depends on the order:\n%s\nwant\n%s", got, want)
		}
	}
}

// interleave mixes two sequences at random and keeps the order of each.
func interleave(r *rand.Rand, a, b []ace.Fact) (out []ace.Fact) {
	for len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && r.IntN(len(a)+len(b)) < len(a) {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}

func TestDeltaKeepsEveryOutcome(t *testing.T) {
	s := state(
		ace.StepCompleted(ace.PhaseCurator,
			[]byte(`{"accepted":[{"type":"ADD","content":"x"},{"type":"TAG","bullet_id":"b"}],"rejected":[{"type":"ADD","reason":"duplicate"}]}`)),
		ace.StepCompleted(ace.PhasePersist,
			[]byte(`{"playbook_before":"v2","playbook_after":"v3","operations":[{"type":"ADD","content":"x","bullet_id":"b9","fate":"accepted"},{"type":"TAG","bullet_id":"b","fate":"rejected","reason":"gone"}]}`)))
	d := s.PlaybookDelta()
	if d.PlaybookBefore != "v2" || d.PlaybookAfter != "v3" || len(d.Operations) != 3 ||
		d.Operations[0].BulletID != "b9" || d.Operations[2].Reason != "duplicate" {
		t.Errorf("%+v", d)
	}
	if sum := s.Summary(); sum.Added != 1 || sum.Rejected != 2 || sum.Tagged != 0 {
		t.Errorf("%+v", sum)
	}
}

func TestInvalidResultFailsStep(t *testing.T) {
	s := state(ace.StepCompleted(ace.PhaseGenerator, []byte(`"not an object"`)))
	if s.Reported != ace.Failed || s.Failure.Type != ace.TypeBadResult ||
		s.Steps[0].Status != ace.StatusFailed {
		t.Errorf("%+v", s.CurrentPhase())
	}
}

func TestServerStatusWins(t *testing.T) {
	s := state(ace.Closed(ace.Failed, &ace.Failure{Kind: ace.Failed, Type: "Terminated", Message: "by hand"}))
	if s.Status() != ace.Failed || s.CurrentPhase().Failure.Message != "by hand" {
		t.Errorf("%+v", s.CurrentPhase())
	}
}

func TestCloneIsIndependent(t *testing.T) {
	s := state(ace.ToolEvents([]ace.ToolEvent{use("1", "a", "look", 1)}))
	c := s.Clone()
	s.Apply(ace.ToolEvents([]ace.ToolEvent{use("2", "b", "look", 2)}))
	s.Apply(ace.StepCompleted(ace.PhaseGenerator, nil))
	if c.SkillUsage().Total != 1 || c.Phase != ace.PhaseGenerator || c.Steps[0].Status != ace.StatusRunning {
		t.Errorf("the clone changed: %+v", c.CurrentPhase())
	}
}

func FuzzToolEvents(f *testing.F) {
	for _, seed := range []string{`{"event_id":"1","kind":"tool_use","name":"x","args":{}}`,
		`[{"event_id":"1","kind":"tool_result","ok":true},{"event_id":"1"}]`,
		`[]`, `null`, `"text"`, `{"at":"yesterday"}`,
		`[{"kind":"permission","accepted":false,"call_id":"c"}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := state(ace.ToolEventsFrom(data))
		once, err := json.Marshal(s.SkillUsage())
		if err != nil {
			t.Fatal(err)
		}
		again := s.Clone()
		if fact := ace.ToolEventsFrom(data); fact.Unreadable == 0 {
			again.Apply(fact)
		}
		twice, err := json.Marshal(again.SkillUsage())
		if err != nil || string(once) != string(twice) {
			t.Fatalf("repeated events change the usage: %s, then %s, %v", once, twice, err)
		}
	})
}

func FuzzStepResult(f *testing.F) {
	f.Add([]byte(`{"accepted":[{"type":"ADD"}]}`), 3)
	f.Add([]byte(`{"invocations":[{"id":"a"}]}`), 1)
	f.Add([]byte(`{"usage":{"input_tokens":-1}}`), 0)
	f.Fuzz(func(t *testing.T, data []byte, step int) {
		steps := ace.Steps()
		s := state(ace.StepCompleted(steps[(step%len(steps)+len(steps))%len(steps)], data))
		if _, err := json.Marshal([]any{s.CurrentPhase(), s.SkillUsage(), s.PlaybookDelta(),
			s.Result()}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestExperimentAnyOrder completes tasks in random orders, as parallel tasks do.
func TestExperimentAnyOrder(t *testing.T) {
	in := ace.ExperimentInput{ExperimentID: "x", Epochs: 1, Tasks: 40,
		EvaluationPlan: ace.EvaluationPlan{EvalTasks: 50, Eval: &ace.Ref{}}}
	var facts []ace.ExperimentFact
	for i := range 38 {
		right := i%3 > 0
		score := math.Round(float64(i)/38*1e6) / 1e6
		facts = append(facts, ace.ExperimentFact{Completed: &ace.TaskResult{Index: i, Correct: &right,
			Score: &score, Seq: i + 1, PlaybookHash: fmt.Sprint("v", i+1), Bullets: i,
			Summary: ace.Summary{Skills: 3, Usage: ace.Usage{CostUSD: 0.1 * float64(i+1)}}}})
	}
	facts = append(facts, ace.ExperimentFact{Failed: &ace.Failure{Kind: ace.TimedOut}},
		ace.ExperimentFact{Failed: &ace.Failure{Kind: ace.Failed}})
	want := ""
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var s ace.ExperimentState
		s.Apply(ace.ExperimentFact{Input: &in})
		if s.Progress.Stage != ace.StageEvaluating {
			t.Fatalf("before the first epoch: %s", s.Progress.Stage)
		}
		s.Apply(ace.ExperimentFact{Evaluated: &ace.EvaluateResult{Tasks: 50, Correct: 10, Score: 12.345678}})
		r.Shuffle(len(facts), func(i, j int) { facts[i], facts[j] = facts[j], facts[i] })
		for _, f := range facts {
			if s.Progress.Stage != ace.StageLearning {
				t.Fatalf("after %d tasks: %s", s.Progress.Done(), s.Progress.Stage)
			}
			s.Apply(f)
		}
		s.Apply(ace.ExperimentFact{Evaluated: &ace.EvaluateResult{Tasks: 25, Correct: 20, Wrong: []int{3},
			Score: 0.2}})
		s.Apply(ace.ExperimentFact{Evaluated: &ace.EvaluateResult{Tasks: 25, Correct: 25, Score: 0.1}})
		data, err := json.Marshal(s.Progress)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = string(data)
		}
		if string(data) != want {
			t.Fatalf("result depends on the order:\n%s\nwant\n%s", data, want)
		}
		if p := s.Progress; p.After != "v38" || p.Epochs[0].Failed != 2 || p.Epochs[0].Correct != 25 ||
			p.Eval[1].Accuracy != 0.9 || p.Eval[1].Score != 0.3 || p.Epochs[0].Score != 18.5 ||
			p.Status != ace.Completed {
			t.Fatalf("%+v", p)
		}
	}
}

// An experiment that closes without completing is in no stage, and its canceled tasks are not done.
func TestExperimentStops(t *testing.T) {
	right := ace.ExperimentFact{Completed: &ace.TaskResult{Correct: new(true)}}
	canceled := ace.ExperimentFact{Failed: &ace.Failure{Kind: ace.Canceled}}
	cases := map[string]struct {
		facts  []ace.ExperimentFact
		closed ace.Status
		counts [4]int // epoch, its tasks done and closed, canceled tasks
		stage  string
	}{
		"canceled": {[]ace.ExperimentFact{right, canceled, canceled},
			ace.Canceled, [4]int{1, 1, 3, 2}, ace.StageStopped},
		"canceled later": {[]ace.ExperimentFact{right, right, right, canceled},
			ace.Canceled, [4]int{2, 0, 1, 1}, ace.StageStopped},
		"terminated": {[]ace.ExperimentFact{right},
			ace.Terminated, [4]int{1, 1, 1, 0}, ace.StageStopped},
		"timed out": {[]ace.ExperimentFact{right, right, right},
			ace.TimedOut, [4]int{2, 0, 0, 0}, ace.StageStopped},
		"failed": {[]ace.ExperimentFact{right, right},
			ace.Failed, [4]int{1, 2, 2, 0}, ace.StageStopped},
		"continued as new": {[]ace.ExperimentFact{right},
			ace.ContinuedAsNew, [4]int{1, 1, 1, 0}, ace.StageLearning},
		"one task canceled": {[]ace.ExperimentFact{right, right, canceled, right, right, right},
			ace.Completed, [4]int{2, 3, 3, 1}, ace.StageDone},
	}
	for name, c := range cases {
		var s ace.ExperimentState
		s.Apply(ace.ExperimentFact{Input: &ace.ExperimentInput{Tasks: 3, Epochs: 2, Revision: ace.Revision}})
		for _, f := range c.facts {
			s.Apply(f)
		}
		s.Apply(ace.ExperimentFact{Closed: &ace.ExperimentClosed{Status: c.closed}})
		p := &s.Progress
		if got := [4]int{p.Epoch, p.Done(), p.Closed(), p.Canceled()}; got != c.counts ||
			len(p.Epochs) != p.Epoch || p.Stage != c.stage || p.Status != c.closed {
			t.Errorf("%s: %v, %s, %s, epochs %+v", name, got, p.Stage, p.Status, p.Epochs)
		}
	}
}
