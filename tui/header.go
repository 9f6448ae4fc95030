package tui

import (
	"time"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// header draws the lines above the panes: the source of the data, counts, the query, and how
// fresh the data is.
type header struct {
	theme.Styles
	width    int
	now      time.Time
	status   *Status // nil before the first
	readOnly bool
}

// draw draws the first line.
func (h header) draw() string {
	right, rightInk := h.freshness()
	l := text.Line{Max: h.width - text.Width(right) - 3, Tail: h.Glyphs.Ellipsis}
	l.Add(h.BarStrong, " acescope ").Add(h.Bar, text.Safe(h.source(), " ")+" ")
	if h.readOnly {
		l.Add(h.Warning.Over(h.Bar), " read-only ")
	}
	if h.status != nil {
		h.addCounts(&l)
		if q := h.status.Filter; q != "" {
			l.Add(h.BarMuted, " / ").Add(h.Bar, text.Safe(q, " "))
		}
	}
	return l.String(h.Bar) + h.Bar.Paint("  ") + rightInk.Paint(right) + h.Bar.Paint(" ")
}

// source names the namespace and the server, or the files.
func (h header) source() string {
	if h.status == nil {
		return "starting" + h.Glyphs.Ellipsis
	}
	c := h.status.Connection
	source := ""
	for _, name := range c.Names {
		if name = text.Safe(name, " "); name != "" && source != "" {
			source += " " + h.Glyphs.Dot + " "
		}
		source += name
	}
	if !c.Ready {
		source += " (" + c.State + ")"
	}
	return source
}

// addCounts adds the number of runs by status and of wrong answers, with words on a wide screen. Zeros are
// left out.
func (h header) addCounts(l *text.Line) {
	add := func(mark theme.Mark, n int64) {
		if n == 0 {
			return
		}
		label := " " + mark.Glyph + " " + ace.Number(n)
		if h.width >= WideWidth {
			label += " " + mark.Word
		}
		l.Add(mark.Ink.Over(h.Bar), label)
	}
	for _, word := range theme.Statuses() {
		add(h.Status(word), h.status.Counts[word])
	}
	add(h.Verdict("wrong"), h.status.Wrong)
	l.Add(h.Bar, " ")
}

// freshness returns how old the list of runs is and how often it is read.
func (h header) freshness() (string, theme.Ink) {
	if h.status == nil {
		return "", h.Bar
	}
	r := h.status
	if !r.Connection.Live {
		return "not live", h.BarMuted
	}
	state, ink := "", h.BarMuted
	switch {
	case r.Paused:
		state, ink = h.Glyphs.Paused+" paused", h.Warning.Over(h.Bar)
	case r.Interval > 0:
		state = h.Glyphs.Refresh + " " + r.Interval.String()
	}
	if r.Loaded.IsZero() {
		return state, ink
	}
	// While the list is as fresh as expected, the age is constant: counting it would redraw
	// an idle screen every second.
	elapsed := h.now.Sub(r.Loaded)
	age := "age " + text.Span(elapsed)
	if expected := r.Interval + time.Second; !r.Paused && r.Interval > 0 && elapsed < expected {
		age = "age <" + text.Span(expected)
	}
	if h.status.stale() {
		age, ink = "stale "+text.Span(elapsed), h.Warning.Over(h.Bar)
	}
	if state != "" {
		age = "  " + age
	}
	return state + age, ink
}

func (h header) drawBanner(problem string) string {
	c := h.status.Connection
	line := " " + h.Glyphs.Failed + " " + problem
	if !c.Since.IsZero() {
		line += " since " + text.Span(h.now.Sub(c.Since))
	}
	line += " " + h.Glyphs.Dash + " retrying"
	if c.Err != "" {
		line += ": " + text.Safe(c.Err, " ")
	}
	l := text.Line{Max: h.width, Tail: h.Glyphs.Ellipsis}
	l.Add(h.Alert, line)
	return l.String(h.Alert)
}
