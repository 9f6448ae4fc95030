package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/engine/temporal/replay"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
)

func verifiedSnapshot() *snapshot {
	s := snapshotOf(replaySnapshot())
	verdict := *s.Replay.Verdict
	run := func(n int) runs.Run {
		return runs.Run{WorkflowID: fmt.Sprintf("ace/q-%d", n), RunID: fmt.Sprintf("r-%d", n),
			TaskID: fmt.Sprintf("q-%d", n), Type: ace.TaskWorkflow, Status: ace.Completed}
	}
	hostile := run(3)
	hostile.TaskID = "q\x1b[31m日本-3"
	s.Verified = &histories.Verified{Request: histories.VerifyRequest{Query: `ExperimentId="finance-7"`},
		Began: noon.Add(-3 * time.Second), Done: 1412, Total: 2000,
		Deterministic: 1409, Nondeterministic: 1, Drifted: 1, Unverified: 1, Events: 53_000,
		Rows: []histories.VerifiedRun{
			{Run: run(1), Verdict: verdict},
			{Run: run(2), Verdict: replay.Verdict{Outcome: replay.Unverified,
				Why: `no workflow of type "Elsewhere" is registered here`, Events: 12}},
			{Run: hostile, Verdict: replay.Verdict{Outcome: replay.Deterministic,
				Events: 38, WorkflowType: ace.TaskWorkflow}},
		}}
	return s
}

func snapshotOf(s *snapshot) *snapshot { c := *s; return &c }

// heardAll requires these calls of the store.
func (s *screen) heardAll(wants ...string) {
	s.t.Helper()
	for _, want := range wants {
		if told := s.store.heard(); !slices.Contains(told, want) {
			s.t.Errorf("never told %s: %q", want, told)
		}
	}
}

// typeIn types a line and sends it.
func (s *screen) typeIn(line string) {
	for _, r := range line {
		s.press(string(r))
	}
	s.run(s.press("enter"))
}

func (s *screen) command(line string) {
	s.press(":")
	s.typeIn(line)
}

func openVerified(t *testing.T, snap *snapshot, styles theme.Styles, width, height int) *screen {
	t.Helper()
	sc := newScreen(t, snap, styles, width, height)
	sc.press("V")
	return sc
}

func TestVerifiedDraws(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for name, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				golden.RequireEqual(t, openVerified(t, verifiedSnapshot(), styles, size[0], size[1]).drawn())
			})
		}
	}
}

// Every state must be drawn exactly.
func TestVerifiedEverySize(t *testing.T) {
	empty, failed := verifiedSnapshot(), verifiedSnapshot()
	empty.Verified = nil
	failed.Verified = &histories.Verified{Err: "the server is away", Incomplete: true, Ended: noon,
		Request: histories.VerifyRequest{Strict: true, Runs: make([]runs.Run, 3)}}
	for _, snap := range []*snapshot{verifiedSnapshot(), empty, failed} {
		sc := openVerified(t, snap, theme.New(true, true), 80, 24)
		for range 2 {
			for width := 40; width <= 220; width += 9 {
				for height := 10; height <= 50; height += 7 {
					sc.resize(width, height)
					sc.drawn()
				}
			}
			sc.press("tab")
		}
	}
}

// Verify covers all runs of the filter, the marked runs, or the selected one, optionally strict.
func TestVerifyWhat(t *testing.T) {
	snap := full(6)
	snap.Runs.Query = `ExperimentId="x"`
	sc := newScreen(t, snap, theme.New(true, true), 200, 50)
	sc.press("V")
	sc.heardAll("verify 0 runs of \"ExperimentId=\\\"x\\\"\" false")
	sc.press("1", "r")
	sc.heardAll("verify false")
	sc.press("1", " ", " ", "r")
	sc.heardAll("verify 2 runs of \"\" false")
	sc.command("verify all strict")
	sc.heardAll("verify 0 runs of \"ExperimentId=\\\"x\\\"\" true")
	sc.command("verify strict")
	sc.heardAll("verify 2 runs of \"\" true")
	sc.command("verify everything")
	if !strings.Contains(sc.drawn(), "use all or strict") {
		t.Error("an unknown argument is accepted")
	}
}

// The list leads to the event where a run diverges, and back.
func TestVerifiedOpens(t *testing.T) {
	sc := openVerified(t, verifiedSnapshot(), theme.New(true, true), 80, 24)
	sc.press("enter")
	sc.heardAll("select ace/q-1 r-1", "step to 17")
	if drawn := sc.drawn(); !strings.Contains(drawn, "expected (history)") ||
		!strings.Contains(drawn, "run_mirror") {
		t.Errorf("the verdict is not in sight:\n%s", drawn)
	}
	sc.press("esc", "F", "F", "F")
	if drawn := sc.drawn(); strings.Contains(drawn, "nondeterministic q-1") ||
		!strings.Contains(drawn, "no workflow of") {
		t.Errorf("only unverified ones:\n%s", drawn)
	}
	sc.press("J")
	sc.heardAll("select ace/q-2 r-2")
	sc.press("esc", "&")
	sc.heardAll(`verify 0 runs of "ExperimentId=\"finance-7\"" true`)
}

// The time machine stays on its run when newer runs arrive; a number after the colon is an event there.
func TestTimeMachineStays(t *testing.T) {
	snap := full(6)
	sc := newScreen(t, snap, theme.New(true, true), 80, 24)
	sc.press("t")
	was := len(sc.store.heard())
	next := *snap
	next.Runs.Rows = append([]runs.Run{{WorkflowID: "ace/newer", RunID: "r", TaskID: "newer", Start: noon}},
		snap.Runs.Rows...)
	sc.show(&next)
	if told := sc.store.heard()[was:]; slices.Contains(told, "select ace/newer r") {
		t.Errorf("the run under the time machine became another: %q", told)
	}
	sc.command("42")
	sc.heardAll("step to 42")
	sc.press("#")
	sc.typeIn("7")
	sc.heardAll("step to 7")
}
