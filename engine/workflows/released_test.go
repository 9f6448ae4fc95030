package workflows_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/worker"

	"acescope/engine/ace"
	"acescope/engine/temporal/historyfile"
	"acescope/engine/temporal/replay"
	"acescope/engine/workflows"
)

// TestReleased replays the histories of every released version of the workflows, because runs of
// any version may continue with the current code. Put a failing change behind a version
// (docs/design/versioning.md); the histories never change.
func TestReleased(t *testing.T) {
	releases, err := filepath.Glob("testdata/released/*")
	if err != nil || len(releases) == 0 {
		t.Fatalf("no releases: %v", err)
	}
	v := replay.Verifier{Build: "this tree", Register: func(r worker.WorkflowRegistry) {
		workflows.Register(r)
	}}
	for _, dir := range releases {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			sums := sumsOf(t, dir)
			kinds := map[string]int{}
			for name, want := range sums {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != want {
					t.Errorf("%s was changed after its release", name)
				}
				histories, err := historyfile.Read(strings.NewReader(string(data)))
				if err != nil || len(histories) != 1 {
					t.Fatalf("%s: %d histories, %v", name, len(histories), err)
				}
				verdict := v.Verify(t.Context(), histories[0].Events)
				kinds[verdict.WorkflowType]++
				if d := verdict.Divergence; d != nil {
					t.Errorf("%s: %s; %s", name, d.Sentence, d.Advice)
				} else if verdict.Outcome != replay.Deterministic {
					t.Errorf("%s: %s: %s", name, verdict.Outcome, verdict.Why)
				}
			}
			files, err := filepath.Glob(filepath.Join(dir, "*.json*"))
			if err != nil || len(files) != len(sums) {
				t.Errorf("%d files, %d in SHA256SUMS: %v", len(files), len(sums), err)
			}
			if kinds[ace.TaskWorkflow] == 0 || kinds[ace.ExperimentWorkflow] == 0 {
				t.Errorf("not every workflow has a history: %v", kinds)
			}
		})
	}
}

// sumsOf reads the SHA256SUMS file of a release.
func sumsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			t.Fatalf("%s: %q", dir, line)
		}
		sums[fields[1]] = fields[0]
	}
	return sums
}
