package views

import (
	"strings"
	"testing"

	"acescope/engine/learning/playbook"
	"acescope/sources/playbooks"
	"acescope/theme"
)

// TestCommandsWithArguments checks what commands of screens do with an argument, and that a wrong one stays
// open.
func TestCommandsWithArguments(t *testing.T) {
	snap := full(6)
	snap.Experiments = three().Experiments
	snap.Books = &playbooks.Playbooks{Branches: []playbook.Branch{{Name: "finance", Versions: 9}}}
	for _, c := range []struct{ line, screen, heard string }{
		{"run q-00002", "run", "select ace/q-00002 run-q-00002"},
		{"timeline q-00002", "timeline", "select ace/q-00002 run-q-00002"},
		{"logs q-00002", "logs", "select ace/q-00002 run-q-00002"},
		{"runs wrong exp=finance-7", "runs", `query ExitStatus="wrong" AND ExperimentId="finance-7"`},
		{"flow", "runs", `query WorkflowType="AceFlowWorkflow"`},
		{"diff q-00002 q-00003", "diff", "diff ace/q-00002 ace/q-00003 false"},
		{"experiment " + snap.Experiments.Rows[1].Name(), "experiments", ""},
		{"playbook finance@3", "playbook", ""},
		{"cost month", "cost", ""},
		{"event 7", "timeline", ""},
	} {
		sc := newScreen(t, snap, theme.New(true, true), 120, 40)
		sc.command(c.line)
		if got := sc.model.State().Screen; got != c.screen {
			t.Errorf(":%s opened %q, want %q", c.line, got, c.screen)
		}
		if c.heard != "" {
			sc.heardAll(c.heard)
		}
	}
	for line, want := range map[string]string{
		"diff q-00002": "give the IDs of two runs; got 1", "experiment nope": `experiment "nope" not found`,
		"playbook nope@2": `playbook "nope" not found`, "playbook finance@x": "not a version",
		"cost year": "unknown unit",
		"event x":   "not a number", "run a b": "give one ID; got 2",
		"agents nope": `session "nope" not found`,
	} {
		sc := newScreen(t, snap, theme.New(true, true), 120, 40)
		sc.command(line)
		if got := sc.plain(); !strings.Contains(got, want) || !strings.Contains(got, " : "+line) {
			t.Errorf(":%s does not stay open with %q:\n%s", line, want, got)
		}
	}
}

// TestRunThatIsNotListed checks that a command finds a run that is not in the list, and selects none that
// does not exist.
func TestRunThatIsNotListed(t *testing.T) {
	sc := newScreen(t, full(6), theme.New(true, true), 120, 40)
	before := sc.shared.Navigation.Selected.Run.ID()
	sc.command("run nosuch")
	sc.has(`run "nosuch" not found`)
	if now := sc.shared.Navigation.Selected.Run.ID(); now != before || sc.model.State().Screen != "runs" {
		t.Errorf("%v is selected, was %v; the screen is %s", now, before, sc.model.State().Screen)
	}
	sc.command("run order-42")
	sc.heardAll("select order-42 run-order-42")
	if r := sc.shared.Navigation.Selected.Run; r.Open() || sc.model.State().Screen != "run" {
		t.Errorf("the run is %+v; the screen is %s", r, sc.model.State().Screen)
	}
}
