package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestFit(t *testing.T) {
	for _, c := range []struct {
		pattern, name, help string
		want                fit
	}{
		{"runs", "runs", "", equals},
		{"", "", "", equals},
		{"", "runs", "", begins},
		{"ru", "Runs", "", begins},
		{"tmach", "time-machine", "", wordwise},
		{"e10", "demo-1-e1-0018", "", wordwise}, // e1 and 0
		{"0018", "demo-1-e1-0018", "", wordwise},
		{"un", "runs", "", inside},
		{"rs", "runs", "", scattered},
		{"wrong", "q-1", "Wrong answer", mentioned},
		{"w", "q-1", "wrong", noFit},
		{"sr", "runs", "", noFit},
		{"größe", "eine-größe", "", wordwise},
	} {
		if got := fitOf(c.pattern, c.name, c.help); got != c.want {
			t.Errorf("%q in %q: %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}

// TestRanked checks that the fit counts first, then how recently a value was used, then the order.
func TestRanked(t *testing.T) {
	var list []Candidate
	for _, v := range strings.Fields("orders a-run run-2 run-1 run") {
		list = append(list, Candidate{Value: v})
	}
	recent := func(v string) int { return map[string]int{"run-1": 4, "a-run": 1}[v] }
	var got []string
	for _, c := range ranked(list, "run", recent) {
		got = append(got, c.Value)
	}
	if want := strings.Fields("run run-1 run-2 a-run"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestHistory checks that up walks the lines that begin with the typed text, and that credentials are not
// kept.
func TestHistory(t *testing.T) {
	o, _, _ := eight(nil)
	m := sized(t, o, 100, 30)
	for _, line := range []string{"theme ember", "grep one", "theme fjord", "grep api_key=123",
		"grep tokens"} {
		give(m, ":", line, "enter")
	}
	give(m, ":", "theme")
	for _, want := range []string{"theme fjord", "theme ember", "theme ember"} {
		if give(m, "up"); m.prompts.open.input.Value() != want {
			t.Errorf("got %q, want %q", m.prompts.open.input.Value(), want)
		}
	}
	if give(m, "down", "down"); m.prompts.open.input.Value() != "theme" {
		t.Errorf("got %q after going down", m.prompts.open.input.Value())
	}
	if got := m.State().History[":"]; slices.Contains(got, "grep api_key=123") ||
		!slices.Contains(got, "grep tokens") {
		t.Errorf("kept %q", got)
	}
	give(m, "esc", ":", "gr", "tab", "err", "enter")
	if got := m.State().History[":"]; got[len(got)-1] != "grep err" {
		t.Errorf("kept %q", got)
	}
}

// TestScreenArgument checks the command of a screen with an argument, and without.
func TestScreenArgument(t *testing.T) {
	given := ""
	o, _, _ := eight(func(o *Options) {
		o.Screens[2].Argument = &Argument{Name: "ID", Help: "ID selects a run",
			Candidates: func() []Candidate {
				return []Candidate{{"q-0001", "wrong"}, {"q-0002", "correct"}}
			}, Check: func(id string) error { return oops(id == "nope") },
			Do: func(s Shell, id string) tea.Cmd { given = id; s.Open("timeline"); return nil }}
	})
	m := sized(t, o, 100, 30)
	give(m, ":", "timeline nope", "enter")
	if m.prompts.open == nil {
		t.Fatal("an argument that cannot be applied closed the prompt")
	}
	give(m, "esc", ":", "timeline corr", "tab", "enter")
	if given != "q-0002" || m.panes.screen().Name != "timeline" {
		t.Errorf("got %q on %s", given, m.panes.screen().Name)
	}
	given = ""
	give(m, "1", ":", "timeline", "enter")
	if given != "" || m.panes.screen().Name != "timeline" {
		t.Errorf("got %q on %s", given, m.panes.screen().Name)
	}
}

// TestLongCandidates checks that candidates with the same beginning are listed with their ends.
func TestLongCandidates(t *testing.T) {
	o, _, _ := eight(func(o *Options) {
		o.Screens[2].Argument = &Argument{Name: "ID", Candidates: func() []Candidate {
			id := "formula_train_subset_500-20261128-163353-7wj"
			return []Candidate{{id + "-0001", "wrong"}, {id + "-0002", "correct"}}
		}}
	})
	m := sized(t, o, 80, 24)
	give(m, ":", "timeline formula")
	wants(t, m, "-0001  wrong", "-0002  correct")
}

// TestHelpSearchesAndRuns checks that typing searches all views, and that enter runs a key in its view.
func TestHelpSearchesAndRuns(t *testing.T) {
	o, _, did := eight(nil)
	m := sized(t, o, 80, 24)
	give(m, "3", "?", "cancel the")
	wants(t, m, "/ cancel the", "▸x  cancel the run")
	give(m, "enter")
	if len(*did) != 1 || m.panes.screen().Name != "runs" || m.dialogs.top() != nil {
		t.Errorf("ran %v on %s", *did, m.panes.screen().Name)
	}
	give(m, "?", "terminated")
	wants(t, m, "Signs", "⊗ terminated")
	if out := exact(t, m); strings.Contains(out, "canceled") {
		t.Errorf("the search does not choose signs:\n%s", out)
	}
	give(m, "x")
	wants(t, m, "No match; esc clears the search.")
	give(m, "esc", "esc", "?", "down", "down", "enter")
	if m.panes.at.focus != 1 {
		t.Errorf("enter ran another key than that of the third line; focus %d", m.panes.at.focus)
	}
	give(m, "?", "?")
	if m.dialogs.top() != nil {
		t.Error("? does not close the help")
	}
}

func oops(yes bool) error {
	if yes {
		return errors.New("no such run")
	}
	return nil
}

// TestCopyMenu checks that a second key picks a form, and that forms without a text are absent.
func TestCopyMenu(t *testing.T) {
	var wrote []string
	o, _, _ := eight(func(o *Options) {
		o.Clipboard = func(s string) error { wrote = append(wrote, s); return nil }
	})
	m := sized(t, o, 100, 30)
	give(m, "y")
	wants(t, m, "y i  its line  q-1")
	if out := exact(t, m); strings.Contains(out, "answer") {
		t.Errorf("an answer without a text is offered:\n%s", out)
	}
	for _, key := range []string{"y", "i", "enter"} {
		if cmd := give(m, "esc", "y", key); cmd != nil {
			m.Update(cmd())
		}
	}
	wants(t, m, "copied its line to the clipboard")
	if !slices.Equal(wrote, []string{"q-1", "q-1", "q-1"}) {
		t.Errorf("copied %q", wrote)
	}
	give(m, "y", "a")
	if m.dialogs.top() == nil || len(wrote) != 3 {
		t.Error("a key that the menu does not have closed it or copied")
	}
}

// TestSuspend checks that the console does not freeze a server with open runs, and asks before it freezes
// another one.
func TestSuspend(t *testing.T) {
	hosts := Connection{Hosts: true}
	for name, c := range map[string]struct {
		status   *Status
		suspends bool
		says     string
	}{
		"attached": {&Status{Counts: map[string]int64{"running": 2}}, true, ""},
		"open run": {&Status{Connection: hosts, Counts: map[string]int64{"running": 2}}, false,
			"cannot suspend: it hosts the server"},
		"filtered": {&Status{Connection: hosts, Filter: "wrong"}, false,
			"cannot suspend: it hosts the server"},
		"no open run": {&Status{Connection: hosts}, false, "Suspend the server?"},
	} {
		o, _, _ := eight(nil)
		m := sized(t, o, 80, 24)
		m.apply(c.status)
		suspends := func(cmd tea.Cmd) bool {
			if cmd == nil {
				return false
			}
			_, ok := cmd().(tea.SuspendMsg)
			return ok
		}
		if got := suspends(give(m, "ctrl+z")); got != c.suspends {
			t.Errorf("%s: suspends: %v", name, got)
		}
		wants(t, m, c.says)
		if name == "no open run" && !suspends(give(m, "y")) {
			t.Errorf("%s: yes does not suspend", name)
		}
	}
}
