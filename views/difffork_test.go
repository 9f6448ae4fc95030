package views

import (
	"os"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/compare"
	"acescope/engine/temporal/historyfile"
	"acescope/sources/histories"
	"acescope/theme"
)

// forkDiff is a fork beside its original, both as a real server recorded them.
func forkDiff(t *testing.T) *histories.RunDiff {
	t.Helper()
	var sides [2]compare.Side
	for i, name := range []string{"original", "original-fork"} {
		f, err := os.Open("../engine/workflows/testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		list, err := historyfile.Read(f)
		if _ = f.Close(); err != nil {
			t.Fatal(err)
		}
		sides[i] = compare.Side{Runs: [][]*historypb.HistoryEvent{list[0].Events}}
	}
	d := compare.Of(sides[0], sides[1], compare.Options{})
	return &histories.RunDiff{A: histories.DiffRef{WorkflowID: d.A.WorkflowID, RunID: d.A.RunIDs[0], TaskID: "original-hello"},
		B:     histories.DiffRef{WorkflowID: d.B.WorkflowID, RunID: d.B.RunIDs[0], TaskID: "original-hello~f1"},
		ReadA: d.A.Events, ReadB: d.B.Events, Diff: d, Took: 2 * time.Millisecond, Updated: noon}
}

// What a fork took over stands beside the original's steps, marked.
func TestForkDiffScreens(t *testing.T) {
	of := forkDiff(t)
	for name, c := range map[string]struct {
		width, height int
		keys          []string
	}{
		"list": {80, 24, []string{"a"}}, "list-wide": {200, 50, []string{"a"}}, "figures": {80, 24, []string{"tab", "G"}},
		"step": {80, 24, []string{"a", "j", "j", "tab"}},
	} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false), "nocolor": theme.New(true, true)} {
			t.Run(name+"/"+look, func(t *testing.T) {
				golden.RequireEqual(t, diffing(t, of, styles, c.width, c.height, c.keys...).drawn())
			})
		}
	}
}
