package views

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"acescope/engine/ace"
	runspkg "acescope/sources/runs"
	"acescope/theme"
	"acescope/views/console"
)

var plainLook = theme.New(true, true)

// selected returns the row under the cursor.
func (s *screen) selected() string {
	for _, l := range splitLines(s.plain()) {
		if i := strings.Index(l, "▸ q-"); i >= 0 {
			return strings.Fields(l[i:])[1]
		}
	}
	return ""
}

func (s *screen) has(want string) {
	s.t.Helper()
	if out := s.plain(); !strings.Contains(out, want) {
		s.t.Errorf("screen does not say %q:\n%s", want, out)
	}
}

func (s *screen) lacks(unwanted string) {
	s.t.Helper()
	if out := s.plain(); strings.Contains(out, unwanted) {
		s.t.Errorf("screen says %q:\n%s", unwanted, out)
	}
}

func TestMoving(t *testing.T) {
	rows := many(200)
	sc := newScreen(t, ready(rows...), plainLook, 80, 24)
	page := 18
	for _, step := range []struct {
		keys []string
		want int
	}{
		{nil, 0}, {[]string{"j", "down"}, 2}, {[]string{"k"}, 1}, {[]string{"k", "k", "up"}, 0},
		{[]string{"G"}, 199}, {[]string{"j"}, 199}, {[]string{"g"}, 0}, {[]string{"ctrl+d"}, page / 2},
		{[]string{"ctrl+u"}, 0},
		{[]string{"pgdown"}, page - 1}, {[]string{"pgup"}, 0}, {[]string{"end"}, 199}, {[]string{"home"}, 0},
	} {
		sc.press(step.keys...)
		if got, want := sc.selected(), rows[step.want].TaskID; got != want {
			t.Errorf("after %v the selection is %s, want %s", step.keys, got, want)
		}
	}
}

func TestSelectionStaysOnItsRun(t *testing.T) {
	all := many(300)
	sc := newScreen(t, ready(all[100:]...), plainLook, 80, 24)
	sc.press("j", "j", "j")
	want := all[103].TaskID
	for _, from := range []int{99, 90, 50, 0} {
		sc.show(ready(all[from:]...))
		if got := sc.selected(); got != want {
			t.Fatalf("with %d runs above, the selection is %s, want %s", 100-from, got, want)
		}
	}
	for _, l := range sc.store.heard()[4:] {
		if strings.HasPrefix(l, "select") {
			t.Errorf("the store was told %q though the cursor did not move", l)
		}
	}
}

// Rows on screen must not jump while the user reads further down.
func TestReadingIsNotDisturbed(t *testing.T) {
	all := many(300)
	sc := newScreen(t, ready(all[100:]...), plainLook, 80, 24)
	sc.press("pgdown", "pgdown", "pgdown")
	before := splitLines(sc.plain())[2:22]
	sc.show(ready(all[80:]...))
	if after := splitLines(sc.plain())[2:22]; !slices.Equal(before, after) {
		t.Errorf("rows moved from\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

func TestNewRunsComeIntoSightAtTheTop(t *testing.T) {
	all := many(20)
	sc := newScreen(t, ready(all[1:]...), plainLook, 80, 24)
	sc.show(ready(all...))
	sc.has(all[0].TaskID)
}

func TestFollowingTheNewest(t *testing.T) {
	all := many(60)
	sc := newScreen(t, ready(all[3:]...), plainLook, 80, 24)
	steps := []struct {
		rows []runspkg.Run
		keys []string
		want string
		on   bool
	}{
		{all[2:], nil, all[2].TaskID, true},               // the only open run
		{all, nil, all[2].TaskID, true},                   // still open, newer ones are not taken
		{closed(all, 2), nil, all[0].TaskID, true},        // it closed: the newest open one
		{closed(all, 2), []string{"j"}, "q-00059", false}, // the user moved
		{closed(all, 0, 1, 2), nil, "q-00059", false},
		{all, []string{"g"}, all[0].TaskID, true},
		{all, []string{"enter", "esc"}, all[0].TaskID, false}, // the user read it
	}
	for i, s := range steps {
		sc.show(ready(s.rows...))
		sc.press(s.keys...)
		if got := sc.selected(); got != s.want {
			t.Errorf("step %d: the selection is %s, want %s", i, got, s.want)
		}
		if on := strings.Contains(sc.plain(), "following the newest"); on != s.on {
			t.Errorf("step %d: following is %v", i, on)
		}
	}
}

// closed returns the runs with some of them closed.
func closed(runs []runspkg.Run, which ...int) []runspkg.Run {
	out := slices.Clone(runs)
	for _, i := range which {
		out[i].Close, out[i].Status = noon, ace.Completed
	}
	return out
}

func TestSelectedRunThatLeavesTheList(t *testing.T) {
	all := many(10)
	sc := newScreen(t, ready(all...), plainLook, 80, 24)
	sc.press("G")
	sc.show(ready(all[:4]...))
	if got := sc.selected(); got != all[3].TaskID {
		t.Errorf("selection is %s, want the last row %s", got, all[3].TaskID)
	}
	sc.show(ready())
	sc.has("no runs yet")
}

func TestARunStartedAgainIsAnotherRun(t *testing.T) {
	a, b := many(1)[0], many(1)[0]
	b.RunID = "run-2"
	sc := newScreen(t, ready(a), plainLook, 80, 24)
	sc.show(ready(b, a))
	sc.press("x")
	sc.has("run-q-00001 ")
}

func TestEscNeverQuits(t *testing.T) {
	sc := newScreen(t, full(5), plainLook, 80, 24)
	sc.press("enter")
	sc.has("Under way")
	for range 3 {
		if cmd := sc.press("esc"); cmd != nil {
			t.Fatal("esc returned a command")
		}
	}
	sc.has("TASK")
}

func TestQuitting(t *testing.T) {
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"/", "ctrl+c"}, {"?", "ctrl+c"}, {"x", "ctrl+c"},
		{"enter", "q"}} {
		sc := newScreen(t, full(5), plainLook, 80, 24)
		cmd := sc.press(keys...)
		if cmd == nil || fmt.Sprintf("%T", cmd()) != "tea.QuitMsg" {
			t.Errorf("%v does not quit", keys)
		}
	}
	sc := newScreen(t, full(5), plainLook, 80, 24)
	if cmd := sc.press("/", "q"); cmd != nil && fmt.Sprintf("%T", cmd()) == "tea.QuitMsg" {
		t.Error("q in the query bar quits")
	}
}

func TestQueryBar(t *testing.T) {
	sc := newScreen(t, full(5), plainLook, 80, 24)
	sc.press("/")
	sc.has(`/ ExperimentId="finance-7"`)
	sc.press("ctrl+u")
	sc.press(letters("wrong exp=a")...)
	sc.has(`→ ExitStatus="wrong" AND ExperimentId="a"`)
	sc.press("enter")
	if !slices.Contains(sc.store.heard(), `query ExitStatus="wrong" AND ExperimentId="a"`) {
		t.Errorf("the store heard %q", sc.store.heard())
	}
	sc.press("/", "z", "esc")
	if n := len(sc.store.heard()); n != 2 {
		t.Errorf("a query that was left was sent: %q", sc.store.heard())
	}
}

func TestCancelIsFrozen(t *testing.T) {
	all := many(20)
	sc := newScreen(t, ready(all[1:]...), plainLook, 80, 24)
	sc.press("x")
	sc.has("run-" + all[1].TaskID)
	sc.show(ready(append([]runspkg.Run{all[0]}, all[5:]...)...))
	cmd := sc.press("y")
	if cmd == nil {
		t.Fatal("yes did nothing")
	}
	sc.model.Update(cmd())
	want := "cancel " + all[1].WorkflowID + " " + all[1].RunID
	if !slices.Contains(sc.store.heard(), want) {
		t.Errorf("the engine heard %q, want %q", sc.store.heard(), want)
	}
	sc.has("asked " + all[1].WorkflowID)
}

func TestCancelNeedsYes(t *testing.T) {
	for _, no := range []string{"n", "esc", "q"} {
		sc := newScreen(t, full(5), plainLook, 80, 24)
		if cmd := sc.press("x", no); cmd != nil {
			t.Errorf("%s returned a command", no)
		}
		sc.lacks("Cancel this run?")
	}
	sc := newScreen(t, full(5), plainLook, 80, 24)
	sc.press("G", "x")
	sc.has("already closed")
	sc.press("G", "x")
	sc.lacks("Cancel this run?")
}

func TestRefreshAndPause(t *testing.T) {
	sc := newScreen(t, full(5), plainLook, 80, 24)
	sc.press("ctrl+r", "p")
	sc.show(paused(full(5)))
	sc.has("‖ paused")
	sc.press("p")
	if got, want := sc.store.heard()[1:],
		[]string{"refresh", "paused true", "paused false"}; !slices.Equal(got, want) {
		t.Errorf("the store heard %q, want %q", got, want)
	}
}

func TestMoreIsAskedForOnce(t *testing.T) {
	s := ready(many(200)...)
	s.Runs.More = true
	sc := newScreen(t, s, plainLook, 80, 24)
	asked := func() (n int) {
		for _, l := range sc.store.heard() {
			if l == "more" {
				n++
			}
		}
		return n
	}
	sc.press("j")
	if asked() != 0 {
		t.Error("more was asked for at the top")
	}
	for range 9 {
		sc.press("pgdown")
	}
	sc.press("k", "k", "j")
	if asked() != 1 {
		t.Errorf("more was asked for %d times", asked())
	}
	s2 := ready(many(400)...)
	s2.Runs.More = true
	sc.show(s2)
	for range 11 {
		sc.press("pgdown")
	}
	if asked() != 2 {
		t.Errorf("after more came, more was asked for %d times", asked())
	}
}

func TestDetailOfAnotherRunIsNotShown(t *testing.T) {
	sc := newScreen(t, full(5), plainLook, 200, 50)
	sc.has("Playbook Δ")
	sc.press("j")
	sc.lacks("Playbook Δ")
	sc.has("reading q-00004")
	s := full(5)
	s.Detail = detailOf(s.Runs.Rows[1])
	sc.show(s)
	sc.has("Playbook Δ")
}

func TestLogFollowsUntilScrolledUp(t *testing.T) {
	line := func(n int) runspkg.LogLine {
		return runspkg.LogLine{At: noon, Kind: "skill", Text: fmt.Sprintf("entry %d.", n)}
	}
	snap := func(from, to int) *snapshot {
		s := full(5)
		s.Detail.Log, s.Detail.LogDropped = nil, from
		for i := from; i < to; i++ {
			s.Detail.Log = append(s.Detail.Log, line(i))
		}
		return s
	}
	sc := newScreen(t, snap(0, 50), plainLook, 80, 24)
	sc.press("tab", "m")
	sc.has("entry 49.")
	sc.show(snap(0, 60))
	sc.has("entry 59.")
	sc.press("k", "k")
	sc.has("2 below")
	sc.show(snap(10, 100))
	sc.has("entry 57.")
	sc.lacks("entry 58.")
	sc.has("10 dropped")
	sc.press("G")
	sc.has("entry 99.")
	sc.show(snap(10, 101))
	sc.has("entry 100.")
}

func TestLostConnectionKeepsTheDataAndRecovers(t *testing.T) {
	sc := newScreen(t, full(5), plainLook, 80, 24)
	sc.show(lost(full(5)))
	sc.has("server unreachable since 4s – retrying: dial tcp")
	sc.has("(stale)")
	sc.has("q-00005")
	sc.show(full(5))
	sc.lacks("away")
	sc.lacks("stale")
}

func TestSettledRunsShowTheirRetry(t *testing.T) {
	r := many(3)[2]
	sc := newScreen(t, ready(r), plainLook, 80, 24)
	sc.has(r.TaskID + "  ↻")
	sc.has(r.LastError)
	r.Close, r.Status, r.Phase = noon, ace.Completed, ace.PhaseDone
	sc.show(ready(r))
	sc.lacks("↻")
	sc.lacks(r.LastError)
}

// A cached row must equal the row that would be drawn.
func TestCachedRowsAreFresh(t *testing.T) {
	s := full(30)
	sc := newScreen(t, s, plainLook, 80, 24)
	sc.drawn()
	next := full(30)
	next.Runs.Rows[4].Summary = &ace.Summary{Skills: 77, SkillsOK: 76}
	next.Runs.Rows[5].Summary = nil
	sc.show(next)
	if got, want := sc.plain(), newScreen(t, next, plainLook, 80, 24).plain(); got != want {
		t.Errorf("with a warm cache:\n%s\nwithout:\n%s", got, want)
	}
}

func TestActionErrorIsShown(t *testing.T) {
	sc := newScreen(t, full(5), plainLook, 80, 24)
	st := newStore(full(5))
	c := console.New(console.Options{Context: t.Context(), Controls: st,
		Actions: console.Actions{Runs: failing{}}}, nil)
	c.Navigation.Show(runspkg.Run{WorkflowID: "ace/q", RunID: "r"})
	c.Actor.Cancel(sc.model)
	sc.model.Update(sc.press("y")())
	sc.has("cancel ace/q: permission")
}

type failing struct{ console.RunActions }

func (failing) Cancel(context.Context, string, string) error { return errors.New("permission denied") }

// A run chosen on another screen that is not in the list stays selected until the user moves the cursor of
// the list or filters it.
func TestChosenElsewhere(t *testing.T) {
	sc := newScreen(t, full(60), plainLook, 200, 50)
	c := sc.shared.Navigation
	c.Show(runspkg.Run{WorkflowID: "ace/old-1", RunID: "r-old", TaskID: "old-1"})
	sc.show(full(60))
	if c.Selected.Run.TaskID != "old-1" || !slices.Contains(sc.store.heard(), "select ace/old-1 r-old") {
		t.Errorf("selected is %+v", c.Selected)
	}
	sc.press("j")
	if c.Selected.Run.TaskID != "q-00059" {
		t.Errorf("after moving, selected is %s", c.Selected.Run.TaskID)
	}
	c.Show(runspkg.Run{WorkflowID: "ace/old-1", RunID: "r-old", TaskID: "old-1"})
	filtered := full(60)
	filtered.Runs.Query = `Verdict="wrong"`
	sc.show(filtered)
	if c.Selected.Run.TaskID != "q-00060" {
		t.Errorf("after filtering, selected is %s", c.Selected.Run.TaskID)
	}
}
