package views

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/golden"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/sources/sessions"
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
	s.Detail.Lineage.Fork = &ace.Forked{WorkflowID: "ace/q-1", RunID: "run-q-1", Event: 14, Phase: ace.PhaseSkills,
		Changed: map[string]ace.ForkChange{"model": {From: "small", To: "large"}, "label": {From: "", To: "\x1b[31mred"}}}
	s.Detail.WorkflowID, s.Detail.RunID = r.WorkflowID, r.RunID
	return s
}

// The prompt for a fork, and the question.
func TestForkScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for look, styles := range map[string]theme.Styles{"dark": theme.New(true, false), "nocolor": theme.New(true, true)} {
			name := fmt.Sprintf("%dx%d-%s", size[0], size[1], look)
			t.Run("line-"+name, func(t *testing.T) {
				sc := newScreen(t, full(6), styles, size[0], size[1])
				sc.press(append([]string{"f"}, letters("model=b")...)...)
				golden.RequireEqual(t, sc.drawn())
			})
			t.Run("question-"+name, func(t *testing.T) {
				sc := newScreen(t, full(6), styles, size[0], size[1])
				sc.press(append([]string{"f"}, letters("model=other")...)...)
				sc.run(sc.press("enter"))
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

// The confirmed fork is applied to the run that was selected, and only after a yes.
func TestForkDialog(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.press("f")
	sc.run(sc.press(append(letters(`model=x prompt="say \"hi\""`), "enter")...))
	if got := sc.told(1); got != `fork {ace/q-00006 run-q-00006} {0 generator} [{"model" "x"} {"prompt" "say \"hi\""}]` {
		t.Errorf("told %s", got)
	}
	sc.run(sc.press("n"))
	if got := sc.told(1); strings.HasPrefix(got, "do ") {
		t.Errorf("done without a yes: %s", got)
	}
	sc.press("f")
	sc.run(sc.press("enter"))
	sc.run(sc.press("y"))
	sc.has("fork done")
	if got := sc.told(2); got != "do fork; select ace/q-7~f1 r9" {
		t.Errorf("told %s", got)
	}
}

// Screens that know an event or a phase propose it.
func TestForkPoint(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.press("2")
	var begun []string
	for range 12 {
		sc.press("j", "f")
		for _, line := range splitLines(sc.plain()) {
			if at, ok := strings.CutPrefix(line, " fork "); ok {
				begun = append(begun, strings.TrimSpace(at))
			}
		}
		sc.press("esc")
	}
	all := strings.Join(begun, "; ")
	for _, want := range []string{"phase=skills", "phase=reflector"} {
		if !strings.Contains(all, want) {
			t.Errorf("the rows begin with %s; none with %s", all, want)
		}
	}
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

// A fork that cannot be read stays in the prompt.
func TestForkPromptStaysOpen(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 120, 24)
	sc.press("f", "ctrl+u")
	sc.press(letters("model=other")...)
	sc.run(sc.press("enter"))
	sc.has("fork model=other")
	sc.has("‼ missing point")
	sc.press(letters(" phase=skills")...)
	sc.run(sc.press("enter"))
	sc.has("fork?")
	sc.has("y do it")
}

// A read-only console has no keys and commands that change runs.
func TestReadOnlyHasNoMutations(t *testing.T) {
	st := newStore(full(6))
	screens, global := Screens(console.Options{Controls: st, Actions: st}, st.feeds())
	m, err := tui.New(tui.Options{Source: st, Screens: screens, Global: global, Styles: plainLook, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	sc := &screen{t: t, store: st, model: m, screens: screens}
	sc.resize(80, 24)
	for _, keys := range [][]string{{"f"}, append(append([]string{":"}, letters("terminate x")...), "enter", "esc"),
		append(append([]string{":"}, letters("fork phase=skills")...), "enter", "esc"), {"2", "f"}, {"3", "f"}} {
		before := len(st.heard())
		sc.run(sc.press(keys...))
		for _, told := range st.heard()[before:] {
			if strings.HasPrefix(told, "fork") || strings.HasPrefix(told, "terminate") {
				t.Errorf("%v told %s", keys, told)
			}
		}
		if strings.Contains(sc.plain(), "phase=") {
			t.Errorf("%v asks for a fork", keys)
		}
		sc.press("esc")
	}
}

// A key that asks before it acts changes something.
func TestAskingKeysMutate(t *testing.T) {
	st := newStore(full(6))
	screens, global := Screens(console.Options{Controls: st, Actions: st}, st.feeds())
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
	if asking < 10 {
		t.Errorf("%d keys ask first", asking)
	}
}

func TestParseFork(t *testing.T) {
	at, fields, err := console.ParseFork(`  phase=persist  model=a prompt="b \"c\" d"  label= `)
	if want := []runs.Field{{"model", "a"}, {"prompt", `b "c" d`}, {"label", ""}}; err != nil || at != (runs.Point{Phase: ace.PhasePersist}) || !reflect.DeepEqual(fields, want) {
		t.Errorf("%v %v %v", at, fields, err)
	}
	if got := console.PreviewFork("phase=curator model=a"); got != "will rerun curator, persist; changes model" {
		t.Error(got)
	}
	c := console.New(console.Options{Controls: newStore(nil)})
	c.Runs = runs.RunList{Rows: many(3)}
	for typed, want := range map[string]string{"phase=s": "[phase=skills]", "at=3 mod": "[model=]", "model=b": "[model=builtin]", "playbook=x": "[]"} {
		if _, options := c.CompleteFork(typed, len(typed)); fmt.Sprint(options) != want {
			t.Errorf("%q completes to %v", typed, options)
		}
	}
}

// A failed preparation is reported without a question.
func TestPrepareFails(t *testing.T) {
	c := console.New(console.Options{Context: t.Context(), Controls: newStore(nil)})
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.run(c.Propose(sc.model, "fork", runs.ID{"ace/q", "r"}, func(context.Context, runs.ID) (runs.Prepared, error) {
		return runs.Prepared{}, errors.New("the prompt is gone")
	}))
	sc.has("fork: the prompt is gone")
	msg := c.Perform("fork", runs.Prepared{Do: func(context.Context) (string, runs.Run, error) { return "", runs.Run{}, errors.New("no room") }})()
	sc.model.Update(msg)
	sc.has("fork: no room")
}

// The user can leave while an action is prepared; then there is no question.
func TestWaiting(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.press("f")
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
	sc.press("f")
	sc.run(sc.press("enter"))
	sc.has("costs       nothing")
	sc.press("n")

	ended := make(chan error, 1)
	c := console.New(console.Options{Context: t.Context(), Controls: newStore(nil)})
	cmd = c.Propose(sc.model, "fork", runs.ID{"ace/q", "r"}, func(ctx context.Context, _ runs.ID) (runs.Prepared, error) {
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
	for line, want := range map[string]string{"run.cancel": "cancel ace/other frozen", "terminate gone wrong": `terminate {ace/other frozen} "gone wrong"`,
		"signal s 1": "signal {ace/other frozen} s 1", "reset at=9 why": `reset {ace/other frozen} {9 } "why"`, "fork at=7": "fork {ace/other frozen} {7 } []"} {
		sc := newScreen(t, full(6), plainLook, 80, 24)
		sc.shared.Show(runs.Run{WorkflowID: "ace/other"})
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

// An experiment has no results that a fork could reuse.
func TestForkOfAnExperiment(t *testing.T) {
	sc := newScreen(t, full(6), plainLook, 80, 24)
	sc.shared.Show(runs.Run{WorkflowID: ace.ExperimentIDPrefix + "x", RunID: "r", Type: ace.ExperimentWorkflow})
	sc.press("f")
	sc.has("an experiment cannot be forked")
}

// An agent session cannot be forked by key or command.
func TestForkOfASession(t *testing.T) {
	for _, keys := range [][]string{{"f"}, append(append([]string{":"}, letters("fork at=9")...), "enter")} {
		sc := newScreen(t, full(6), plainLook, 80, 24)
		sc.shared.Show(runs.Run{WorkflowID: "session/x", RunID: "r", Type: sessions.Workflow})
		sc.run(sc.press(keys...))
		sc.has("an agent session cannot be forked")
	}
}
