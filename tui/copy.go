package tui

import (
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/theme"
	"acescope/tui/text"
)

// Copy is a text that can be copied.
type Copy struct {
	Key  string // of the menu: "i" for an ID, "a" an answer, "t" a text, "j" JSON, "c" a command
	What string // a short description
	Text string // "" leaves it out
}

// maxTerminalCopy is the longest text, in bytes, that most terminals copy to the clipboard
// by an escape sequence.
const maxTerminalCopy = 74_000

var errNoClipboard = errors.New("no clipboard")

// copiedMsg reports the result of writing to the system clipboard.
type copiedMsg struct {
	what, text string
	err        error
}

// copies lists what the focused view can copy, the default first.
func (m *Model) copies() (list []Copy) {
	v := m.panes.focused()
	if c, ok := v.(Copier); ok {
		what, text := c.Copy()
		list = append(list, Copy{"y", what, text})
	}
	if c, ok := v.(MultiCopier); ok {
		list = append(list, c.Copies()...)
	}
	return slices.DeleteFunc(list, func(c Copy) bool { return c.Text == "" })
}

// askCopy opens the menu of what can be copied.
func (m *Model) askCopy() {
	list := m.copies()
	if len(list) == 0 {
		m.Note("nothing to copy here")
		return
	}
	d := &dialog{title: "Copy", answers: []answer{{[]string{"esc", "q"}, nil}}, hints: []hint{{"esc", "close"}}}
	for i, c := range list {
		keys := []string{c.Key}
		if i == 0 {
			keys = append(keys, "enter")
		}
		d.answers = append(d.answers, answer{keys, func(Shell) tea.Cmd { return m.copy(c) }})
	}
	d.draw = func(s theme.Styles, width int, _ time.Time) (above, lines, below []string) {
		w := 0
		for _, c := range list {
			w = max(w, text.Width(c.What))
		}
		for _, c := range list {
			l := text.Line{Max: min(width, 100), Tail: s.Glyphs.Ellipsis}
			l.Add(s.Key, c.Key+"  ").Add(s.Text, text.Fit(text.Safe(c.What, " "), w, "")+"  ")
			l.Add(s.Muted, text.Safe(text.Cut(c.Text, 400, ""), " "))
			lines = append(lines, l.String(s.Text))
		}
		return []string{""}, lines, []string{""}
	}
	m.dialogs[questionDialog] = d
}

// copy copies a text to the system clipboard, or through the terminal if that fails.
func (m *Model) copy(c Copy) tea.Cmd {
	write := m.opts.Clipboard
	if write == nil {
		write = func(string) error { return errNoClipboard }
	}
	return func() tea.Msg { return copiedMsg{c.What, c.Text, write(c.Text)} }
}

func (m *Model) copied(c copiedMsg) tea.Cmd {
	switch {
	case c.err == nil:
		m.Note("copied " + c.what + " to the clipboard")
		return nil
	case len(c.text) > maxTerminalCopy:
		m.fail(fmt.Errorf("cannot copy %s: %d KB is more than terminals accept, and the system clipboard failed: %w",
			c.what, len(c.text)>>10, c.err))
		return nil
	}
	m.Note("copied " + c.what + " through the terminal (OSC 52)")
	return tea.SetClipboard(c.text)
}
