package run

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"acescope/engine/ace"
	blueprintrun "acescope/engine/tasks/run"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/widget"
)

// A phase that a blueprint run served names it and leads to that run. A phase of another provider than
// that of the task names the provider. Other phases name none.
func TestServedSteps(t *testing.T) {
	d := &histories.Detail{}
	d.Input = ace.TaskInput{Provider: "builtin", Steps: map[string]string{"curator": "blueprint:mine",
		"skills": "claude"}}
	d.Phase.Steps = []ace.StepState{
		{Phase: ace.PhaseGenerator, Status: ace.StatusDone},
		{Phase: ace.PhaseSkills, Status: ace.StatusRunning},
		{Phase: ace.PhaseReflector, Status: ace.StatusPending},
		{Phase: ace.PhaseCurator, Status: ace.StatusDone,
			Served: &ace.Served{Provider: "blueprint:mine\x1b[2J", RunID: "run_12\x1b[31m", Runner: "local"}},
	}
	l := line{S: theme.New(true, true), Width: 120, Now: time.Now(), Loc: time.UTC}
	rows := listRows(d, nil, nil, nil, nil)[1:]
	for i, want := range []string{"builtin", "claude", "", "blueprint:mine"} {
		p := ansi.Strip(l.draw(rows[i], l.Width, widget.RowPlain))
		if want == "" && strings.Contains(p, "builtin") || !strings.Contains(p, want) ||
			strings.Contains(p, "\x1b") {
			t.Errorf("step %d: %q", i, p)
		}
		to, ok := target(rows[i].Row)
		if ok != (i == 3) || ok && (to.WorkflowID != "run/"+d.Phase.Steps[3].Served.RunID ||
			!strings.Contains(p, "run_12")) {
			t.Errorf("step %d leads to %+v: %q", i, to, p)
		}
	}
	if got := runners.StepProviders(d.Input); got != "skills by claude, curator by blueprint:mine" {
		t.Error(got)
	}
}

// The reason for a verdict is a row of its own, without control characters.
func TestVerdictReason(t *testing.T) {
	d := &histories.Detail{}
	d.Input.Label = new("sixteen")
	d.Phase.Answer, d.Phase.Correct, d.Phase.GradeReason = "16", new(true), "16 is \x1b[31msixteen"
	d.Phase.Passes = ace.Passes{{Kind: ace.PassAfter,
		AnswerState: ace.AnswerState{Answer: "15", Correct: new(false), GradeReason: "one\x1b[2J less"}}}
	l := line{S: theme.New(true, true), Width: 120, Now: time.Now(), Loc: time.UTC}
	var drawn strings.Builder
	for _, r := range listRows(d, nil, nil, nil, nil) {
		drawn.WriteString(ansi.Strip(l.draw(r, l.Width, widget.RowPlain)) + "\n")
	}
	for _, want := range []string{"reason         16 is ", "15  (wrong: one less)"} {
		if got := drawn.String(); !strings.Contains(got, want) || strings.Contains(got, "\x1b") {
			t.Errorf("no %q in\n%q", want, got)
		}
	}
}

func TestParseText(t *testing.T) {
	for want, v := range map[string]ace.ParseReport{
		"in the requested format":             {Parse: ace.ParseClean, Attempts: 1},
		"asked again: it was x y (2 answers)": {Parse: ace.ParseAsked, Note: "it was x\ny", Attempts: 2},
	} {
		if got := parseText(&v); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := parseText(&ace.ParseReport{Parse: "repaired", Note: "\x1b[31mred"}); strings.Contains(got,
		"\x1b") {
		t.Errorf("%q", got)
	}
}

// Rows are compared to find out whether the inspector must be written again.
func TestRowsAreComparable(t *testing.T) {
	label := "x"
	d := &histories.Detail{Err: "e",
		TaskState: histories.TaskState{Missing: []string{"q"}, Plan: "p", BulletIDs: []string{"b"}},
		Trace: histories.Trace{CallLog: &ace.Ref{}, Causes: []histories.Cause{{}, {}},
			Encoded: []histories.EncodedPayload{{}}, Activities: []histories.Activity{{}},
			Calls: histories.Calls(&histories.ToolCall{})},
		Pending: []histories.PendingActivity{{}}, FailedTasks: []experiments.Finished{{}},
		Experiment: &ace.ExperimentProgress{Epochs: []ace.EpochResult{{}}},
		BlueprintRun: &blueprintrun.State{Input: blueprintrun.Input{ParentRunID: "r"},
			Result: &blueprintrun.Result{}}, Log: []runs.LogLine{{}}}
	d.Phase.Failure, d.Phase.Answer, d.Input.Label, d.Input.Prompt = &ace.Failure{}, "a", &label, "p"
	d.Phase.Steps = []ace.StepState{{Phase: ace.PhaseSkills, Usage: &ace.Usage{}}}
	d.Skills.Skills, d.Delta.Operations = []ace.SkillUsage{{}}, []ace.Operation{{Metadata: map[string]int{}}}
	d.Delta.BulletTags, d.Delta.FollowUpActions = []ace.BulletTag{{}}, []string{"f"}
	d.Forks = &histories.LineageTree{Nodes: []histories.LineageNode{{}, {Depth: 1}}}
	for _, r := range listRows(d, nil, nil, nil, nil) {
		if r.Row != r.Row {
			t.Errorf("%+v is not equal to itself", r.Key)
		}
	}
}
