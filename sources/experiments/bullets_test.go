package learning

import (
	"testing"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/experiments"
	"acescope/sources/runs"
)

// TestForeignBullets checks that the list takes the number of bullets of a foreign experiment from the branch
// of its name, unless it is known.
func TestForeignBullets(t *testing.T) {
	books, err := playbook.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, branch := range []string{"foreign", "own"} {
		if _, err := books.Start(t.Context(), branch, ""); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"calc-00001", "calc-00002"} {
			_, err := books.Merge(t.Context(), playbook.Version{Source: playbook.Source{Branch: branch}, DeltaID: id,
				Operations: []ace.Operation{{Type: ace.OpAdd, Section: "calc", Content: "a rule about " + id}}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	named := func(name, note string, bullets int) experiments.Experiment {
		return experiments.Experiment{Run: runs.Run{WorkflowID: ace.ExperimentIDPrefix + name}, Note: note,
			Progress: &ace.ExperimentProgress{Bullets: bullets}}
	}
	list := []experiments.Experiment{named("foreign", "tasks only", 0), named("foreign", "tasks only", 7),
		named("own", "", 0), named("missing", "tasks only", 0), {Note: "tasks only"}}
	countForeignBullets(t.Context(), books, list)
	for i, want := range []int{2, 7, 0, 0} {
		if got := list[i].Progress.Bullets; got != want {
			t.Errorf("experiment %d has %d bullets, want %d", i+1, got, want)
		}
	}
}
