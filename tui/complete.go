package tui

import (
	"strconv"

	"acescope/theme"
	"acescope/tui/text"
)

// completion is what may stand in place of a part of the line, line[from:cursor] as it
// was when the options were asked for. at is the option that was put in, -1 for none.
type completion struct {
	line         string
	from, cursor int
	options      []string
	at           int
}

// maxListed bounds the options that are visible at once; the list scrolls.
const maxListed = 8

// complete asks what may stand at the cursor.
func (p *prompt) complete() {
	p.list = completion{at: -1}
	if p.spec.Complete == nil {
		return
	}
	line := p.input.Value()
	cursor := len(string([]rune(line)[:p.input.Position()]))
	from, options := p.spec.Complete(line, cursor)
	if from < 0 || from > cursor {
		return
	}
	p.list = completion{line, from, cursor, options, -1}
}

// choose puts the next option, or the one before, into the line. One that is alone is
// taken for good, so that the next completions follow.
func (p *prompt) choose(by int) {
	c := &p.list
	if len(c.options) == 0 {
		return
	}
	if c.at += by; c.at < -1 || by < 0 && c.at == -1 {
		c.at = len(c.options) - 1
	}
	c.at %= len(c.options)
	head := c.line[:c.from] + c.options[c.at]
	p.input.SetValue(head + c.line[c.cursor:])
	p.input.SetCursor(len([]rune(head)))
	if p.recalls = 0; len(c.options) == 1 {
		p.complete()
	}
}

// drawList is the visible part of the options, each with its help, at most height lines.
func (p *prompt) drawList(s theme.Styles, width, height int) []string {
	c := p.list
	n := min(len(c.options), height, maxListed)
	if n <= 0 {
		return nil
	}
	top := min(max(c.at-n/2, 0), len(c.options)-n)
	w := 0
	for _, o := range c.options[top : top+n] {
		w = max(w, text.Width(text.Safe(o, " ")))
	}
	w = min(w, width/2)
	lines := make([]string, n)
	for i := range lines {
		l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
		option, ink, mark := c.options[top+i], s.Key, " "
		if top+i == c.at {
			ink, mark = s.Selected, s.Glyphs.Pointer
		}
		l.Add(ink, mark+text.Fit(text.Safe(option, " "), w, s.Glyphs.Ellipsis)+" ")
		if p.help != nil {
			l.Add(s.Text, " "+text.Safe(p.help(option), " "))
		}
		lines[i] = l.String(s.Text)
	}
	return lines
}

// listBox is the list of options in a frame that fits above the prompt.
func (m *Model) listBox() []string {
	p := m.prompt
	lines := p.drawList(m.styles, min(m.width-6, 90), m.bodyHeight()-2)
	if len(lines) == 0 {
		return nil
	}
	title := strconv.Itoa(len(p.list.options)) + " match"
	if len(p.list.options) != 1 {
		title += "es"
	}
	return m.box(title, lines)
}
