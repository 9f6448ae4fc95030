package tui

import (
	tea "charm.land/bubbletea/v2"
)

// shellBindings are the keys of the shell itself, in the order in which help lists them.
func (m *Model) shellBindings() []Binding {
	b := func(action, help, short string, do func() tea.Cmd, keys ...string) Binding {
		return Binding{Action: "shell." + action, Keys: keys, Help: help, Short: short, Do: func(Shell) tea.Cmd { return do() }}
	}
	// just is for what needs no command.
	just := func(do func()) func() tea.Cmd { return func() tea.Cmd { do(); return nil } }
	list := []Binding{
		b("open", "open the selected one", "open", just(m.nextPane), "enter"),
		b("next", "go to the next pane", "pane", just(m.cyclePane), "tab"),
		b("help", "show or hide this help", "help", just(m.openHelp), "?"),
		b("command", "give a command; tab completes it", "command", just(m.openPalette), ":"),
		b("back", "back to where you came from; never quits", "", just(m.back), "esc"),
		b("zoom", "this pane alone, or all of them again", "", just(m.zoom), "z"),
		b("narrower", "the left pane narrower", "", just(func() { m.resize(-shareStep) }), "<"),
		b("wider", "the left pane wider", "", just(func() { m.resize(shareStep) }), ">"),
		b("copy", "copy what is selected here", "", m.copy, "y"),
		b("errors", "what went wrong so far, newest first", "", just(m.openFailures), "!"),
		b("mouse", "take the mouse or leave it to the terminal", "", just(m.toggleMouse), "M"),
		b("quit", "quit; "+quitKey+" does so from everywhere", "quit", func() tea.Cmd { return tea.Quit }, "q"),
	}
	if m.opts.CancelWork != nil {
		list = append(list, b("cancel_work", "stop the long work that the status line shows", "", just(m.cancelWork), "ctrl+x"))
	}
	return list
}

func (m *Model) screenBindings() []Binding {
	if len(m.screens) < 2 {
		return nil
	}
	var out []Binding
	for _, s := range m.screens {
		out = append(out, Binding{Action: "screen." + s.Name, Keys: s.Keys, Help: s.Help,
			Do: func(Shell) tea.Cmd { m.Open(s.Name); return nil }})
	}
	return out
}

func (m *Model) nextPane() {
	m.goTo(place{m.at.screen, min(m.at.focus+1, len(m.views())-1)}, true)
}

func (m *Model) cyclePane() {
	m.goTo(place{m.at.screen, (m.at.focus + 1) % len(m.views())}, false)
}

// keysOf is the keys of a binding, after the key map.
func (m *Model) keysOf(b Binding) []string {
	if keys, ok := m.keys[b.Action]; ok {
		return keys
	}
	return b.Keys
}

// keysFor is the keys of a global action.
func (m *Model) keysFor(action string) []string {
	for _, b := range m.global {
		if b.Action == action {
			return m.keysOf(b)
		}
	}
	return nil
}

func (m *Model) withKeys(list []Binding) []Binding {
	out := make([]Binding, len(list))
	for i, b := range list {
		b.Keys = m.keysOf(b)
		out[i] = b
	}
	return out
}

// KeyGroup is bindings that work in the same place.
type KeyGroup struct {
	Name     string // of the view, "Everywhere" for those of the shell
	Bindings []Binding
}

// Keys lists every action with the keys that lead to it: those that work everywhere,
// then by view, in the order of the screens.
func (m *Model) Keys() []KeyGroup {
	all := []KeyGroup{{"Everywhere", m.allowed(m.withKeys(m.global))}}
	m.everyView(func(v View) {
		if b := m.allowed(m.withKeys(v.Bindings())); len(b) > 0 {
			all = append(all, KeyGroup{v.Name(), b})
		}
	})
	return all
}
