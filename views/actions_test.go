package views

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/runs"
	"acescope/sources/scoreboard"
	"acescope/theme"
	"acescope/tui"
	"acescope/views/console"
)

// run runs a command and those that follow from it.
func (s *screen) run(cmd tea.Cmd) {
	s.t.Helper()
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			s.run(c)
		}
	default:
		_, next := s.model.Update(msg)
		s.run(next)
	}
}

// told returns the last n calls of the store.
func (s *screen) told(n int) string {
	all := slices.DeleteFunc(s.store.heard(), func(t string) bool { return t == "refresh" })
	return strings.Join(all[max(0, len(all)-n):], "; ")
}

func forkedRun() *snapshot {
	s := full(6)
	r := s.Runs.Rows[0]
	s.Detail.Phase.Steps[0].Reused = true
	s.Detail.Lineage.Fork = &ace.Forked{WorkflowID: "ace/q-1", RunID: "run-q-1", Event: 14,
		Phase: ace.PhaseSkills,
		Changed: map[string]ace.ForkChange{"model": {From: "small", To: "large"},
			"label": {From: "", To: "\x1b[31mred"}}}
	s.Detail.WorkflowID, s.Detail.RunID = r.WorkflowID, r.RunID
	return s
}

// The form for a fork, and the question of a command.
func TestForkScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false),
			"nocolor": theme.New(true, true)} {
			name := fmt.Sprintf("%dx%d-%s", size[0], size[1], look)
			t.Run("line-"+name, func(t *testing.T) {
				sc := newScreen(t, full(6), styles, size[0], size[1])
				sc.run(sc.press("f"))
				sc.typed("tab", "tab", "tab", "tab", "x")
				golden.RequireEqual(t, sc.drawn())
			})
			t.Run("question-"+name, func(t *testing.T) {
				sc := newScreen(t, full(6), styles, size[0], size[1])
				sc.run(sc.press(append([]string{":"}, append(letters("fork at=9 model=other"),
					"enter")...)...))
				golden.RequireEqual(t, sc.drawn())
			})
			t.Run("forked-"+name, func(t *testing.T) {
				sc := newScreen(t, forkedRun(), styles, size[0], size[1])
				sc.press("2", "G")
				golden.RequireEqual(t, sc.drawn())
			})
		}
	}
}

// typed presses keys one after the other, and runs the commands of each.
func (s *screen) typed(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		s.run(s.press(k))
	}
}

// The form has the input of the run. Only changed fields are changes, and the fork is started once.
func TestForkForm(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 100, 30)
	sc.typed("f")
	sc.has("Fork q-00006")
	sc.has("What is 3 + 4?")
	sc.has("plan {0 generator} []")
	sc.has("$ acescope fork q-00006 --phase generator")
	sc.lacks("…")
	sc.typed("tab", "!", "tab", "tab", "tab", "end", "x")
	sc.has(`plan {0 generator} [{"prompt" "What is 3 + 4?!"} {"model" "smallx"}]`)
	sc.has("$ acescope fork q-00006 --phase generator --prompt 'What is 3 + 4?!' --model smallx")
	sc.typed("ctrl+y")
	sc.has("copied command")
	sc.typed("esc")
	sc.lacks("What is 3")
	sc.typed("f", "enter") // the text is kept
	sc.has("fork done")
	want := `fork {ace/q-00006 run-q-00006} {0 generator} [{"prompt" "What is 3 + 4?!"} {"model" "smallx"}]`
	if got := sc.told(3); got != want+"; do fork; select ace/q-7~f1 r9" {
		t.Errorf("told %s", got)
	}
	sc.typed("f")
	sc.lacks("4?!")
}

// An invalid point is shown at its field, and keeps the form open.
func TestForkFormProblem(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.typed("f", "ctrl+u", "x", "enter")
	sc.has("‼ use one of generator, skills, reflector, curator,")
	sc.typed("ctrl+u", "1", "2", "enter")
	if !contained(sc.store.heard(), "fork {ace/q-00006 run-q-00006} {12 } []") {
		t.Errorf("told %s", sc.told(4))
	}
}

// Screens that know an event or a phase propose it.
func TestForkPoint(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.press("2")
	var begun []string
	for range 12 {
		sc.typed("j", "f")
		for _, line := range splitLines(sc.plain()) {
			if _, at, ok := strings.Cut(line, "▸ From"); ok {
				begun = append(begun, strings.Fields(at)[0])
			}
		}
		sc.typed("esc")
	}
	for _, want := range []string{"skills", "reflector"} {
		if !slices.Contains(begun, want) {
			t.Errorf("the forms begin with %s; none with %s", begun, want)
		}
	}
}

// All runs of the filter, also those that are not loaded, are marked with one key and forked with one form;
// the scoreboard follows.
func TestForkMarked(t *testing.T) {
	snap := full(30)
	snap.Scoreboard = scores()
	sc := newScreen(t, snap, plainLook, 100, 30)
	sc.typed("ctrl+a")
	sc.has("300 marked runs")
	sc.typed("7", "f") // triage forks the marked runs too
	sc.has("Fork 300 marked runs")
	sc.typed("esc", "1", "f")
	sc.has("Fork 300 marked runs")
	sc.lacks("Prompt")
	sc.typed(append([]string{"tab", "tab"}, letters("claude-1")...)...)
	sc.typed("enter")
	sc.has("Fork 300 runs?")
	sc.has("costs       about $0.12")
	if got := sc.told(1); got != `plan 300 forks {0 generator} [{"model" "claude-1"}]` {
		t.Errorf("told %s", got)
	}
	sc.typed("y")
	sc.has("Scoreboard forks-1")
	sc.has("1 fixed, 1 broken, 1 unchanged, 1 running; cost $0.03")
	if got := sc.told(4); got != "start forks; look counts false; look scoreboard true; scoreboard forks-1" {
		t.Errorf("told %s", got)
	}
	sc.typed("enter")
	if got := sc.told(3); !strings.HasPrefix(got, "diff ace/q-1 ace/q-1~f1 false; ") {
		t.Errorf("enter told %s", got)
	}
	sc.typed("1")
	sc.lacks("marked")
}

// An empty console opens the forms for a new experiment and for a history file.
func TestEmptyConsole(t *testing.T) {
	st := newStore(withoutRuns(0))
	viewer := func(path string) *exec.Cmd { return exec.Command("acescope", "open", path) }
	sc := firstScreen(t, st, console.Options{Controls: st, Actions: st.actions(), Location: time.UTC,
		Viewer: viewer}, plainLook)
	sc.resize(80, 24)
	sc.plain()
	sc.typed("o", "enter")
	sc.has("‼ name a file or a directory")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bug-report.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sc.typed(append(letters(dir+"/bug"), "tab")...)
	cmd := sc.press("enter")
	sc.lacks("‼")
	for range 3 { // check, submit, then the program
		if cmd == nil {
			break
		}
		msg := cmd()
		if strings.Contains(fmt.Sprintf("%T", msg), "exec") {
			return
		}
		_, cmd = sc.model.Update(msg)
	}
	t.Error("no program was started")
}

// scores returns a scoreboard with one fork of each kind.
func scores() *scoreboard.Scoreboard {
	var rows []scoreboard.Row
	for i, verdicts := range [][2]ace.Verdict{{ace.Wrong, ace.Correct}, {ace.Correct, ace.Wrong},
		{ace.Wrong, ace.Wrong},
		{ace.Wrong, ""}} {
		name := fmt.Sprintf("q-%d", i+1)
		original := runs.Run{WorkflowID: "ace/" + name, RunID: "r", TaskID: name, Verdict: verdicts[0],
			Status: ace.Completed,
			Close:  noon}
		fork := original
		fork.WorkflowID, fork.TaskID, fork.Verdict = original.WorkflowID+"~f1", name+"~f1", verdicts[1]
		if fork.Verdict == "" {
			fork.Close, fork.Status = time.Time{}, ace.Running
		} else {
			fork.Summary = &ace.Summary{Usage: ace.Usage{CostUSD: 0.01}}
		}
		rows = append(rows, scoreboard.Row{Original: original, Fork: fork,
			Outcome: scoreboard.OutcomeOf(original, fork)})
	}
	return scoreboard.Of("forks-1", rows)
}

func TestScoreboardScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			snap := full(6)
			snap.Scoreboard = scores()
			sc := newScreen(t, snap, theme.New(true, false), size[0], size[1])
			sc.typed(append([]string{":"}, append(letters("scoreboard forks-1"), "enter")...)...)
			sc.show(snap)
			golden.RequireEqual(t, sc.drawn())
		})
	}
}

// The remark that no original was correct is complete on a small screen.
func TestScoreboardCaution(t *testing.T) {
	snap := full(6)
	snap.Scoreboard = scoreboard.Of("forks-1", scores().Rows[:1])
	sc := newScreen(t, snap, plainLook, 80, 24)
	sc.command("scoreboard forks-1")
	sc.show(snap)
	sc.has("no original was correct")
	sc.has("alone fix some")
}

// A new experiment is described in a form that shows the command line and what is wrong with it.
func TestLaunchForm(t *testing.T) {
	for _, view := range []string{"1", "5", "H"} {
		sc := newScreen(t, full(6), plainLook, 80, 24)
		sc.typed(view, "n", "enter")
		sc.has("‼ name a file of JSON lines, or problems:60")
		sc.typed(append(letters("prob"), "tab", "6", "0", "tab")...)
		sc.has("problems:60")
		sc.typed(append(repeated("tab", 4), "backspace", "0")...)
		sc.has("‼ must be from 1 to 1000")
		sc.has("$ acescope run --dataset problems:60 --epochs 0")
		sc.typed("enter")
		sc.has("▸ Epochs")
		sc.typed("backspace", "x", "2", "enter")
		if got := sc.told(20); !strings.Contains(got, `launch ["--dataset" "problems:60" "--epochs" "2"]`) {
			t.Errorf("from screen %s told %s", view, got)
		}
		sc.has("started experiment new")
		sc.has("▸5 experiments")
	}
}

// The command line of a form takes several lines on a small screen.
func TestFormCommandWraps(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.typed("n", "enter")
	sc.typed(append(letters(strings.Repeat("long-", 14)+"name"), "tab", "end")...)
	sc.typed(append(letters("evaluated"), "tab")...)
	sc.has("--eval evaluated")
}

// A single task has fields of its own. A choice hides those that do not apply.
func TestLaunchTask(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.typed("n", "right", "tab")
	sc.lacks("Data set")
	sc.typed(append(letters("What is 2 + 2?"), "tab", "4", "enter")...)
	if got := sc.told(20); !strings.Contains(got, `launch ["--expected" "4" "--" "What is 2 + 2?"]`) {
		t.Errorf("told %s", got)
	}
	sc.has("started adhoc-1")
}

// A field lists known values; ctrl+n and ctrl+p choose from them.
func TestFormCompletion(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.typed("n", "tab", "tab", "tab", "ctrl+u")
	sc.has("  anthropic")
	sc.typed("ctrl+n", "ctrl+n")
	sc.has("▸ anthropic")
	sc.has("--provider anthropic")
	sc.typed("ctrl+p")
	sc.lacks("--provider")
	sc.typed("ctrl+u", "a", "n", "tab") // one value continues it
	sc.has("--provider anthropic")
}

// A click focuses a field of a form; the keys of the screen behind do not work.
func TestFormMouse(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.typed("n")
	for y, line := range splitLines(sc.plain()) {
		if strings.Contains(line, "Model") {
			_, cmd := sc.model.Update(tea.MouseClickMsg{X: 30, Y: y, Button: tea.MouseLeft})
			sc.run(cmd)
		}
	}
	sc.typed("q", "?")
	sc.has("--model q\\?")
}

func TestMutationCommands(t *testing.T) {
	for line, want := range map[string]string{
		`terminate it hangs`:                  `terminate {ace/q-00006 run-q-00006} "it hangs"`,
		`reset phase=curator it was mended`:   `reset {ace/q-00006 run-q-00006} {0 curator} "it was mended"`,
		`reset at=9 x`:                        `reset {ace/q-00006 run-q-00006} {9 } "x"`,
		`signal record_tool_event [{"a": 1}]`: `signal {ace/q-00006 run-q-00006} record_tool_event [{"a": 1}]`,
		`fork at=7 label=3`:                   `fork {ace/q-00006 run-q-00006} {7 } [{"label" "3"}]`,
	} {
		sc := newScreen(t, full(6), plainLook, 80, 24)
		sc.press(":")
		sc.run(sc.press(append(letters(line), "enter")...))
		if got := sc.told(1); got != want {
			t.Errorf(":%s told %s", line, got)
		}
		name, _, _ := strings.Cut(line, " ")
		sc.run(sc.press("y"))
		if !strings.Contains(sc.told(3), "do "+name) {
			t.Errorf(":%s and y did %s", line, sc.told(3))
		}
	}
	for line, want := range map[string]string{
		`terminate`:               "missing reason",
		`reset phase=curator`:     "missing reason",
		`reset x=1 why`:           "at=EVENT or phase=PHASE) first",
		`signal `:                 "missing signal name",
		`fork model=x`:            "missing point",
		`fork at=0`:               "number of an event",
		`fork phase=x`:            "unknown phase",
		`fork phase=skills at=4`:  "not both",
		`fork phase=skills rest`:  "name=value",
		`fork phase=skills p="is`: "missing closing quote",
	} {
		sc := newScreen(t, full(6), plainLook, 120, 24)
		sc.press(":")
		sc.run(sc.press(append(letters(line), "enter")...))
		sc.has(want)
	}
}

// A read-only console has no keys and commands that change runs.
func TestReadOnlyHasNoMutations(t *testing.T) {
	st := newStore(full(6))
	screens, global := Screens(console.Options{Controls: st, Actions: st.actions()}, st.feeds())
	m, err := tui.New(tui.Options{Source: st, Screens: screens, Global: global, Styles: plainLook,
		ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	sc := &screen{t: t, store: st, model: m, screens: screens}
	sc.resize(80, 24)
	for _, keys := range [][]string{{"f"}, append(append([]string{":"}, letters("terminate x")...), "enter",
		"esc"),
		append(append([]string{":"}, letters("fork phase=skills")...), "enter", "esc"), {"2", "f"},
		{"3", "f"}, {"n"}} {
		before := len(st.heard())
		sc.run(sc.press(keys...))
		for _, told := range st.heard()[before:] {
			if strings.HasPrefix(told, "fork") || strings.HasPrefix(told, "terminate") {
				t.Errorf("%v told %s", keys, told)
			}
		}
		if strings.Contains(sc.plain(), "▸ From") {
			t.Errorf("%v asks for a fork", keys)
		}
		sc.press("esc")
	}
}

// A key that asks before it acts changes something.
func TestAskingKeysMutate(t *testing.T) {
	st := newStore(full(6))
	screens, global := Screens(console.Options{Controls: st, Actions: st.actions()}, st.feeds())
	bindings := slices.Clone(global)
	for _, s := range screens {
		for _, v := range s.Views {
			bindings = append(bindings, v.Bindings()...)
		}
	}
	asking := 0
	for _, b := range bindings {
		if strings.Contains(b.Help, "asks first") {
			asking++
			if !b.Mutates {
				t.Errorf("%s works in a read-only console", b.Action)
			}
		}
	}
	if asking < 4 {
		t.Errorf("%d keys ask first", asking)
	}
}

func TestParseFork(t *testing.T) {
	at, fields, err := console.ParseFork(`  phase=persist  model=a prompt="b \"c\" d"  label= `)
	if want := []runs.Field{{"model", "a"}, {"prompt", `b "c" d`}, {"label", ""}}; err != nil ||
		at != (runs.Point{Phase: ace.PhasePersist}) || !reflect.DeepEqual(fields, want) {
		t.Errorf("%v %v %v", at, fields, err)
	}
	c := console.New(console.Options{Controls: newStore(nil)}, nil)
	c.Listing.Runs = runs.RunList{Rows: many(3)}
	for typed, want := range map[string]string{"phase=s": "[phase=skills]", "at=3 mod": "[model=]",
		"model=b": "[model=builtin]", "playbook=x": "[]"} {
		if _, options := c.Forks.CompleteFork(typed, len(typed)); fmt.Sprint(options) != want {
			t.Errorf("%q completes to %v", typed, options)
		}
	}
}

// A failed preparation is reported without a question.
func TestPrepareFails(t *testing.T) {
	c := console.New(console.Options{Context: t.Context(), Controls: newStore(nil)}, nil)
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.run(c.Actor.Propose(sc.model, "fork", runs.ID{"ace/q", "r"},
		func(context.Context, runs.ID) (runs.Prepared, error) {
			return runs.Prepared{}, errors.New("the prompt is gone")
		}))
	sc.has("fork: the prompt is gone")
	msg := c.Pipeline.Perform("fork", runs.Prepared{Do: func(context.Context) (string, runs.Run, error) {
		return "", runs.Run{}, errors.New("no room")
	}})()
	sc.model.Update(msg)
	sc.has("fork: no room")
}

// The user can leave while an action is prepared; then there is no question.
func TestWaiting(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	fork := append([]string{":"}, letters("fork at=9")...)
	sc.press(fork...)
	cmd := sc.press("enter")
	sc.has("Fork q-00006?")
	sc.has("run-q-00006")
	sc.has("preparing")
	sc.press("y", "j", "2") // none of these is for what is behind it
	sc.has("preparing")
	golden.RequireEqual(t, sc.drawn())
	sc.press("esc")
	sc.has("stopped; nothing was done")
	sc.run(cmd)
	if out := sc.plain(); strings.Contains(out, "costs") || strings.Contains(out, "preparing") {
		t.Errorf("it asks although it was left:\n%s", out)
	}
	sc.press(fork...)
	sc.run(sc.press("enter"))
	sc.has("costs       nothing")
	sc.press("n")

	ended := make(chan error, 1)
	c := console.New(console.Options{Context: t.Context(), Controls: newStore(nil)}, nil)
	cmd = c.Actor.Propose(sc.model, "fork", runs.ID{"ace/q", "r"},
		func(ctx context.Context, _ runs.ID) (runs.Prepared, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return runs.Prepared{}, ctx.Err()
		})
	sc.press("esc")
	sc.run(cmd)
	if err := <-ended; !errors.Is(err, context.Canceled) || strings.Contains(sc.plain(), "context canceled") {
		t.Errorf("%v:\n%s", err, sc.plain())
	}
}

// An action on a workflow without a run ID applies to the run that was the newest when the user asked.
func TestFrozenRun(t *testing.T) {
	for line, want := range map[string]string{"run.cancel": "cancel ace/other frozen",
		"terminate gone wrong": `terminate {ace/other frozen} "gone wrong"`,
		"signal s 1":           "signal {ace/other frozen} s 1",
		"reset at=9 why":       `reset {ace/other frozen} {9 } "why"`,
		"fork at=7":            "fork {ace/other frozen} {7 } []"} {
		sc := newScreen(t, full(6), plainLook, 80, 24)
		sc.shared.Navigation.Show(runs.Run{WorkflowID: "ace/other"})
		sc.press(":")
		sc.run(sc.press(append(letters(line), "enter")...))
		if line == "run.cancel" {
			sc.has("run       frozen")
		}
		sc.run(sc.press("y"))
		if !contained(sc.store.heard(), want) {
			t.Errorf("%s told %s", line, sc.told(4))
		}
	}
}

// With another provider, the form shows the model that the fork then has.
func TestForkFormFollowsProvider(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 100, 30)
	sc.typed(append([]string{"f", "tab", "tab", "tab", "ctrl+u"}, letters("anthropic")...)...)
	sc.has("claude-1")
	sc.lacks("small")
	sc.has(`plan {0 generator} [{"provider" "anthropic"}]`)
	sc.typed("tab", "end", "x")
	sc.has(`[{"provider" "anthropic"} {"model" "claude-1x"}]`)
}

// An experiment has no results that a fork could reuse.
func TestForkOfAnExperiment(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.shared.Navigation.Show(runs.Run{WorkflowID: ace.ExperimentIDPrefix + "x", RunID: "r",
		Type: ace.ExperimentWorkflow})
	sc.press("f")
	sc.has("an experiment cannot be forked")
}

// An agent session cannot be forked by key or command.
func TestForkOfASession(t *testing.T) {
	for _, keys := range [][]string{{"f"}, append(append([]string{":"}, letters("fork at=9")...), "enter")} {
		sc := newScreen(t, full(6), plainLook, 80, 24)
		sc.shared.Navigation.Show(runs.Run{WorkflowID: "session/x", RunID: "r", Type: session.Workflow})
		sc.run(sc.press(keys...))
		sc.has("an agent session cannot be forked")
	}
}
