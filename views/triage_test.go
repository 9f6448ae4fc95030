package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	runspkg "acescope/sources/runs"
	"acescope/sources/triage"
	"acescope/theme"
	"acescope/tui"
	"acescope/views/console"
	triageview "acescope/views/triage"
)

// ailing has runs with every kind of finding.
func ailing() *snapshot {
	s := full(60)
	runs := s.Runs.Rows[3:]
	trend := []float64{0, 0, 1, 0, 2, 3, 1, 0, 0, 4, 6, 9, 12, 9, 4, 2, 1, 0, 0, 0, 1, 2, 7, 8}
	group := func(kind ace.Status, what string, phase ace.Phase, n int, message string) triage.FailureGroup {
		g := triage.FailureGroup{
			Cause: triage.Cause{Status: kind, Type: what, Phase: phase, Activity: phase.Activity(),
				Pattern: triage.Normalize(message)},
			Count: n, Share: float64(n) / 2000, Low: float64(n) / 2200, High: float64(n) / 1800, Trend: trend,
			Runs: slices.Clone(runs[:min(n, 40)]),
		}
		g.First = triage.Example{Run: runs[39], At: noon.Add(-3 * time.Hour), Message: message}
		g.Last = triage.Example{Run: runs[1], At: noon.Add(-12 * time.Second), Message: message}
		return g
	}
	wrong := group(ace.Completed, "", "", 80, "no recipe was known for the formula")
	wrong.Verdict = ace.Wrong
	for i := range wrong.Runs {
		reason := triage.Reason{Subject: fmt.Sprint("Return on Equity, ", 2000+i), Answer: "0.172",
			Expected: "0.2", Cause: wrong.Pattern}
		if i%2 == 0 {
			reason.Insights = "The formula was looked up under another name. Of 256 calculations tried, none gives the label."
		}
		wrong.Reasons = append(wrong.Reasons, reason)
		wrong.Runs[i].Status, wrong.Runs[i].Verdict = ace.Completed, ace.Wrong
	}
	wrong.Last.Run, wrong.Last.Reason = wrong.Runs[1], &wrong.Reasons[0]
	t := &triage.Result{Query: s.Runs.Query, Window: triage.DefaultWindow, At: noon.Add(-2 * time.Second),
		Ended: 2000, Open: 3, More: true,
		Scan: triage.Scan{Took: 640 * time.Millisecond}, From: noon.Add(-3 * time.Hour), To: noon,
		Grouped: 256,
		Groups: []triage.FailureGroup{
			group(ace.Failed, "Permanent", ace.PhaseReflector, 131,
				"model: status 529 overloaded, request req_8f12c0de at 2026-05-04T11:59:48Z; retry after 20s"),
			wrong,
			group(ace.TimedOut, "StartToClose", ace.PhaseSkills, 40, "activity StartToClose timeout"),
			group(ace.Canceled, "", ace.PhaseCurator, 4, "cancelled"),
			group(ace.Failed, "", ace.PhaseGenerator, 1,
				"dial tcp 10.0.0.7:443: connect: connection refused"),
		},
		Retrying: []triage.Retrying{
			{Run: s.Runs.Rows[2], Activity: ace.ActivityReflector, Phase: ace.PhaseReflector,
				State: "scheduled", Attempt: 7, MaxAttempts: 10,
				LastError: ace.Failure{Kind: ace.Failed, Type: "Overloaded",
					Message: "model: 529 overloaded"}, Since: noon.Add(-9 * time.Minute),
				Next: noon.Add(17 * time.Second), Worker: "4711@host"},
			{Run: runspkg.Run{WorkflowID: "order-17", RunID: "r-17", Type: "OrderWorkflow",
				Status: ace.Running, Start: noon.Add(-time.Hour)},
				Activity: runspkg.WorkflowTask, State: "started", Attempt: 3,
				LastError: ace.Failure{Message: "nondeterministic workflow"}, Since: noon.Add(-time.Minute)},
		},
		Slowest: runs[:8], MostExpensive: runs[8:20], Largest: runs[20:24], PhaseRuns: 1990, PhaseSampled: 50,
		PhaseUnknown: 10}
	runs[0].Summary.PhaseMS = ace.PhaseMS{Generator: 120, Skills: 300, Reflector: 80, Curator: 40, Persist: 9}
	for i, step := range ace.Steps() {
		t.Phases = append(t.Phases, triage.PhaseStat{Phase: string(step), Runs: 1990 - i,
			P50: float64(80 + 300*i%700), P95: float64(900 + 100*i), Max: 4200, Worst: runs[i]})
	}
	s.Triage = t
	return s
}

func scanning() *snapshot {
	s := ailing()
	s.Triage = &triage.Result{Window: 5000, At: noon,
		Scan: triage.Scan{Running: true, Stage: "why runs failed", Done: 40, Total: 317}}
	return s
}

func troubledTriage(change func(*triage.Result)) *snapshot {
	s := ailing()
	change(s.Triage)
	return s
}

func TestTriageScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			t.Run(fmt.Sprintf("full-%dx%d-%s", size[0], size[1], look), func(t *testing.T) {
				sc := newScreen(t, ailing(), styles, size[0], size[1])
				sc.press("7")
				golden.RequireEqual(t, sc.drawn())
			})
		}
	}
	for name, c := range map[string]struct {
		snap *snapshot
		keys []string
	}{
		"group":    {ailing(), []string{"7", "]", "tab"}},
		"wrong":    {ailing(), []string{"7", "]", "j", "tab"}},
		"retrying": {ailing(), []string{"7", "tab"}},
		"slowest":  {ailing(), []string{"7", "]", "]", "tab"}},
		"phase":    {ailing(), []string{"7", "G", "tab"}},
		"end":      {ailing(), []string{"7", "G"}},
		"scanning": {scanning(), []string{"7"}},
		"loading":  {full(3), []string{"7"}},
		"empty": {troubledTriage(func(t *triage.Result) {
			*t = triage.Result{Window: triage.DefaultWindow, At: noon}
		}), []string{"7"}},
		"no-match": {troubledTriage(func(t *triage.Result) {
			*t = triage.Result{Query: `TaskId="x"`, Window: triage.DefaultWindow, At: noon}
		}), []string{"7"}},
		"error": {troubledTriage(func(t *triage.Result) { t.Err = "shard status unknown" }), []string{"7"}},
		"stopped": {troubledTriage(func(t *triage.Result) { t.Scan = triage.Scan{Stopped: true} }),
			[]string{"7"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, c.snap, plainLook, 80, 24)
			sc.press(c.keys...)
			golden.RequireEqual(t, sc.plain())
		})
	}
}

func hostileTriage() *snapshot {
	s := ailing()
	bad := hostile()
	for i := range s.Triage.Groups {
		evil := bad.Runs.Rows[i].TaskID
		g := &s.Triage.Groups[i]
		g.Type, g.Pattern, g.Last.Message, g.Activity = evil, evil, evil+evil, evil
		g.Last.Reason = &triage.Reason{Subject: evil, Answer: evil, Expected: evil, Insights: evil}
		g.Runs = bad.Runs.Rows
		g.Reasons = []triage.Reason{*g.Last.Reason}
	}
	s.Triage.Retrying[0].Run = bad.Runs.Rows[3]
	s.Triage.Retrying[0].LastError.Message = bad.Runs.Rows[3].TaskID
	s.Triage.Slowest = bad.Runs.Rows
	s.Triage.Phases[0].Phase = bad.Runs.Rows[3].TaskID
	s.Triage.Err = bad.Runs.Rows[3].TaskID
	return s
}

func TestTriageIsExact(t *testing.T) {
	t.Parallel()
	for _, snap := range []*snapshot{ailing(), hostileTriage(), scanning(), full(3)} {
		sc := newScreen(t, snap, theme.New(true, false), 80, 24)
		for _, keys := range [][]string{{"7"}, {"]"}, {"tab"}, {"tab", "a", "G"}, {"tab"}, {"tab", "g"},
			{"tab"}} {
			sc.press(keys...)
			for w := 40; w <= 220; w += 9 {
				for _, h := range []int{10, 11, 17, 24, 50} {
					sc.resize(w, h)
					if out := sc.drawn(); strings.ContainsAny(out, "\a\r") || strings.Contains(out, "\x1b]") {
						t.Fatal("what came from outside reached the terminal")
					}
				}
			}
			if t.Failed() {
				t.Fatalf("after %v", keys)
			}
		}
	}
}

func TestTriageKeys(t *testing.T) {
	sc := newScreen(t, ailing(), plainLook, 80, 24)
	sc.press("7")
	told := func(want string) {
		t.Helper()
		if got := sc.toldLast(); got != want {
			t.Errorf("the store was told %q last, want %q", got, want)
		}
	}
	if !slices.Contains(sc.store.heard(), "look triage true") {
		t.Errorf("%q", sc.store.heard())
	}
	sc.press("enter")
	told("select ace/q-00058 run-q-00058")
	sc.press("7", "+")
	told("window 5000")
	sc.press("-", "-")
	told("window 1000")
	sc.press(".", ".")
	told("since 1h0m0s")
	sc.has("closed in the last hour")
	sc.press(".", ".", ".")
	told("since 0s")
	sc.press("ctrl+r")
	told("scan")
	sc.press("s")
	sc.has("256 runs, by newest")
	sc.press("s")
	sc.has("by kind")
	sc.press("s", "]", "]", "a")
	sc.lacks("3 more")
	sc.press("[", "F")
	sc.has("listing the newest 40 runs of the group")
	if got := sc.toldLast(); !strings.HasPrefix(got, "query RunId IN ('run-q-00057', 'run-q-00056'") {
		t.Errorf("%s", got)
	}
	narrowed := ailing()
	narrowed.Triage.Query = strings.TrimPrefix(sc.toldLast(), "query ")
	sc.show(narrowed)
	sc.press("7", "backspace")
	told(`query ExperimentId="finance-7"`)
	sc.press("8")
	if h := sc.store.heard(); !slices.Equal(h[len(h)-2:], []string{"look triage false", "look health true"}) {
		t.Errorf("%q", h)
	}
}

// From a group of wrong answers a key leads to the moment, and another one marks its runs.
func TestTriageOfWrongAnswers(t *testing.T) {
	sc := newScreen(t, ailing(), plainLook, 120, 40)
	sc.press("7", "]", "j", "space")
	sc.has("40 runs marked")
	sc.press("tab", "G", "space")
	sc.has("39 runs marked")
	sc.press("tab", "space")
	sc.has("40 runs marked")
	sc.press("space")
	sc.has("0 runs marked")
	sc.press("t")
	sc.has("▸9 replay")
	if got := sc.toldLast(); got != "step to wrong" {
		t.Errorf("told %q", got)
	}
	if got := sc.last("select "); got != "ace/q-00056 run-q-00056" {
		t.Errorf("selected %s", got)
	}
}

// toldLast returns the last call of the store, except Look.
func (s *screen) toldLast() string {
	told := slices.DeleteFunc(s.store.heard(), func(t string) bool { return strings.HasPrefix(t, "look ") })
	if len(told) == 0 {
		return ""
	}
	return told[len(told)-1]
}

func TestTriageStopsAScan(t *testing.T) {
	sc := newScreen(t, scanning(), plainLook, 80, 24)
	sc.press("7")
	sc.has("why runs failed 40/317 (ctrl+r stops)")
	sc.press("ctrl+r")
	if h := sc.store.heard(); h[len(h)-1] != "stop" {
		t.Errorf("%q", h)
	}
}

// The cursor stays on its group when the order changes.
func TestTriageKeepsItsPlace(t *testing.T) {
	sc := newScreen(t, ailing(), plainLook, 80, 24)
	sc.press("7", "]", "j", "j")
	sc.has("▸     40 ◷ timed out")
	next := ailing()
	next.Triage.Groups[0], next.Triage.Groups[2] = next.Triage.Groups[2], next.Triage.Groups[0]
	sc.show(next)
	sc.has("▸     40 ◷ timed out")
	gone := ailing()
	gone.Triage.Groups = nil
	sc.show(gone)
	sc.has("▸")
}

func TestTriageCopiesAndKeeps(t *testing.T) {
	st := newStore(ailing())
	list := triageview.Screen(console.New(console.Options{Controls: st, Location: time.UTC}, nil),
		st.triage(), func() {}).Views[0]
	v := list.(interface {
		tui.View
		tui.Copier
		tui.Keeper
	})
	v.Refresh()
	if what, text := v.Copy(); what != "error message" || text != "model: 529 overloaded" {
		t.Errorf("%q: %q", what, text)
	}
	v.Restore(map[string]string{"sort": "kind", "window": "500", "since": "24h0m0s"})
	if k := v.Keep(); k["sort"] != "kind" || k["window"] != "500" || k["since"] != "24h0m0s" {
		t.Errorf("%v", k)
	}
	v.Restore(map[string]string{"sort": "color", "window": "-1", "since": "3s"})
	if k := v.Keep(); k["sort"] != "kind" || k["window"] != "500" || k["since"] != "24h0m0s" {
		t.Errorf("%v", k)
	}
}
