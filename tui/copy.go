package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// copiesOf lists what a view can copy, the default first. Of equal texts it lists the first, with the keys of
// all.
func copiesOf(v View) (list []Copy) {
	var all []Copy
	if c, ok := v.(Copier); ok {
		what, text := c.Copy()
		all = append(all, Copy{"y", what, text})
	}
	if c, ok := v.(MultiCopier); ok {
		all = append(all, c.Copies()...)
	}
	for _, c := range all {
		same := slices.IndexFunc(list, func(l Copy) bool { return l.Text == c.Text })
		switch {
		case c.Text == "":
		case same >= 0:
			list[same].Key += " " + c.Key
		default:
			list = append(list, c)
		}
	}
	return list
}

// clipboard copies texts to the system clipboard, or through the terminal if that fails.
type clipboard struct {
	write    func(string) error
	messages *messages
}

// menu returns the menu of what can be copied.
func (c *clipboard) menu(list []Copy) *dialog {
	d := &dialog{title: "Copy", answers: []answer{{[]string{"esc", "q"}, nil}},
		hints: []hint{{"esc", "close"}}}
	for i, form := range list {
		keys := strings.Fields(form.Key)
		if i == 0 {
			keys = append(keys, "enter")
		}
		d.answers = append(d.answers, answer{keys, func(Shell) tea.Cmd { return c.copy(form) }})
	}
	d.draw = func(s theme.Styles, width int, _ time.Time) (above, lines, below []string) {
		w, keys := 0, 0
		for _, c := range list {
			w, keys = max(w, text.Width(c.What)), max(keys, len(c.Key))
		}
		for _, c := range list {
			l := text.Line{Max: min(width, 100), Tail: s.Glyphs.Ellipsis}
			l.Add(s.Key, text.Fit(c.Key, keys, "")+"  ")
			l.Add(s.Text, text.Fit(text.Safe(c.What, " "), w, "")+"  ")
			l.Add(s.Muted, text.Safe(text.Cut(c.Text, 400, ""), " "))
			lines = append(lines, l.String(s.Text))
		}
		return []string{""}, lines, []string{""}
	}
	return d
}

// copy returns the command that writes a text to the system clipboard.
func (c *clipboard) copy(form Copy) tea.Cmd {
	return func() tea.Msg {
		err := errNoClipboard
		if c.write != nil {
			err = c.write(form.Text)
		}
		return copiedMsg{form.What, form.Text, err}
	}
}

// copied notes the result of a copy, and copies through the terminal if the system clipboard failed.
func (c *clipboard) copied(msg copiedMsg) tea.Cmd {
	switch {
	case msg.err == nil:
		c.messages.note("copied " + msg.what + " to the clipboard")
		return nil
	case len(msg.text) > maxTerminalCopy:
		c.messages.fail(fmt.Errorf(
			"cannot copy %s: %d KB is more than terminals accept, and the system clipboard failed: %w",
			msg.what, len(msg.text)>>10, msg.err))
		return nil
	}
	c.messages.note("copied " + msg.what + " through the terminal (OSC 52)")
	return tea.SetClipboard(msg.text)
}
