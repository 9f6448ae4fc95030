package tui

import (
	"time"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// header is the first line: who is talked to, counts, the query, and how fresh all of
// that is.
func (m *Model) header(now time.Time) string {
	s := m.styles
	right, rightInk := m.freshness(now)
	l := text.Line{Max: m.width - text.Width(right) - 3, Tail: s.Glyphs.Ellipsis}
	l.Add(s.BarStrong, " acescope ").Add(s.Bar, m.where()+" ")
	if m.opts.ReadOnly {
		l.Add(s.Warning.Over(s.Bar), " read-only ")
	}
	if m.snap != nil {
		m.counts(&l)
		if q := m.snap.Runs.Query; q != "" {
			l.Add(s.BarMuted, " / ").Add(s.Bar, text.Safe(q, " "))
		}
	}
	return l.String(s.Bar) + s.Bar.Paint("  ") + rightInk.Paint(right) + s.Bar.Paint(" ")
}

func (m *Model) where() string {
	if m.snap == nil {
		return string(sources.ConnStarting) + m.styles.Glyphs.Ellipsis
	}
	c := m.snap.Connection
	parts, names := "", []string{c.Namespace, c.Mode}
	if c.Mode == sources.ModeFile {
		names = []string{c.Mode, c.Address}
	}
	for _, p := range names {
		if p = text.Safe(p, " "); p != "" && parts != "" {
			parts += " " + m.styles.Glyphs.Dot + " "
		}
		parts += p
	}
	if c.State != sources.ConnReady {
		parts += " (" + string(c.State) + ")"
	}
	return parts
}

// counts adds how many runs have each status; zeros are left out, and words where the
// line is short.
func (m *Model) counts(l *text.Line) {
	s := m.styles
	counts := map[string]int64{}
	for status, n := range m.snap.Runs.Counts {
		counts[string(status)] = n
	}
	for _, word := range theme.Statuses() {
		n := counts[word]
		if n == 0 {
			continue
		}
		mark := s.Status(word)
		label := " " + mark.Glyph + " " + text.Count(n)
		if m.width >= WideWidth {
			label += " " + word
		}
		l.Add(mark.Ink.Over(s.Bar), label)
	}
	l.Add(s.Bar, " ")
}

// freshness is how old the list is and how often it is read.
func (m *Model) freshness(now time.Time) (string, theme.Ink) {
	s := m.styles
	if m.snap == nil {
		return "", s.Bar
	}
	r := m.snap.Runs
	if m.snap.Connection.Mode == sources.ModeFile {
		return "not live", m.styles.BarMuted
	}
	state := ""
	switch {
	case r.Paused:
		state = s.Glyphs.Paused + " paused"
	case r.Interval > 0:
		state = s.Glyphs.Refresh + " " + r.Interval.String()
	}
	ink := s.BarMuted
	if r.Paused {
		ink = s.Warning.Over(s.Bar)
	}
	if r.Loaded.IsZero() {
		return state, ink
	}
	// While the list is as fresh as it is meant to be, its age stands still: counting it would
	// draw an idle screen anew each second.
	age := "age " + text.Span(now.Sub(r.Loaded))
	if usual := r.Interval + time.Second; !r.Paused && r.Interval > 0 && now.Sub(r.Loaded) < usual {
		age = "age <" + text.Span(usual)
	}
	if m.stale() {
		age, ink = "stale "+text.Span(now.Sub(r.Loaded)), s.Warning.Over(s.Bar)
	}
	if state != "" {
		age = "  " + age
	}
	return state + age, ink
}

// stale tells whether what is shown is older than it looks: there is data, but the
// server is away.
func (m *Model) stale() bool {
	return m.snap != nil && m.snap.Connection.State != sources.ConnReady && !m.snap.Runs.Loaded.IsZero()
}

// banner is the state of the connection in a word, where that must be seen.
func (m *Model) banner() string {
	switch {
	case m.snap == nil:
		return ""
	case m.snap.Connection.State == sources.ConnLost:
		return "server away"
	case m.stale():
		return "server starting"
	}
	return ""
}

func (m *Model) drawBanner(word string) string {
	s, c := m.styles, m.snap.Connection
	line := " " + s.Glyphs.Failed + " " + word
	if !c.Since.IsZero() {
		line += " since " + text.Span(m.now().Sub(c.Since))
	}
	line += " " + s.Glyphs.Dash + " retrying"
	if c.Err != "" {
		line += ": " + text.Safe(c.Err, " ")
	}
	l := text.Line{Max: m.width, Tail: s.Glyphs.Ellipsis}
	l.Add(s.Alert, line)
	return l.String(s.Alert)
}
