package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/sources/experiments"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/views/console"
	experimentsview "acescope/views/experiments"
)

// learnt returns a series of n tasks whose accuracy grows.
func learnt(name, data string, n, hard int, cost float64) *experiments.Series {
	s := &experiments.Series{WorkflowID: ace.ExperimentWorkflowID(name), RunID: "run-" + name,
		Status: ace.Completed, Start: noon.Add(-10 * time.Minute), Close: noon.Add(-5 * time.Minute),
		Input: ace.ExperimentInput{ExperimentID: name, DatasetID: data, Dataset: ace.Ref{SHA256: data},
			Model: "builtin", Adapter: ace.Offline, Parallel: 2,
			EvaluationPlan: ace.EvaluationPlan{EvalID: "held-out", Eval: &ace.Ref{SHA256: "e"}}}}
	p := &s.Progress
	*p = ace.ExperimentProgress{ExperimentID: name, TotalEpochs: 1, TotalTasks: n, Epoch: 1,
		Epochs: []ace.EpochResult{{Epoch: 1}}, Stage: ace.StageDone, Status: ace.Completed,
		Eval: []ace.EvalResult{{Tasks: 20, Correct: 4, Accuracy: 0.2},
			{Epoch: 1, Tasks: 20, Correct: 20 - hard, Accuracy: float64(20-hard) / 20}}}
	for i := range hard {
		p.Eval[1].Wrong = append(p.Eval[1].Wrong, 2*i+hard%2)
	}
	t := &s.Tasks
	for i := range n {
		right := (i*7+3)%n < i && i%(hard+3) > 0
		v := ace.Wrong
		if right {
			v = ace.Correct
			p.Epochs[0].Correct++
		}
		bullets := 4 + i/3 - i/40*5
		*t = append(*t, experiments.Task{
			TaskID: fmt.Sprintf("%s-e1-%04d", name, i+1), Answer: fmt.Sprint(i % 9), Prompt: uint64(i + 1),
			Epoch: 1,
			Index: int32(i), Status: ace.Completed, Verdict: v, Bullets: int32(bullets),
			Accepted: int32(2 - i%2),
			Rejected: int32(i % 3 / 2), Input: 500, Output: 100, Cost: cost, At: int64(i+1) * 1200,
			Duration: 800,
		})
		p.Bullets, p.Accepted, p.Rejected = bullets, p.Accepted+2-i%2, p.Rejected+i%3/2
		p.Epochs[0].Tasks++
		p.Usage = p.Usage.Add(ace.Usage{InputTokens: 500, OutputTokens: 100, CostUSD: cost})
	}
	return s
}

// listed has experiments with all their series read.
func listed(all ...*experiments.Series) *snapshot {
	snap := full(3)
	e := &experiments.Experiments{Loaded: noon, Series: all}
	for i, s := range all {
		r := runs.Run{WorkflowID: s.WorkflowID, RunID: s.RunID, Type: ace.ExperimentWorkflow,
			Experiment: s.Name(), Dataset: s.Input.DatasetID,
			Model: s.Input.Model, Status: s.Status, Start: s.Start.Add(-time.Duration(i) * time.Hour),
			Close: s.Close}
		e.Rows = append(e.Rows, experiments.Experiment{Run: r, Progress: &s.Progress})
	}
	snap.Experiments = e
	return snap
}

func three() *snapshot {
	live := learnt("night-3", "finance", 40, 6, 0.002)
	live.Status, live.Close, live.Progress.TotalTasks, live.Progress.Stage, live.Progress.Eval = ace.Running,
		time.Time{}, 200, ace.StageLearning, live.Progress.Eval[:1]
	return listed(live, learnt("tuned", "finance", 120, 3, 0.004), learnt("plain", "finance", 100, 5, 0.009))
}

func hostileExperiments() *snapshot {
	a, b := learnt("財務\x1b[31m\u202eשלום📈📈📈📈📈📈📈📈📈📈📈📈📈📈", "d\x1b]0;x\a", 30, 2, 0),
		learnt("b\nb", "財務財務財務財務財務", 30, 3, 0)
	a.Tasks[7].Answer, a.Err = "\x1b[2J財務財務財務財務財務財務", "bad\x1b[31m news"
	b.Failure = &ace.Failure{Message: "\u202eevil\x1b[1m"}
	a.Input.SkillsConfig.AllowedTools = []string{"x\x1b[31m"}
	return listed(a, b)
}

func brokenExperiments() *snapshot {
	s := full(3)
	s.Experiments = &experiments.Experiments{Loaded: noon, Err: "context deadline exceeded"}
	return s
}

// unread has a closed experiment that is being read.
func unread() *snapshot {
	s := learnt("cold", "d", 40, 3, 0)
	s.Reading, s.Status, s.Close = true, ace.Running, time.Time{}
	return listed(s)
}

func noExperiments() *snapshot {
	s := full(3)
	s.Experiments = &experiments.Experiments{Loaded: noon}
	return s
}

var comparing = []string{"5", "j", "space", "j", "space", "="}

func TestExperimentScreens(t *testing.T) {
	for name, keys := range map[string][]string{"one": {"5", "j"}, "plots": {"5", "space", "j", "space", "j",
		"space", "tab"}, "compare": comparing} {
		for _, size := range [][2]int{{80, 24}, {200, 50}} {
			for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
				"nocolor": theme.New(true, true)} {
				t.Run(fmt.Sprintf("%s-%dx%d-%s", name, size[0], size[1], look), func(t *testing.T) {
					sc := newScreen(t, three(), styles, size[0], size[1])
					sc.press(keys...)
					golden.RequireEqual(t, sc.drawn())
				})
			}
		}
	}
}

// A grader with partial credit has a mean score, also if it is 0.
func TestExperimentWithScores(t *testing.T) {
	s := learnt("tagged", "finer", 40, 6, 0.002)
	s.Input.Grader = ace.GraderTags
	s.Progress.Eval[1].Score = 17
	sc := newScreen(t, listed(s), plainLook, 120, 40)
	sc.press("5")
	golden.RequireEqual(t, sc.plain())
	sc.has("EVAL┃")
}

func TestPlainExperimentScreens(t *testing.T) {
	for name, c := range map[string]struct {
		snap   *snapshot
		width  int
		height int
		keys   []string
	}{
		"operations": {three(), 80, 24, []string{"5", "j", "space", "tab", "]", "]", "]", "X"}},
		"cost":       {three(), 80, 24, []string{"5", "j", "space", "tab", "[", ".", "."}},
		"free":       {listed(learnt("free", "d", 60, 2, 0)), 80, 24, []string{"5", "tab", "["}},
		"both-wrong": {three(), 80, 24, append(slices.Clone(comparing), "F", "F", "F")},
		"eval":       {three(), 80, 24, append(slices.Clone(comparing), "F", "F", "F", "F", "F", "F")},
		"other-data": {listed(learnt("a", "x", 50, 2, 0), learnt("b", "y", 60, 3, 0)), 80, 24,
			[]string{"5", "space", "j", "="}},
		"empty":   {noExperiments(), 80, 24, []string{"5"}},
		"reading": {full(3), 80, 24, []string{"5"}},
		"error":   {brokenExperiments(), 80, 24, []string{"5"}},
		"hostile": {hostileExperiments(), 120, 30, []string{"5", "space", "j", "space"}},
		"history": {unread(), 80, 24, []string{"5", "tab"}},
		"no-pair": {three(), 80, 24, []string{"5", "="}},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, c.snap, plainLook, c.width, c.height)
			sc.press(c.keys...)
			golden.RequireEqual(t, sc.plain())
		})
	}
}

func TestASCIIExperiments(t *testing.T) {
	for name, keys := range map[string][]string{"plots": {"5", "space", "j", "space"}, "compare": comparing} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, three(), theme.NoColor().Styles(theme.ASCII()), 200, 50)
			sc.press(keys...)
			out := sc.plain()
			for _, r := range out {
				if r > 0x7e {
					t.Fatalf("%q is on a screen that must be ASCII", r)
				}
			}
			golden.RequireEqual(t, out)
		})
	}
}

func TestExperimentsAtEverySize(t *testing.T) {
	t.Parallel()
	for _, snap := range []*snapshot{three(), hostileExperiments(), noExperiments(), brokenExperiments(),
		full(3)} {
		sc := newScreen(t, snap, theme.New(true, false), 80, 24)
		for _, keys := range [][]string{{"5"}, {"tab"}, {"]"}, {"tab", "space", "j", "space", "="}, {"F"},
			{"f"}} {
			sc.press(keys...)
			for w := 40; w <= 220; w += 12 {
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

func (s *screen) lastHeard(prefix string) string {
	heard := s.store.heard()
	for i := len(heard) - 1; i >= 0; i-- {
		if strings.HasPrefix(heard[i], prefix) {
			return heard[i]
		}
	}
	return ""
}

func TestExperimentsAreAskedFor(t *testing.T) {
	sc := newScreen(t, three(), plainLook, 80, 24)
	for _, step := range []struct{ keys, want string }{
		{"5", "experiments [ace-experiment/night-3]"}, {"j", "experiments [ace-experiment/tuned]"},
		{"space", ""}, {"j", ""}, {"space", "experiments [ace-experiment/tuned ace-experiment/plain]"},
		{"u", "experiments [ace-experiment/plain]"},
	} {
		sc.press(step.keys)
		if got := sc.lastHeard("experiments"); step.want != "" && got != step.want {
			t.Errorf("after %s the store heard %q, want %q", step.keys, got, step.want)
		}
	}
	if got := sc.lastHeard("look experiments"); got != "look experiments true" {
		t.Errorf("the store heard %q", got)
	}
	sc.press("1")
	if got := sc.lastHeard("look experiments"); got != "look experiments false" {
		t.Errorf("the store heard %q", got)
	}
}

func TestMarkedExperimentRunsAreCompared(t *testing.T) {
	snap := three()
	for _, e := range snap.Experiments.Rows {
		snap.Runs.Rows = append(snap.Runs.Rows, runs.Run{WorkflowID: e.WorkflowID, RunID: "r",
			Type: ace.ExperimentWorkflow, Start: e.Start, Close: e.Start.Add(time.Hour), Status: ace.Completed})
	}
	sc := newScreen(t, snap, plainLook, 120, 40)
	sc.press("1", "G", "space", "k", "space", "=")
	sc.has("Compare")
	if got := sc.lastHeard("experiments"); strings.Count(got, "ace-experiment/") != 2 {
		t.Errorf("the store heard %q", got)
	}
}

func TestFlippedTaskOpensItsRun(t *testing.T) {
	sc := newScreen(t, three(), plainLook, 200, 50)
	sc.press(comparing...)
	heard := sc.lastHeard("experiments")
	if heard != "experiments [ace-experiment/plain ace-experiment/tuned]" {
		t.Fatalf("the store heard %q", heard)
	}
	sc.press("enter")
	a := sc.lastHeard("select")
	sc.press("5", "=", "O")
	b := sc.lastHeard("select")
	if !strings.HasPrefix(a, "select ace/plain-e1-") || b != strings.Replace(a, "plain", "tuned", 1) {
		t.Errorf("the store heard %q and %q", a, b)
	}
}

// The cursors of the comparison and of the list stay on their rows when more is read.
func TestExperimentsGrow(t *testing.T) {
	snap := three()
	sc := newScreen(t, snap, plainLook, 80, 24)
	sc.press("5", "j")
	sc.show(listed(append([]*experiments.Series{learnt("new", "finance", 3, 1, 0)},
		snap.Experiments.Series...)...))
	sc.has("▸   tuned")
	sc.press("s", "s", "s", "s")
	sc.has("▸   tuned")
	sc.press("/", "p", "l", "enter")
	sc.has("▸   plain")
	sc.lacks("night-3")
}

// An experiment that has only tasks says so, also while its numbers are not known.
func TestExperimentWithoutWorkflow(t *testing.T) {
	s := learnt("theirs", "d", 40, 3, 0)
	s.RunID, s.Note = "", "no experiment workflow, only the tasks"
	snap := listed(s)
	snap.Experiments.Rows[0].Progress, snap.Experiments.Rows[0].Note = nil, s.Note
	sc := newScreen(t, snap, plainLook, 120, 30)
	sc.press("5")
	sc.has("theirs")
	sc.has("no experiment workflow, only the tasks")
}

func TestExperimentsAreKept(t *testing.T) {
	shared := func() *experimentsview.Experiments {
		st := newStore(nil)
		return experimentsview.New(console.New(console.Options{Controls: st}, nil), st.experiments())
	}
	x := shared()
	x.Metric, x.Window, x.ByTime = 2, 1, true
	x.Marks, x.Cursor = []string{"x", "y"}, "z"
	a := experimentsview.NewList(x)
	a.Order, a.Filter = 3, "f"
	b := experimentsview.NewList(shared())
	b.Restore(a.Keep())
	if fmt.Sprint(a.Keep()) != fmt.Sprint(b.Keep()) {
		t.Errorf("kept %v, restored %v", a.Keep(), b.Keep())
	}
	b.Restore(map[string]string{"order": "99", "metric": "-7", "window": "x"})
	if b.Order != 3 || b.Metric != 2 || b.Window != 1 || b.Marks != nil {
		t.Errorf("restored %v", b.Keep())
	}
}
