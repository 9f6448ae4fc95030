package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/engine/tasks/runner"
	"acescope/sources/runners"
	"acescope/theme"
)

// runnersSnap has three runners, two of which can take the waiting runs.
func runnersSnap() *snapshot {
	s := ready(many(5)...)
	view := runner.View{At: noon, Waiting: 42, Running: 3, Runs: 2,
		Counts: runner.Counts{Matched: 812, Expired: 3, Lost: 1}}
	add := func(id string, status runner.Status, busy, slots int, done int64, c runner.Capabilities,
		runs ...string) {
		c.Slots = slots
		view.Runners = append(view.Runners, runner.RunnerView{ID: id, Epoch: 4, Status: status,
			Since: noon.Add(-time.Duration(slots) * time.Minute), Capabilities: c,
			PID: 4100 + slots, Version: "v0.6", Busy: busy, Done: done, Runs: runs})
	}
	add("local", runner.Online, 1, 4, 391,
		runner.Capabilities{Hostname: "till", ProjectDir: "/home/ada/shop", AnyProject: true,
			ExecutorTypes: []string{"deterministic", "claude-code"}}, "run_1")
	add("lnch_0a1b2c3d4e5f", runner.Online, 2, 2, 420,
		runner.Capabilities{Hostname: "gpu-7", ProjectDir: "/srv/models",
			ExecutorTypes: []string{"deterministic"}, Tags: []string{"cuda", "gpu", "linux"}}, "run_2",
		"run_3")
	add("lnch_ffffffffffff", runner.Stale, 0, 8, 0,
		runner.Capabilities{Hostname: "attic", ProjectDir: "/data", ExecutorTypes: []string{"codex"}})
	gpu := runner.Requirements{ExecutorType: "deterministic", Tags: []string{"gpu"}}
	mac := runner.Requirements{ExecutorType: "claude-code", Tags: []string{"mac"},
		ProjectDir: "/Users/ada/app"}
	view.Queues = []runner.QueueView{{Requirements: gpu, Waiting: 40, Oldest: "run_10", Able: 1},
		{Requirements: mac, Waiting: 2, Oldest: "run_11",
			Nearest: "nearest is runner local: it lacks tag mac, and works in any directory"}}
	for i := range 6 {
		w := runner.PendingView{RunID: fmt.Sprintf("run_%d", 10+i), Name: "train-model", Requirements: gpu,
			Since:    noon.Add(-time.Duration(200-i) * time.Second),
			Deadline: noon.Add(time.Duration(100*i+20) * time.Second)}
		if i%4 == 1 {
			w.Name, w.Requirements, w.Parent = "site-crawler", mac, "ses_0123456789ab"
		}
		view.Pending = append(view.Pending, w)
	}
	s.Runners = &runners.Runners{View: view, Answered: noon.Add(-time.Second), Wanted: "local", Updated: noon}
	for i, status := range []ace.Phase{"running", "completed", "failed", "stopped"} {
		r := runners.BlueprintRun(fmt.Sprintf("run_%d", i+1))
		r.RunID, r.Phase, r.Blueprint, r.Runner, r.Start, r.Status = fmt.Sprintf("x-%d", i), status,
			"site-crawler", "local", noon.Add(-time.Duration(i+1)*time.Minute), ace.Running
		if i > 0 {
			r.Close, r.Status = r.Start.Add(40*time.Second), []ace.Status{ace.Completed, ace.Failed,
				ace.Canceled}[i-1]
		}
		s.Runners.Runs = append(s.Runners.Runs, r)
	}
	return s
}

// hostileRunners has runners whose texts attack the terminal.
func hostileRunners() *snapshot {
	s := runnersSnap()
	evil := "\x1b[2J\x1b]0;owned\a\u202egnp.exe\u2066\r\n\tgreen 😀 " + strings.Repeat("wide 漢字 ", 40)
	d := s.Runners
	d.Err, d.RunsErr = evil, evil
	for i := range d.View.Runners {
		r := &d.View.Runners[i]
		r.Status, r.Version = runner.Status(evil), evil
		r.Capabilities = runner.Capabilities{Hostname: evil, ProjectDir: evil,
			ExecutorTypes: []string{evil, evil}, Tags: []string{evil}}
		if i > 0 {
			r.ID = evil
		}
	}
	for i := range d.View.Queues {
		d.View.Queues[i].Requirements, d.View.Queues[i].Nearest = runner.Requirements{Hostname: evil,
			Tags: []string{evil, fmt.Sprint(i)}}, evil
	}
	for i := range d.View.Pending {
		w := &d.View.Pending[i]
		w.RunID, w.Name, w.Parent, w.Requirements = evil, evil, evil, runner.Requirements{ProjectDir: evil}
	}
	for i := range d.Runs {
		d.Runs[i].WorkflowID, d.Runs[i].Blueprint, d.Runs[i].Phase = evil, evil, ace.Phase(evil)
	}
	return s
}

func runnersWith(change func(*runners.Runners)) *snapshot {
	s := runnersSnap()
	r := *s.Runners
	change(&r)
	s.Runners = &r
	return s
}

func TestRunnerScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			t.Run(fmt.Sprintf("%dx%d-%s", size[0], size[1], look), func(t *testing.T) {
				sc := newScreen(t, runnersSnap(), styles, size[0], size[1])
				sc.press("Q")
				golden.RequireEqual(t, sc.drawn())
			})
		}
	}
}

func TestPlainRunnerScreens(t *testing.T) {
	none := runnersWith(func(r *runners.Runners) { *r = runners.Runners{Absent: true, Updated: noon} })
	deaf := runnersWith(func(r *runners.Runners) {
		r.NoWorker, r.Err, r.Answered = true, "no answer in time", noon.Add(-5*time.Minute)
	})
	never := runnersWith(func(r *runners.Runners) {
		*r = runners.Runners{NoWorker: true, Err: "no answer in time", Updated: noon}
	})
	for name, c := range map[string]struct {
		snap *snapshot
		keys []string
	}{
		"runner":         {runnersSnap(), []string{"Q", "tab"}},
		"queue":          {runnersSnap(), []string{"Q", "]", "j", "tab"}},
		"waiting":        {runnersSnap(), []string{"Q", "G", "tab"}},
		"stop":           {runnersSnap(), []string{"Q", "tab", "x"}},
		"drain":          {runnersSnap(), []string{"Q", "D"}},
		"none":           {none, []string{"Q"}},
		"deaf":           {deaf, []string{"Q"}},
		"never-answered": {never, []string{"Q"}},
		"hostile":        {hostileRunners(), []string{"Q"}},
		"hostile-runner": {hostileRunners(), []string{"Q", "j", "tab"}},
		"hostile-queue":  {hostileRunners(), []string{"Q", "]", "tab"}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, c.snap, theme.New(true, true), 80, 24)
			sc.press(c.keys...)
			golden.RequireEqual(t, sc.plain())
		})
	}
}

func TestEveryRunnerSize(t *testing.T) {
	t.Parallel()
	for _, snap := range []*snapshot{runnersSnap(), hostileRunners(), ready()} {
		for _, keys := range [][]string{{"Q"}, {"Q", "tab"}, {"Q", "]", "tab"}, {"Q", "G"}, {"Q", "D"}} {
			sc := newScreen(t, snap, theme.New(true, false), 80, 24)
			sc.press(keys...)
			for w := 40; w <= 220; w += 9 {
				for _, h := range []int{10, 11, 17, 24, 50} {
					sc.resize(w, h)
					sc.drawn()
				}
			}
			if t.Failed() {
				t.Fatalf("after %v", keys)
			}
		}
	}
}

// Stop and drain act on the run or runner in the question, after a yes.
func TestRunnerActions(t *testing.T) {
	for name, c := range map[string]struct {
		keys []string
		want string
	}{
		"a running run":    {[]string{"Q", "tab", "x", "y"}, "stop run run_1"},
		"a waiting run":    {[]string{"Q", "]", "]", "j", "x", "y"}, "stop run run_11"},
		"a runner":         {[]string{"Q", "j", "D", "y"}, "drain lnch_0a1b2c3d4e5f"},
		"no answer":        {[]string{"Q", "tab", "x", "n"}, ""},
		"a run that ended": {[]string{"Q", "tab", "j", "x", "y"}, ""},
		"no run":           {[]string{"Q", "x", "y"}, ""},
	} {
		sc := newScreen(t, runnersSnap(), plainLook, 80, 24)
		before := len(sc.store.heard())
		if cmd := sc.press(c.keys...); cmd != nil {
			if msg := cmd(); msg != nil {
				sc.model.Update(msg)
			}
		}
		did := slices.DeleteFunc(sc.store.heard()[before:], func(said string) bool {
			return !strings.HasPrefix(said, "stop run") && !strings.HasPrefix(said, "drain")
		})
		if got := strings.Join(did, "; "); got != c.want {
			t.Errorf("%s: %v did %q, not %q", name, c.keys, got, c.want)
		}
	}
}

// Runs open from both panes; a runner's runs are read when the cursor is on it.
func TestRunnerOpens(t *testing.T) {
	sc := newScreen(t, runnersSnap(), plainLook, 80, 24)
	sc.press("Q", "tab", "j", "enter")
	if heard := sc.store.heard(); !slices.Contains(heard, "select run/run_2 x-1") ||
		!slices.Contains(heard, "runner local") {
		t.Errorf("heard %q", heard)
	}
	sc = newScreen(t, runnersSnap(), plainLook, 80, 24)
	sc.press("Q", "j", "]", "]", "enter")
	if heard := sc.store.heard(); !slices.Contains(heard, "select run/run_10 ") ||
		!slices.Contains(heard, "runner lnch_0a1b2c3d4e5f") {
		t.Errorf("heard %q", heard)
	}
}

// The cursor stays on its run while others are added and removed before it.
func TestRunnersKeepTheCursor(t *testing.T) {
	sc := newScreen(t, runnersSnap(), plainLook, 80, 24)
	sc.press("Q", "]", "]", "j", "j")
	sc.show(runnersWith(func(r *runners.Runners) { r.View.Pending = r.View.Pending[2:] }))
	sc.press("enter")
	if heard := sc.store.heard(); !slices.Contains(heard, "select run/run_12 ") {
		t.Errorf("heard %q", heard)
	}
}
