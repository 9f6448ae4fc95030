package tui

import (
	"errors"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"
)

// quitKey works everywhere, dialogs included, and cannot be mapped to anything else.
const quitKey = "ctrl+c"

func (m *Model) shellBindings() []Binding {
	b := []Binding{
		{"shell.help", []string{"?"}, "show or hide this help", "help",
			func(Shell) tea.Cmd { m.help = &help{}; return nil }},
		{"shell.back", []string{"esc"}, "back to where you came from; never quits", "",
			func(Shell) tea.Cmd { m.back(); return nil }},
		{"shell.quit", []string{"q"}, "quit; " + quitKey + " does so from everywhere", "quit",
			func(Shell) tea.Cmd { return tea.Quit }},
	}
	return append([]Binding{
		{"shell.open", []string{"enter"}, "open the selected one", "open",
			func(Shell) tea.Cmd { m.goTo(place{m.at.screen, min(m.at.focus+1, len(m.views())-1)}, true); return nil }},
		{"shell.next", []string{"tab"}, "go to the next pane", "pane",
			func(Shell) tea.Cmd { m.goTo(place{m.at.screen, (m.at.focus + 1) % len(m.views())}, false); return nil }},
	}, b...)
}

// key sends a key to whatever has it: the open dialog, the focused view, the shell.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case k.String() == quitKey:
		return tea.Quit
	case m.prompt != nil:
		return m.promptKey(k)
	case m.question != nil:
		return m.questionKey(k)
	case m.help != nil:
		m.helpKey(k)
		return nil
	}
	for _, b := range m.active() {
		if slices.Contains(b.Keys, k.String()) {
			return b.Do(m)
		}
	}
	return nil
}

// active lists the bindings that dispatch now, in order of precedence.
func (m *Model) active() []Binding {
	own := m.focused().Bindings()
	return append(m.withKeys(own), m.everywhere(own)...)
}

// everywhere lists the global bindings with the keys that a view's own leave to them;
// one that has none left is not listed.
func (m *Model) everywhere(own []Binding) []Binding {
	taken := map[string]bool{}
	for _, b := range own {
		for _, k := range m.keysOf(b) {
			taken[k] = true
		}
	}
	var out []Binding
	for _, b := range m.withKeys(m.global) {
		had := len(b.Keys)
		b.Keys = slices.DeleteFunc(slices.Clone(b.Keys), func(k string) bool { return taken[k] })
		if len(b.Keys) > 0 || had == 0 {
			out = append(out, b)
		}
	}
	return out
}

func (m *Model) keysOf(b Binding) []string {
	if keys, ok := m.keys[b.Action]; ok {
		return keys
	}
	return b.Keys
}

func (m *Model) promptKey(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc":
		m.prompt = nil
		return nil
	case "enter":
		p := m.prompt
		m.prompt = nil
		return p.spec.Done(p.input.Value())
	}
	return m.prompt.update(k)
}

func (m *Model) questionKey(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "y", "Y":
		q := m.question
		m.question = nil
		return q.Do()
	case "n", "N", "esc", "q":
		m.question = nil
	}
	return nil
}

// Actions lists every action, with the keys that lead to it, by the name of the view
// it belongs to; "" for those that work everywhere.
func (m *Model) Actions() map[string][]Binding {
	all := map[string][]Binding{"": m.withKeys(m.global)}
	m.everyView(func(v View) { all[v.Name()] = m.withKeys(v.Bindings()) })
	return all
}

func (m *Model) withKeys(list []Binding) []Binding {
	out := slices.Clone(list)
	for i := range out {
		out[i].Keys = m.keysOf(out[i])
	}
	return out
}

// checkKeys reports a key map that names an action which does not exist, and keys that
// would lead to two actions: of one view, or of those that work everywhere. A view's key
// may take the place of one that works everywhere.
func (m *Model) checkKeys() error {
	known := map[string]bool{}
	err := m.checkUnique(m.global, known)
	m.everyView(func(v View) { err = errors.Join(err, m.checkUnique(v.Bindings(), known)) })
	for action := range m.keys {
		if !known[action] {
			err = errors.Join(err, fmt.Errorf("keys: there is no action %q", action))
		}
	}
	return err
}

func (m *Model) checkUnique(list []Binding, known map[string]bool) error {
	taken := map[string]string{quitKey: "shell.quit"}
	for _, b := range list {
		known[b.Action] = true
		for _, k := range m.keysOf(b) {
			if other, dup := taken[k]; dup && other != b.Action {
				return fmt.Errorf("keys: %q is bound to both %s and %s", k, other, b.Action)
			}
			taken[k] = b.Action
		}
	}
	return nil
}
