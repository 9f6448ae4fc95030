package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

// quitKey works everywhere, dialogs included, and cannot be mapped to anything else.
const quitKey = "ctrl+c"

// key sends a key to whatever has it: the open dialog, the focused view, the shell.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case k.String() == quitKey:
		return tea.Quit
	case m.prompt != nil:
		return m.promptKey(k)
	case m.question != nil:
		return m.questionKey(k)
	case m.waiting.Waiting != nil:
		m.waitingKey(k)
		return nil
	case m.sheet != nil:
		m.sheetKey(k)
		return nil
	}
	own := m.focused().Bindings()
	for _, b := range append(m.withKeys(own), m.everywhere(own)...) {
		if slices.Contains(b.Keys, k.String()) {
			return m.do(b)
		}
	}
	return nil
}

// do runs a binding, unless it would change something and the console only reads.
func (m *Model) do(b Binding) tea.Cmd {
	if b.Mutates && m.opts.ReadOnly {
		m.Note("read-only: " + b.Action + " is off")
		return nil
	}
	return b.Do(m)
}

// active lists the bindings that dispatch now, in order of precedence.
func (m *Model) active() []Binding {
	own := m.focused().Bindings()
	return m.allowed(append(m.withKeys(own), m.everywhere(own)...))
}

// allowed is the list without what a console that only reads leaves off.
func (m *Model) allowed(list []Binding) []Binding {
	if !m.opts.ReadOnly {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(b Binding) bool { return b.Mutates })
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
