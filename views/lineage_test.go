package views

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/lineage"
	"acescope/sources/runs"
	"acescope/theme"
	runsview "acescope/views/runs"
)

// family returns a run with forks, a fork of a fork, and a fork whose original no longer exists.
func family() *histories.LineageTree {
	yes, no := true, false
	run := func(id string, at int, exit ace.Status, f *ace.Forked) runs.Run {
		r := runs.Run{WorkflowID: "ace/" + id, RunID: "run-" + id, TaskID: id, Type: ace.TaskWorkflow,
			Status: exit, Model: "builtin", Fork: f,
			Start: noon.Add(time.Duration(at-60) * time.Second)}
		if exit != ace.Running {
			r.Close = r.Start.Add(3 * time.Second)
			r.Summary = &ace.Summary{Usage: ace.Usage{InputTokens: 1000, OutputTokens: 204,
				CostUSD: 0.0123 * float64(at+1)}}
		}
		return r
	}
	from := func(id string, event int64, phase ace.Phase, changed ...string) *ace.Forked {
		f := &ace.Forked{WorkflowID: "ace/" + id, RunID: "run-" + id, Event: event, Phase: phase,
			Changed: map[string]ace.ForkChange{}}
		for i := 0; i < len(changed); i += 3 {
			f.Changed[changed[i]] = ace.ForkChange{From: changed[i+1], To: changed[i+2]}
		}
		return f
	}
	wrong := func(r runs.Run) runs.Run {
		r.Verdict = ace.Wrong
		return r
	}
	out := func(answer string, correct *bool) *histories.Outcome {
		return &histories.Outcome{Answer: answer, Correct: correct}
	}
	hash := strings.Repeat("6fe1c0ffee00", 6)[:64]
	nodes := []histories.LineageNode{
		{Run: wrong(run("q-00006", 0, ace.Completed, nil)), Original: -1, Outcome: out("17.2", &no)},
		{Run: run("q-00006~f1", 1, ace.Completed, from("q-00006", 14, ace.PhaseReflector, "model", "small",
			"large")), Depth: 1, Outcome: out("0.172", &yes), Effect: histories.EffectBetter},
		{Run: run("q-00006~f3", 3, ace.Failed, from("q-00006~f1", 7, ace.PhaseSkills, "playbook_hash", hash,
			"", "label", "0.172", "17 %")), Depth: 2, More: []bool{false, true}, Last: true, Original: 1,
			Effect: histories.EffectWorse},
		{Run: run("q-00006~f2", 2, ace.Running, from("q-00006", 1, ace.PhaseGenerator, "prompt",
			"Compute it.", "Compute the return on equity, step by step,\nand round only at the end.")),
			Depth: 1, Last: true},
		{Run: wrong(run("q-00006~f4", 4, ace.Completed, from("q-00006", 26, ace.PhasePersist))),
			Outcome: out("\x1b[31mred\u202e 財務", &no), Original: -1},
	}
	nodes[4].Run.Fork.RunID = "run-gone"
	for i, n := range []int{0, 1, 3, 2, 4} {
		nodes[i].Number = n
		if nodes[i].More == nil && nodes[i].Depth == 1 {
			nodes[i].More = []bool{false}
		}
	}
	return &histories.LineageTree{Root: "ace/q-00006", Nodes: nodes, Updated: noon}
}

func withFamily() *snapshot {
	s := full(6)
	s.Lineage = family()
	return s
}

func TestLineageScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			name := fmt.Sprintf("%dx%d-%s", size[0], size[1], look)
			t.Run("tree-"+name, func(t *testing.T) {
				sc := newScreen(t, withFamily(), styles, size[0], size[1])
				sc.press("T", "j", "j")
				golden.RequireEqual(t, sc.drawn())
			})
			t.Run("run-"+name, func(t *testing.T) {
				sc := newScreen(t, withFamily(), styles, size[0], size[1])
				sc.press("2")
				golden.RequireEqual(t, sc.drawn())
			})
		}
	}
	alone, failed := withFamily(), withFamily()
	alone.Lineage = &histories.LineageTree{Root: "ace/q-00006", Nodes: family().Nodes[:1], Updated: noon}
	broken := *family()
	broken.Err = "the server is away"
	failed.Lineage = &broken
	none := withFamily()
	none.Lineage = &histories.LineageTree{Root: "ace/q-00006"}
	for name, snap := range map[string]*snapshot{"alone": alone, "failed": failed, "none": none,
		"reading": full(6), "empty": ready()} {
		t.Run(name, func(t *testing.T) {
			sc := newScreen(t, snap, theme.New(true, true), 80, 24)
			sc.press("T")
			golden.RequireEqual(t, sc.plain())
		})
	}
}

func TestLineageKeys(t *testing.T) {
	sc := newScreen(t, withFamily(), plainLook, 120, 40)
	sc.press("T")
	selected := func(want string) {
		t.Helper()
		if got := sc.last("select "); got != want {
			t.Errorf("selected %q, want %q", got, want)
		}
	}
	sc.press("j")
	selected("ace/q-00006~f1 run-q-00006~f1")
	sc.press("=")
	if got := sc.told(3); !strings.Contains(got, "diff ace/q-00006 ace/q-00006~f1 false") {
		t.Errorf("d sent %s", got)
	}
	sc.press("esc", "j", "(")
	selected("ace/q-00006~f1 run-q-00006~f1")
	sc.press("e")
	selected("ace/q-00006~f3 run-q-00006~f3")
	sc.press("G")
	sc.has("run-gone, no longer listed")
	sc.press("=")
	if got := sc.told(3); !strings.Contains(got, "diff ace/q-00006 ace/q-00006~f4 false") {
		t.Errorf("d on a fork without original sent %s", got)
	}
	sc.press("esc", "g", "=")
	sc.has("was not forked")
	sc.press("(")
	sc.has("this run is not a fork")
	sc.press("j", "space", "space")
	sc.has("2 marked")
	sc.press("=")
	if got := sc.told(3); !strings.Contains(got, "diff ace/q-00006~f1 ace/q-00006~f3 false") {
		t.Errorf("d on two marks sent %s", got)
	}
	sc.press("esc", "u", "g", "j")
	sc.typed("f")
	sc.has("Fork q-00006~f1")
	sc.press("esc", "enter")
	sc.has("ace/q-00006~f1")
	sc.press(":")
	sc.press(append(letters("lineage"), "enter")...)
	sc.has("Lineage of q-00006")
}

// The run screen opens a fork of its lineage and compares it with its original.
func TestLineageOnTheRunScreen(t *testing.T) {
	sc := newScreen(t, withFamily(), plainLook, 120, 40)
	sc.press("2")
	on(t, sc, "lineage", 3)
	sc.press("=")
	if !contained(sc.store.heard(), "diff ace/q-00006~f1 ace/q-00006~f3 false") {
		t.Errorf("d sent %s", sc.told(5))
	}
	sc.press("esc")
	on(t, sc, "lineage", 1)
	if what, id := outlineOf(t, sc).Copy(); what != "workflow id" || id != "ace/q-00006~f1" {
		t.Errorf("copies %s %s", what, id)
	}
	sc.press("enter")
	if got := sc.last("select "); got != "ace/q-00006~f1 run-q-00006~f1" {
		t.Errorf("enter selects %q", got)
	}
	sc.press("backspace")
	if got := sc.last("select "); got != "ace/q-00006 run-q-00006" {
		t.Errorf("backspace selects %q", got)
	}
}

// The lineage section shows at most 12 runs, those around this run.
func TestManyForks(t *testing.T) {
	s := withFamily()
	tree := *s.Lineage
	for i := range 500 {
		n := tree.Nodes[1]
		n.Run.RunID, n.Number = fmt.Sprint("run-", i), i+5
		tree.Nodes = append(tree.Nodes, n)
	}
	tree.Nodes[300].Run.RunID = s.Detail.RunID
	tree.Nodes[0].Run.RunID = "run-0-other"
	s.Lineage = &tree
	sc := newScreen(t, s, plainLook, 120, 40)
	sc.press("2")
	sc.has("504 forks (12 of 505 runs here)")
	sc.has("◆q-00006~f1")
}

func TestLineageEverySize(t *testing.T) {
	t.Parallel()
	deep := *family()
	for i := range 30 {
		n := deep.Nodes[2]
		n.Depth, n.Number, n.Run.RunID = i+3, i+5, fmt.Sprint("run-", i)
		n.More = make([]bool, n.Depth)
		deep.Nodes = append(deep.Nodes, n)
	}
	snap := withFamily()
	snap.Lineage = &deep
	sc := newScreen(t, snap, theme.New(true, false), 80, 24)
	for _, keys := range [][]string{{"T"}, {"tab"}, {"tab", "G"}, {"2"}} {
		sc.press(keys...)
		for w := 40; w <= 220; w += 9 {
			for _, h := range []int{10, 11, 17, 24, 50} {
				sc.resize(w, h)
				sc.drawn()
			}
		}
	}
}

func TestLineageASCII(t *testing.T) {
	snap := withFamily()
	snap.Lineage.Nodes[4].Outcome.Answer = "red"
	sc := newScreen(t, snap, theme.NoColor().Styles(theme.ASCII()), 120, 40)
	sc.press("T")
	for range 5 {
		for _, r := range sc.plain() {
			if r > 0x7e {
				t.Fatalf("%q is on a screen that must be ASCII:\n%s", r, sc.plain())
			}
		}
		sc.press("j")
	}
	sc.has("`- q-00006~f2")
}

// The command prints the same tree.
func TestLineageRows(t *testing.T) {
	var out strings.Builder
	tree := family()
	for i := range tree.Nodes {
		fmt.Fprintf(&out, "%q\n", lineage.RowOf(&tree.Nodes[i]))
	}
	golden.RequireEqual(t, out.String())
}

// The list of runs marks forks before their names.
func TestForksInTheList(t *testing.T) {
	s := full(6)
	s.Runs.Rows[1].Fork = &ace.Forked{WorkflowID: "ace/q-1", Event: 14, Phase: ace.PhaseSkills,
		Changed: map[string]ace.ForkChange{"model": {From: "a", To: "b"}}}
	sc := newScreen(t, s, plainLook, 80, 24)
	sc.has("↳ q-00005")
	column, ok := runsview.Plain("forked")
	if cell := column.Cell(s.Runs.Rows[1], noon); !ok || cell != "q-1 at 14, model: a → b" {
		t.Errorf("%q %v", cell, ok)
	}
}
