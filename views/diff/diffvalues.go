package diff

import (
	"encoding/json"
	"fmt"
	"strings"

	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// columnsFrom is the width from which values stand side by side.
const columnsFrom = 96

// maxDiffValue bounds the bytes of a value that are shown.
const maxDiffValue = 4096

// diffChanges writes changes by path, the values side by side where there is room.
func diffChanges(w *widget.Writer, what string, list []histories.DiffChange, indent int) {
	pad := text.Spaces(indent)
	for i := range list {
		c := &list[i]
		path := c.Path
		if path == "" {
			path = "(the whole)"
		}
		w.End(w.Line().Add(w.S.Strong, pad+what).Add(w.S.Accent, " "+text.Safe(path, " ")))
		a, b := diffValues(c, w.S)
		if w.Width >= columnsFrom {
			beside(w, a, b, indent+2)
		} else {
			below(w, w.S.Glyphs.Removed, w.S.Removed, a, indent+2)
			below(w, w.S.Glyphs.Added, w.S.Added, b, indent+2)
		}
		if c.Cut {
			w.Say(w.S.Muted, pad+"  (only the beginning)")
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
func diffValues(c *histories.DiffChange, s theme.Styles) (a, b []inked) {
	x, isText := diffValue(c.A)
	y, isText2 := diffValue(c.B)
	if isText && isText2 && c.A != nil && c.B != nil {
		for _, e := range widget.DiffWords(x, y) {
			switch e.Kind {
			case widget.EditGone:
				a = append(a, inked{s.Removed, e.Text})
			case widget.EditNew:
				b = append(b, inked{s.Added, e.Text})
			default:
				a, b = append(a, inked{s.Text, e.Text}), append(b, inked{s.Text, e.Text})
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
			return widget.Bounded(string(raw), 0), false
		}
		return widget.Bounded(s, 0), true
	}
	if len(raw) > 60 {
		out, used := widget.Indent(raw, maxDiffValue)
		if rest := len(raw) - used; rest > 0 {
			return string(out) + fmt.Sprintf("\n(%s more bytes)", text.Count(int64(rest))), false
		}
		return string(out), false
	}
	return string(raw), false
}

// below writes a value under its path.
func below(w *widget.Writer, glyph string, ink theme.Ink, list []inked, indent int) {
	if list == nil {
		return
	}
	head := text.Spaces(indent) + glyph + " "
	for i, l := range wrapInked(list, w.Width-indent-3) {
		if i > 0 {
			head = text.Spaces(text.Width(head))
		}
		w.End(addInked(w, w.Line().Add(ink, head), l))
	}
}

// beside writes both values side by side.
func beside(w *widget.Writer, a, b []inked, indent int) {
	g := w.S.Glyphs
	half := (w.Width - indent - 3) / 2
	left, right := wrapInked(a, half-3), wrapInked(b, half-3)
	for i := range max(len(left), len(right)) {
		l := w.Line().Add(w.S.Text, text.Spaces(indent))
		put := func(glyph string, ink theme.Ink, lines [][]inked, until int) {
			if i < len(lines) {
				if i > 0 {
					glyph = " "
				}
				addInked(w, l.Add(ink, glyph+" "), lines[i])
			}
			l.Pad(w.S.Text, until)
		}
		put(g.Removed, w.S.Removed, left, indent+half)
		l.Add(w.S.Border, g.Plain.Side+" ")
		put(g.Added, w.S.Added, right, w.Width)
		w.End(l)
	}
}

func addInked(w *widget.Writer, l *text.Line, list []inked) *text.Line {
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
			for _, word := range widget.SplitWords(l) {
				put(r.ink, text.Safe(word, " "))
			}
		}
	}
	if len(line) > 0 || len(list) > 0 && len(lines) == 0 {
		flush()
	}
	return lines
}
