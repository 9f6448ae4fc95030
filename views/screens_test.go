package views

import (
	"fmt"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
)

func TestScreens(t *testing.T) {
	sizes := [][2]int{{80, 24}, {200, 50}}
	looks := map[string]theme.Styles{"dark": theme.New(true, false), "nocolor": theme.New(true, true)}
	for name, snap := range map[string]func() *snapshot{
		"full": func() *snapshot { return full(60) },
	} {
		for _, size := range sizes {
			for look, styles := range looks {
				t.Run(fmt.Sprintf("%s-%dx%d-%s", name, size[0], size[1], look), func(t *testing.T) {
					golden.RequireEqual(t, newScreen(t, snap(), styles, size[0], size[1]).drawn())
				})
			}
		}
	}
}

// The other goldens have no color, so that a reviewer can read them.
func TestPlainScreens(t *testing.T) {
	plain := theme.New(true, true)
	for name, c := range map[string]struct {
		snap          *snapshot
		width, height int
		keys          []string
	}{
		"detail":        {full(60), 80, 24, []string{"tab"}},
		"detail-end":    {full(60), 80, 24, []string{"tab", "G"}},
		"detail-log":    {full(60), 80, 24, []string{"tab", "m", "g"}},
		"detail-wide":   {full(60), 200, 50, []string{"tab", "G"}},
		"light-wide":    {full(60), 120, 30, nil},
		"nothing":       {nil, 80, 24, nil},
		"starting":      {starting(), 80, 24, nil},
		"lost":          {lost(full(60)), 80, 24, nil},
		"lost-at-first": {lost(&snapshot{}), 80, 24, nil},
		"empty":         {ready(), 80, 24, nil},
		"no-match":      {noMatch(), 80, 24, nil},
		"query-error":   {queryError(), 80, 24, nil},
		"help":          {full(60), 80, 24, []string{"?"}},
		"help-wide":     {full(60), 200, 50, []string{"tab", "?"}},
		"help-small":    {full(60), 40, 12, []string{"?", "j", "j"}},
		"prompt":        {full(60), 80, 24, append([]string{"/", "ctrl+u"}, letters("wrong exp=a")...)},
		"confirm":       {full(60), 80, 24, []string{"x"}},
		"paused":        {paused(full(60)), 80, 24, nil},
		"tiny":          {full(60), 30, 8, nil},
		"narrow":        {full(60), 40, 12, nil},
		"hostile":       {hostile(), 80, 24, nil},
		"hostile-run":   {hostile(), 80, 24, []string{"tab"}},
		"foreign":       {foreign(), 80, 24, []string{"tab"}},
		"experiment":    {experiment(), 80, 30, []string{"tab"}},
		"unhealthy":     {unhealthy(), 80, 24, nil},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, c.snap, plain, c.width, c.height)
			sc.press(c.keys...)
			if name == "tiny" {
				golden.RequireEqual(t, sc.model.View().Content)
				return
			}
			golden.RequireEqual(t, sc.plain())
		})
	}
}

func TestASCIIScreen(t *testing.T) {
	sc := newScreen(t, full(60), theme.NoColor().Styles(theme.ASCII()), 120, 30)
	out := sc.plain()
	for _, r := range out {
		if r > 0x7e {
			t.Errorf("%q is on a screen that must be ASCII", r)
		}
	}
	golden.RequireEqual(t, out)
}

// Every size must be drawn exactly; drawn checks it.
func TestEverySize(t *testing.T) {
	t.Parallel()
	plain := theme.New(true, false)
	for _, snap := range []*snapshot{full(60), hostile(), starting(), lost(full(3)), queryError(),
		experiment(), foreign()} {
		sc := newScreen(t, snap, plain, 80, 24)
		for _, keys := range [][]string{nil, {"enter"}, {"m"}, {"?"}, {"esc"}, {"x"}, {"esc", "/"}} {
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

func letters(s string) []string {
	var out []string
	for _, r := range s {
		out = append(out, string(r))
	}
	return out
}

func starting() *snapshot {
	return &snapshot{At: noon, Connection: cluster.Connection{State: cluster.ConnStarting, Mode: "embedded",
		Namespace: "ace-dev", Since: noon}, Runs: runs.RunList{ErrAt: -1}}
}

func lost(s *snapshot) *snapshot {
	s.Connection = cluster.Connection{State: cluster.ConnLost, Mode: "remote", Namespace: "ace-dev",
		Since: noon.Add(-4 * time.Second),
		Err:   "dial tcp 127.0.0.1:7233: connect: connection refused"}
	return s
}

func noMatch() *snapshot {
	s := ready()
	s.Runs.Query = `ExitStatus="wrong"`
	return s
}

func queryError() *snapshot {
	s := full(60)
	s.Runs.Query, s.Runs.ErrAt, s.Runs.Err = `ExperimentId="finance-7" AN ExitStatus="wrong"`, 25,
		`syntax error near "AN"`
	return s
}

func paused(s *snapshot) *snapshot {
	s.Runs.Paused = true
	return s
}

func unhealthy() *snapshot {
	s := full(60)
	s.Health = []cluster.Health{{Name: "server", State: cluster.OK},
		{Name: "worker", State: cluster.Error, Text: "no poller on task queue ace"}}
	return s
}

// hostile has runs whose text is wide, right-to-left, or attacks the terminal.
func hostile() *snapshot {
	names := []string{"財務-自己資本利益率の計算問題", "📈📉 chart 👩‍👧 family", "שלום-עולם-0182", "a\x1b[2J\x1b]0;owned\x07b",
		"user\u202egnp.exe",
		"two\nlines\tand a tab", "\u200bzero\u200bwidth\ufeff", "e\u0301\u0301\u0301 combining",
		"bad \xff utf-8", ""}
	s := ready(many(len(names))...)
	for i, n := range names {
		s.Runs.Rows[i].TaskID, s.Runs.Rows[i].WorkflowID = n, "ace/"+n
		s.Runs.Rows[i].Model, s.Runs.Rows[i].Experiment = n, n
	}
	d := detailOf(s.Runs.Rows[0])
	d.Log, d.LogDropped = nil, 0
	for i, n := range names {
		d.Log = append(d.Log, runs.LogLine{Event: int64(i), At: noon, Kind: "skill", Text: n})
	}
	d.Skills.Skills[0].Name = names[3]
	d.Input.Prompt = names[0] + "\n" + names[5] + "\x1b[31m" + names[2]
	d.Pending[0].LastError = names[3]
	s.Detail = d
	return s
}

func foreign() *snapshot {
	s := ready(runs.Run{WorkflowID: "order-17", RunID: "r1", Type: "OrderWorkflow", Status: ace.Running,
		Start: noon.Add(-90 * time.Second)})
	s.Detail = &histories.Detail{WorkflowID: "order-17", RunID: "r1", Type: "OrderWorkflow",
		Start: noon.Add(-90 * time.Second), From: runs.FromHistory,
		TaskState: histories.TaskState{Missing: []string{ace.QuerySkills, ace.QueryDelta},
			Phase: ace.PhaseAnswer{Phase: "packing", Status: ace.Running}}, Events: 9}
	return s
}

func experiment() *snapshot {
	r := runs.Run{WorkflowID: "ace-experiment/finance-7", RunID: "r1", Type: ace.ExperimentWorkflow,
		Experiment: "finance-7", Status: ace.Running, Start: noon.Add(-95 * time.Second)}
	s := ready(r)
	s.Detail = &histories.Detail{WorkflowID: r.WorkflowID, RunID: r.RunID, Type: r.Type, Start: r.Start,
		From: runs.FromQuery, Events: 310,
		TaskState: histories.TaskState{Phase: ace.PhaseAnswer{Status: ace.Running}},
		Experiment: &ace.ExperimentProgress{ExperimentID: "finance-7", TotalEpochs: 2, TotalTasks: 500,
			Stage: ace.StageLearning, Epoch: 2, Bullets: 48, Before: "6fe1c0ffee00112233",
			After:    "a41bc0ffee00112233",
			Accepted: 52, Rejected: 9, Status: ace.Running,
			Usage: ace.Usage{InputTokens: 120_400, OutputTokens: 20_100},
			Epochs: []ace.EpochResult{{Epoch: 1, Tasks: 500, Correct: 305, Wrong: 190, Failed: 5,
				Accuracy: 0.61}, {Epoch: 2, Tasks: 119, Correct: 88, Wrong: 31, Accuracy: 0.739, Bucket: 20,
				Curve: []ace.CurvePoint{{Tasks: 20, Correct: 11}, {Tasks: 20, Correct: 13},
					{Tasks: 20, Correct: 14}, {Tasks: 20, Correct: 16}, {Tasks: 20, Correct: 17},
					{Tasks: 19, Correct: 17}}}},
			Eval: []ace.EvalResult{{Epoch: 0, Tasks: 300, Correct: 60, Accuracy: 0.2},
				{Epoch: 1, Tasks: 300, Correct: 195, Accuracy: 0.65}}}}
	return s
}
