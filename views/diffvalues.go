package views

import (
	"encoding/json"
	"fmt"
	"strings"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// columnsFrom is the width from which values stand side by side.
const columnsFrom = 96

// maxDiffValue bounds the bytes of a value that are shown.
const maxDiffValue = 4096

// diffChanges writes changes by path, the values side by side where there is room.
func (w *writer) diffChanges(what string, list []sources.DiffChange, indent int) {
	pad := text.Spaces(indent)
	for i := range list {
		c := &list[i]
		path := c.Path
		if path == "" {
			path = "(the whole)"
		}
		w.end(w.line().Add(w.s.Strong, pad+what).Add(w.s.Accent, " "+text.Safe(path, " ")))
		a, b := diffValues(c, w.s)
		if w.width >= columnsFrom {
			w.beside(a, b, indent+2)
		} else {
			w.below(w.s.Glyphs.Removed, w.s.Removed, a, indent+2)
			w.below(w.s.Glyphs.Added, w.s.Added, b, indent+2)
		}
		if c.Cut {
			w.say(w.s.Muted, pad+"  (only the beginning)")
		}
	}
}

// inked is a piece of text in one ink.
type inked struct {
	ink  theme.Ink
	text string
}

// diffValues are both values of a change as pieces, nil where a side has none. Of two
// texts the words that differ stand out.
func diffValues(c *sources.DiffChange, s theme.Styles) (a, b []inked) {
	x, isText := diffValue(c.A)
	y, isText2 := diffValue(c.B)
	if isText && isText2 && c.A != nil && c.B != nil {
		for _, e := range diffWords(x, y) {
			switch e.kind {
			case editGone:
				a = append(a, inked{s.Removed, e.text})
			case editNew:
				b = append(b, inked{s.Added, e.text})
			default:
				a, b = append(a, inked{s.Text, e.text}), append(b, inked{s.Text, e.text})
			}
		}
		return orEmpty(a, s), orEmpty(b, s)
	}
	if c.A != nil {
		a = []inked{{s.Removed, x}}
	}
	if c.B != nil {
		b = []inked{{s.Added, y}}
	}
	return a, b
}

// orEmpty shows that a text is there and empty.
func orEmpty(list []inked, s theme.Styles) []inked {
	if len(list) == 0 {
		return []inked{{s.Muted, `""`}}
	}
	return list
}

// diffValue is a value to read, and whether it is text of several words.
func diffValue(raw json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil && len(raw) > 0 && raw[0] == '"' {
		if !strings.ContainsAny(s, " \n") {
			return bounded(string(raw), 0), false
		}
		return bounded(s, 0), true
	}
	if len(raw) > 60 {
		out, used := indent(raw, maxDiffValue)
		if rest := len(raw) - used; rest > 0 {
			return string(out) + fmt.Sprintf("\n(%s more bytes)", text.Count(int64(rest))), false
		}
		return string(out), false
	}
	return string(raw), false
}

// below writes a value under its path.
func (w *writer) below(glyph string, ink theme.Ink, list []inked, indent int) {
	if list == nil {
		return
	}
	head := text.Spaces(indent) + glyph + " "
	for i, l := range wrapInked(list, w.width-indent-3) {
		if i > 0 {
			head = text.Spaces(text.Width(head))
		}
		w.end(w.addInked(w.line().Add(ink, head), l))
	}
}

// beside writes both values side by side.
func (w *writer) beside(a, b []inked, indent int) {
	g := w.s.Glyphs
	half := (w.width - indent - 3) / 2
	left, right := wrapInked(a, half-3), wrapInked(b, half-3)
	for i := range max(len(left), len(right)) {
		l := w.line().Add(w.s.Text, text.Spaces(indent))
		put := func(glyph string, ink theme.Ink, lines [][]inked, until int) {
			if i < len(lines) {
				if i > 0 {
					glyph = " "
				}
				w.addInked(l.Add(ink, glyph+" "), lines[i])
			}
			l.Pad(w.s.Text, until)
		}
		put(g.Removed, w.s.Removed, left, indent+half)
		l.Add(w.s.Border, g.Plain.Side+" ")
		put(g.Added, w.s.Added, right, w.width)
		w.end(l)
	}
}

func (w *writer) addInked(l *text.Line, list []inked) *text.Line {
	for _, r := range list {
		l.Add(r.ink, r.text)
	}
	return l
}

// wrapInked breaks pieces into lines of a width, between words where it can.
func wrapInked(list []inked, width int) (lines [][]inked) {
	width = max(width, 8)
	var line []inked
	used := 0
	flush := func() { lines, line, used = append(lines, line), nil, 0 }
	put := func(ink theme.Ink, word string) {
		wide := text.Width(word)
		if used > 0 && used+wide > width {
			flush()
			if strings.TrimSpace(word) == "" {
				return
			}
		}
		for wide > width { // one word that has no room in any line
			head := text.Cut(word, width, "")
			if head == "" {
				break
			}
			line = append(line, inked{ink, head})
			flush()
			word = word[len(head):]
			wide = text.Width(word)
		}
		if word != "" {
			line = append(line, inked{ink, word})
			used += wide
		}
	}
	for _, r := range list {
		for i, l := range strings.Split(strings.ReplaceAll(r.text, "\r\n", "\n"), "\n") {
			if i > 0 {
				flush()
			}
			for _, word := range splitWords(l) {
				put(r.ink, text.Safe(word, " "))
			}
		}
	}
	if len(line) > 0 || len(list) > 0 && len(lines) == 0 {
		flush()
	}
	return lines
}
