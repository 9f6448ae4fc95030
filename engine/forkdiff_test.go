package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"acescope/sources/cluster"
	"acescope/sources/histories"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/compare"
	"acescope/engine/temporal/fork"
)

// diffOf compares two runs of the server.
func diffOf(t *testing.T, e *engine.Engine, a, b string) *compare.Diff {
	t.Helper()
	var sides [2]compare.Side
	for i, id := range []string{a, b} {
		chain, err := cluster.ReadChain(t.Context(), e.Client, e.Namespace(), id, "", false, nil)
		if err != nil {
			t.Fatal(err)
		}
		sides[i] = histories.DiffSide(t.Context(), chain, e.Artifacts.Get)
	}
	return compare.Of(sides[0], sides[1], compare.Options{})
}

// TestForkDiff compares forks with their originals: reused steps align with the steps of the
// original, and the first difference is the change.
func TestForkDiff(t *testing.T) {
	t.Parallel()
	e := open(t, t.TempDir(), newScripted())
	// of the second the plan is an artifact, which an activity loads
	for _, prompt := range []string{"hello", "large"} {
		if _, err := result(t, e, task("original-"+prompt, prompt, "42")); err != nil {
			t.Fatal(err)
		}
		original := ace.WorkflowID("original-" + prompt)
		f, _ := forked(t, e, original, fork.Point{Phase: ace.PhaseReflector},
			fork.Changes{Set: []fork.Setting{{Key: "label", Value: "43"}}})
		if prompt == "hello" {
			recordAs(t, e.Client, original, "original")
			recordAs(t, e.Client, f.WorkflowID, "original-fork")
		}
		d := diffOf(t, e, original, f.WorkflowID)
		var taken []string
		for _, p := range d.Pairs {
			if p.A == nil || p.B == nil {
				t.Errorf("%s: %s is on one side only", prompt, p.Step().Key)
				continue
			}
			if p.A.Taken {
				t.Errorf("%s: the original took %s over", prompt, p.A.Key)
			}
			if p.B.Taken {
				if taken = append(taken, p.B.Name); p.Status != compare.Same || p.Moved ||
					p.A.Key != p.B.Key {
					t.Errorf("%s: %s beside %s is %s", prompt, p.A.Key, p.B.Key, p.Status)
				}
			}
		}
		want := "[run_generator run_skills_session look_up look_up look_up delete_all]"
		if fmt.Sprint(taken) != want {
			t.Errorf("%s: taken over %v, want %s", prompt, taken, want)
		}
		if d.First == nil || d.First.Path != "/label" || d.FirstResult == nil ||
			d.FirstResult.Step != "activity run_reflector #1" || d.FirstResult.Path != "/correct" {
			t.Errorf("%s: first %+v, first result %+v", prompt, d.First, d.FirstResult)
		}
		if notes := strings.Join(d.Notes, "\n"); !strings.Contains(notes, "B was forked from A at event") ||
			!strings.Contains(notes, "belongs to the original: run_generator, run_skills_session") {
			t.Errorf("%s: %s", prompt, notes)
		}
		for _, m := range d.Metrics {
			switch m.Name {
			case "input tokens":
				if m.A != 10 || m.TakenA != 0 || m.B != 0 || m.TakenB != 10 {
					t.Errorf("%s: %+v", prompt, m)
				}
			case "skills":
				if m.A != 4 || m.B != 0 || m.TakenB != 4 {
					t.Errorf("%s: %+v", prompt, m)
				}
			case "activities":
				if m.A != 5 || m.B != 3 || m.TakenB != 2 {
					t.Errorf("%s: %+v", prompt, m)
				}
			}
		}
		// With the sides swapped, the notes are swapped too.
		d = diffOf(t, e, f.WorkflowID, original)
		if d.First.Path != "/label" || !strings.Contains(strings.Join(d.Notes, "\n"), "A was forked from B") {
			t.Errorf("%s: the other way round: %+v %v", prompt, d.First, d.Notes)
		}
		// A fork without changes does not differ.
		same, _ := forked(t, e, original, fork.Point{Phase: ace.PhaseCurator}, fork.Changes{})
		for _, p := range diffOf(t, e, original, same.WorkflowID).Pairs {
			if p.Status != compare.Same && p.B != nil && p.B.Taken {
				t.Errorf("%s: unchanged, but %s is %s", prompt, p.Step().Key, p.Status)
			}
		}
	}
}
