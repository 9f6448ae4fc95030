package views

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
)

// A step that a run of a blueprint served says so, and leads to that run; one that another
// provider than the task's serves names it; of others nothing is said.
func TestServedSteps(t *testing.T) {
	d := &sources.Detail{Input: ace.TaskInput{Provider: "builtin", Steps: map[string]string{"curator": "blueprint:mine", "skills": "claude"}}}
	d.Phase.Steps = []ace.StepState{
		{Phase: ace.PhaseGenerator, Status: ace.StatusDone}, {Phase: ace.PhaseSkills, Status: ace.StatusRunning},
		{Phase: ace.PhaseReflector, Status: ace.StatusPending},
		{Phase: ace.PhaseCurator, Status: ace.StatusDone, Served: &ace.Served{Provider: "blueprint:mine\x1b[2J", RunID: "run_12\x1b[31m", Runner: "local"}},
	}
	r := rowDrawer{d: d, s: theme.New(true, true), width: 120, now: time.Now(), loc: time.UTC}
	for i, want := range []string{"builtin", "claude", "", "blueprint:mine"} {
		p := r.stepRow(i)
		if want == "" && strings.Contains(p, "builtin") || !strings.Contains(p, want) || strings.Contains(p, "\x1b") {
			t.Errorf("step %d: %q", i, p)
		}
		to, ok := goesTo(d, item{itemPhase, partPhases, int32(i)})
		if ok != (i == 3) || ok && (to.WorkflowID != "run/"+d.Phase.Steps[3].Served.RunID || !strings.Contains(p, "run_12")) {
			t.Errorf("step %d leads to %+v: %q", i, to, p)
		}
	}
	if got := sources.Servers(d.Input); got != "skills by claude, curator by blueprint:mine" {
		t.Error(got)
	}
}

// stepRow is a step's row without its colours.
func (r *rowDrawer) stepRow(n int) string {
	var p pieces
	r.phase(&p, r.d.Phase.Steps[n])
	return ansi.Strip(p.line(r.width, rowPlain, r.s))
}
