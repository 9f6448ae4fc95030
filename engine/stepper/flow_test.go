package stepper

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"acescope/engine/flow"
)

func flowStepper(t *testing.T) *Stepper {
	t.Helper()
	f, err := os.Open("../../sources/flows/testdata/release.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return New(h.GetEvents(), Options{})
}

// At every position the frame is the fold of the events so far, in any order of positions.
func TestFlowFrames(t *testing.T) {
	s := flowStepper(t)
	for pos := s.Len(); pos > 0; pos-- {
		want := flow.Fold(s.events[:pos])
		got := s.Frame(pos).Flow
		if got == nil || len(got.Steps) != len(want.Steps) || got.Operations != want.Operations {
			t.Fatalf("position %d: %d operations, want %d", pos, got.Operations, want.Operations)
		}
		for i := range want.Steps {
			if a, b := got.Steps[i], want.Steps[i]; a.Path != b.Path || a.Status != b.Status ||
				a.Done != b.Done || a.Error != b.Error {
				t.Fatalf("position %d: %+v, want %+v", pos, a, b)
			}
		}
	}
	if s.About.TaskID != "rel-1" || s.About.Foreign != "" {
		t.Errorf("%+v", s.About)
	}
}

// The steps of a flow are what stepping by phase and watching follow, and a failed step is an error.
func TestFlowSteps(t *testing.T) {
	s := flowStepper(t)
	if len(s.phases) < 30 || len(s.tools) != 37 {
		t.Errorf("%d phases, %d operations", len(s.phases), len(s.tools))
	}
	var changes []string
	for pos := 1; pos <= s.Len(); pos++ {
		for _, c := range s.Frame(pos).Changes {
			if strings.HasPrefix(c.Path, "step.lint.") || strings.HasPrefix(c.Path, "step.decide.status") {
				changes = append(changes, c.Text())
			}
		}
	}
	for _, want := range []string{"step.lint.status: running → failed",
		"step.decide.status: waiting → completed"} {
		if !slices.Contains(changes, want) {
			t.Errorf("%q lacks %s", changes, want)
		}
	}
	failed := slices.ContainsFunc(s.errors, func(pos int) bool {
		return slices.ContainsFunc(s.Frame(pos).Changes, func(c Change) bool {
			return c.Path == "step.lint.error"
		})
	})
	if !failed {
		t.Error("the failure of a step is not an error")
	}
	w, err := s.Watch("step.decide.status")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(w.At(s.Len())); got != `"completed"` {
		t.Errorf("watched %s", got)
	}
}
