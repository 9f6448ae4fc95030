package widget

import (
	"encoding/json"
	"strings"
	"unicode"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// Span is text in an ink.
type Span struct {
	Ink  theme.Ink
	Text string
}

// AddSpans appends the spans to a line.
func AddSpans(l *text.Line, list []Span) *text.Line {
	for _, s := range list {
		l.Add(s.Ink, s.Text)
	}
	return l
}

// Spans writes spans behind a head, broken into lines of the writer's width.
func (w *Writer) Spans(head string, ink theme.Ink, list []Span) {
	for _, l := range WrapSpans(list, w.Width-text.Width(head)-1) {
		w.End(AddSpans(w.Line().Add(ink, head), l))
		head = text.Spaces(text.Width(head))
	}
}

// WrapSpans breaks spans into lines of a width, between words if possible.
func WrapSpans(list []Span, width int) (lines [][]Span) {
	width = max(width, 8)
	var line []Span
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
		for wide > width { // a word that is longer than a line
			head := text.Cut(word, width, "")
			if head == "" {
				break
			}
			line = append(line, Span{ink, head})
			flush()
			word = word[len(head):]
			wide = text.Width(word)
		}
		if word != "" {
			line = append(line, Span{ink, word})
			used += wide
		}
	}
	for _, s := range list {
		for i, l := range strings.Split(strings.ReplaceAll(s.Text, "\r\n", "\n"), "\n") {
			if i > 0 {
				flush()
			}
			for _, word := range SplitWords(l) {
				put(s.Ink, text.Safe(word, " "))
			}
		}
	}
	if len(line) > 0 || len(list) > 0 && len(lines) == 0 {
		flush()
	}
	return lines
}

// maxValue bounds the bytes of a value that are shown.
const maxValue = 4096

// ValueText returns a JSON value as it is shown, and whether it is a text of several words.
func ValueText(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		if !strings.ContainsAny(s, " \n") {
			return Bounded(string(raw), 0), false
		}
		return Bounded(s, 0), true
	}
	if len(raw) > 60 {
		out, used := Indent(raw, maxValue)
		if rest := len(raw) - used; rest > 0 {
			return string(out) + "\n(" + ace.Count(rest, "more byte") + ")", false
		}
		return string(out), false
	}
	return string(raw), false
}

// SplitWords splits into words and the white space between them.
func SplitWords(s string) []string {
	var words []string
	start, space := 0, false
	for i, r := range s {
		if now := unicode.IsSpace(r); i > start && now != space {
			words = append(words, s[start:i])
			start = i
			space = now
		} else if i == start {
			space = now
		}
	}
	if start < len(s) {
		words = append(words, s[start:])
	}
	return words
}
