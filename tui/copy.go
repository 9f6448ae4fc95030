package tui

import (
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"
)

// maxTerminalCopy is the longest text, in bytes, that terminals commonly take into the
// clipboard by an escape sequence.
const maxTerminalCopy = 74_000

var errNoClipboard = errors.New("no clipboard")

// copiedMsg tells how a try with the machine's own clipboard went.
type copiedMsg struct {
	what, text string
	err        error
}

// copy copies what the focused view gives, into the machine's clipboard where there is
// one, else by the terminal.
func (m *Model) copy() tea.Cmd {
	what, text := "", ""
	if c, ok := m.focused().(Copier); ok {
		what, text = c.Copy()
	}
	if text == "" {
		m.Note("there is nothing to copy here")
		return nil
	}
	write := m.opts.Clipboard
	return func() tea.Msg {
		err := errNoClipboard
		if write != nil {
			err = write(text)
		}
		return copiedMsg{what, text, err}
	}
}

func (m *Model) copied(c copiedMsg) tea.Cmd {
	switch {
	case c.err == nil:
		m.Note("copied " + c.what + " to the clipboard")
		return nil
	case len(c.text) > maxTerminalCopy:
		m.fail("%s is %d KB, more than terminals take into the clipboard, and this machine has none: %v", c.what, len(c.text)>>10, c.err)
		return nil
	}
	m.Note(fmt.Sprintf("copied %s through the terminal (OSC 52)", c.what))
	return tea.SetClipboard(c.text)
}
