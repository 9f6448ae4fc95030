package views

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runners"
	"acescope/theme"
	"acescope/tui/widget"
	"acescope/views/run"
)

// A step that a run of a blueprint served says so, and leads to that run; one that another
// provider than the task's serves names it; of others nothing is said.
func TestServedSteps(t *testing.T) {
	d := &histories.Detail{Input: ace.TaskInput{Provider: "builtin", Steps: map[string]string{"curator": "blueprint:mine", "skills": "claude"}}}
	d.Phase.Steps = []ace.StepState{
		{Phase: ace.PhaseGenerator, Status: ace.StatusDone}, {Phase: ace.PhaseSkills, Status: ace.StatusRunning},
		{Phase: ace.PhaseReflector, Status: ace.StatusPending},
		{Phase: ace.PhaseCurator, Status: ace.StatusDone, Served: &ace.Served{Provider: "blueprint:mine\x1b[2J", RunID: "run_12\x1b[31m", Runner: "local"}},
	}
	r := run.RowDrawer{D: d, S: theme.New(true, true), Width: 120, Now: time.Now(), Loc: time.UTC}
	for i, want := range []string{"builtin", "claude", "", "blueprint:mine"} {
		p := stepRow(&r, i)
		if want == "" && strings.Contains(p, "builtin") || !strings.Contains(p, want) || strings.Contains(p, "\x1b") {
			t.Errorf("step %d: %q", i, p)
		}
		to, ok := run.GoesTo(d, run.Item{run.ItemPhase, run.PartPhases, int32(i)})
		if ok != (i == 3) || ok && (to.WorkflowID != "run/"+d.Phase.Steps[3].Served.RunID || !strings.Contains(p, "run_12")) {
			t.Errorf("step %d leads to %+v: %q", i, to, p)
		}
	}
	if got := runners.Servers(d.Input); got != "skills by claude, curator by blueprint:mine" {
		t.Error(got)
	}
}

// stepRow is a step's row without its colours.
func stepRow(r *run.RowDrawer, n int) string {
	var p run.Pieces
	r.Phase(&p, r.D.Phase.Steps[n])
	return ansi.Strip(p.Line(r.Width, widget.RowPlain, r.S))
}
