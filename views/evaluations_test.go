package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/learning/ablation"
	"acescope/engine/learning/playbook"
	"acescope/sources/evaluations"
	"acescope/sources/histories"
	"acescope/theme"
)

// evaluated returns an experiment with evaluations of its items after each epoch.
func evaluated(items, versions int) *snapshot {
	snap := listed(learnt("night", "finance", 40, 6, 0.002))
	g := &evaluations.Grid{Input: ace.ExperimentInput{ExperimentID: "night", PlaybookHash: "hash-0"}}
	books := map[string]*playbook.Playbook{}
	for v := range versions {
		hash := fmt.Sprintf("hash-%d", v)
		version := evaluations.Version{EvalResult: ace.EvalResult{Epoch: v, Tasks: items, Playbook: hash}}
		for i := range items {
			correct := (i*7+v*3)%11 > 3-v%3
			label := fmt.Sprint(i)
			item := ace.EvalItem{Index: i, Answer: label, Label: &label, Correct: &correct, DurationMS: 12,
				Plan: "Divide by the number of years.", BulletIDs: []string{"calc-00001"},
				Usage: &ace.Usage{InputTokens: 10},
				Calls: &ace.CallLog{Ref: recordRef, Requests: 2},
				ToolCalls: []ace.Invocation{{Name: "calculate", Args: []byte(`{"expression":"1"}`),
					Result: []byte(`"1"`)}}}
			if correct {
				version.Correct++
			} else {
				item.Answer = "财\x1b[31m務\u202e" + label
				version.Wrong = append(version.Wrong, i)
			}
			version.Items = append(version.Items, item)
		}
		version.Accuracy = float64(version.Correct) / float64(items)
		g.Versions = append(g.Versions, version)
		books[hash] = &playbook.Playbook{Bullets: []playbook.Bullet{{ID: "calc-00001", Section: "OTHERS",
			Content: fmt.Sprintf("rule of version %d", v)}}}
	}
	g.Rows = evaluations.Rows(g.Versions)
	snap.Evaluated = &evaluations.Evaluated{WorkflowID: ace.ExperimentWorkflowID("night"), Grid: g,
		Books: books}
	return snap
}

// partlyCorrect returns evaluations whose grader gives partial credit. Nothing of the first version has a
// score.
func partlyCorrect() *snapshot {
	snap := evaluated(40, 3)
	g := snap.Evaluated.Grid
	g.Input.Grader = ace.GraderTags
	g.Versions[0].Correct, g.Versions[0].Accuracy = 0, 0
	for v := range g.Versions {
		version := &g.Versions[v]
		for i := range version.Items {
			item := &version.Items[i]
			if v == 0 {
				item.Correct = new(false)
			}
			score := 0.25 * float64(v)
			if *item.Correct {
				score = 1
			}
			item.Score = &score
			version.Score = ace.AddScores(version.Score, score)
		}
	}
	g.Rows = evaluations.Rows(g.Versions)
	return snap
}

// An exact grader with scores, as numeric:TOLERANCE has them, shows none of them.
func TestExactGraderWithoutScore(t *testing.T) {
	snap := partlyCorrect()
	snap.Evaluated.Grid.Input.Grader = "choice"
	sc := newScreen(t, snap, plainLook, 200, 50)
	sc.press("5", "v", "enter")
	if drawn := sc.plain(); !strings.Contains(drawn, "verdict") || strings.Contains(drawn, "score") {
		t.Errorf("scores of an exact grader are shown:\n%s", drawn)
	}
}

// recordRef is a record of requests to a model.
var recordRef = ace.Ref{SHA256: strings.Repeat("ab", 32), Size: 2100, MediaType: ace.CallsMediaType}

// recorded returns a snapshot in which the record is open.
func recorded(snap *snapshot) *snapshot {
	list := []ace.ModelCall{
		{Provider: "local", DurationMS: 12, Request: ace.ModelRequest{Model: "m-1",
			System:   []ace.ModelText{{Text: "Answer 財\x1b[31m."}},
			Messages: []ace.ModelMessage{{Role: "user", Content: ace.ModelText{Text: "What is 2 + 2?"}}}},
			Response: &ace.ModelResponse{FinishReason: "end", Text: ace.ModelText{Text: "4"},
				Usage: ace.Usage{InputTokens: 40, OutputTokens: 2}}},
		{Provider: "local", DurationMS: 3, Request: ace.ModelRequest{Model: "m-1"}, Error: "rate limit"},
	}
	snap.Artifacts = &histories.Artifacts{List: []histories.Artifact{{Ref: recordRef,
		Data: []byte(calls.Text(list))}}}
	return snap
}

// The key reads the record of the selected version's answer; once it is read, the pane goes to it.
func TestAnswerRequests(t *testing.T) {
	sc := newScreen(t, evaluated(40, 3), plainLook, 80, 24)
	sc.press("5", "v", "enter", "O")
	if heard := sc.store.heard(); !slices.Contains(heard, "artifact "+recordRef.SHA256) {
		t.Fatalf("the record is not read: %q", heard)
	}
	if strings.Contains(sc.plain(), "What is 2 + 2?") {
		t.Fatal("the record is shown before it is read")
	}
	sc.show(recorded(evaluated(40, 3)))
	if drawn := sc.plain(); !strings.Contains(drawn, "What is 2 + 2?") ||
		!strings.Contains(drawn, "rate limit") {
		t.Errorf("the screen does not go to the record:\n%s", drawn)
	}
	sc.press("g", "O")
	if drawn := sc.plain(); !strings.Contains(drawn, "rate limit") {
		t.Errorf("the key does not go to an open record:\n%s", drawn)
	}
}

// ablated returns an ablation with three bullets: one helps, one hurts, one is never cited.
func ablated() *snapshot {
	snap := evaluated(20, 1)
	g := snap.Evaluated.Grid
	g.Input.Ablation = &ace.Ablation{Prune: &ace.Prune{}}
	g.Progress.Ablation = &ace.AblationProgress{Skipped: 2,
		Rounds: []ace.AblationRound{{Answers: 20, Done: 14}},
		Pruned: &ace.Pruned{Before: 3, Bullets: 1, HeldOut: 40, Fixed: 2, Kept: true}}
	snap.Evaluated.Labeled = 20
	snap.Evaluated.Effects = []ablation.Effect{
		{Kind: ace.TrialBullet, Name: "calc-00001", Bullets: []string{"calc-00001"}, Helpful: 9, Cited: 10,
			Correct: 9,
			Pairs:   ablation.Pairs{Both: 1, Helped: 8, Neither: 1}, Difference: new(0.8), Low: new(0.41),
			High: new(0.93),
			P:    new(0.0078), Overall: new(0.4), Halves: &ablation.Halves{Pairs: 4, Effect: 0.3,
				Low:  new(0.1),
				High: new(0.5)}},
		{Kind: ace.TrialBullet, Name: "calc-00002", Bullets: []string{"calc-00002"}, Harmful: 1, Cited: 4,
			Correct: 1,
			Pairs:   ablation.Pairs{Both: 1, Hurt: 3}, Difference: new(-0.75), Low: new(-0.95),
			High:    new(0.1),
			P:       new(0.25),
			Overall: new(-0.15)},
		{Kind: ace.TrialBullet, Name: "calc-00003", Bullets: []string{"calc-00003"}},
	}
	return snap
}

func TestEvaluationScreens(t *testing.T) {
	for name, c := range map[string]struct {
		snap func() *snapshot
		keys []string
	}{
		"grid":    {func() *snapshot { return evaluated(40, 12) }, []string{"5", "v", "h", "j"}},
		"answers": {func() *snapshot { return evaluated(40, 3) }, []string{"5", "v", "enter"}},
		"requests": {func() *snapshot { return recorded(evaluated(40, 3)) },
			[]string{"5", "v", "enter", "O"}},
		"score":   {partlyCorrect, []string{"5", "v", "h", "h", "enter"}},
		"effects": {ablated, []string{"5", "b"}},
		"other":   {three, append([]string{":"}, append(letters("evaluations"), "enter")...)},
	} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				sc := newScreen(t, c.snap(), plainLook, size[0], size[1])
				sc.press(c.keys...)
				golden.RequireEqual(t, sc.plain())
			})
		}
	}
}

// The evaluations of an experiment are read as soon as one of its runs is selected, also if that is after the
// screen was opened.
func TestEvaluationsFollowSelection(t *testing.T) {
	sc := newScreen(t, starting(), plainLook, 80, 24)
	sc.press(append([]string{":"}, append(letters("evaluations"), "enter")...)...)
	sc.show(evaluated(40, 3))
	want := "evaluations " + ace.ExperimentWorkflowID("finance-7") // that of the first run
	if heard := sc.store.heard(); !slices.Contains(heard, want) {
		t.Errorf("%q was not asked for: %q", want, heard)
	}
}

// BenchmarkEvaluationGrid draws 1,000 items of 100 versions after each move of the cursor.
func BenchmarkEvaluationGrid(b *testing.B) {
	sc := newScreen(b, evaluated(1000, 100), theme.New(true, false), 200, 50)
	sc.press("5", "v")
	keys := []string{"j", "h", "j", "l"}
	b.ResetTimer()
	for i := range b.N {
		sc.press(keys[i%len(keys)])
		_ = sc.model.View()
	}
}
