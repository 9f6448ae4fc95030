package tui

import (
	"strconv"
	"strings"
	"time"

	"acescope/sources"
	"acescope/tui/text"
)

// work is the long work that the status line shows: the newest.
func (m *Model) work() (sources.Work, bool) {
	if m.snap == nil || len(m.snap.Work) == 0 {
		return sources.Work{}, false
	}
	return m.snap.Work[len(m.snap.Work)-1], true
}

func (m *Model) cancelWork() {
	w, ok := m.work()
	if !ok {
		m.Note("no long work is under way")
		return
	}
	m.opts.CancelWork(w.ID)
	m.Note("stopping: " + text.Safe(w.Label, " "))
}

// addWork adds how far the newest long work is, and how many more there are.
func (m *Model) addWork(l *text.Line, now time.Time) {
	w, ok := m.work()
	if !ok {
		return
	}
	s := m.styles
	l.Add(s.Running, text.Cut(text.Safe(w.Label, " "), max(m.width/4, 12), s.Glyphs.Ellipsis)+" ")
	const size = 8
	switch {
	case w.Total > 0:
		full := int(min(max(w.Done, 0), w.Total) * size / w.Total)
		percent := strconv.FormatInt(min(max(w.Done, 0), w.Total)*100/w.Total, 10) + "%"
		l.Add(s.Running, strings.Repeat(s.Glyphs.Full, full)).Add(s.Border, strings.Repeat(s.Glyphs.Empty, size-full)).Add(s.Text, " "+percent)
	case w.Done > 0:
		l.Add(s.Text, text.Count(w.Done))
	default:
		l.Add(s.Text, text.Span(now.Sub(w.Since)))
	}
	if n := len(m.snap.Work) - 1; n > 0 {
		l.Add(s.Muted, " +"+strconv.Itoa(n))
	}
	if keys := m.keysFor("shell.cancel_work"); len(keys) > 0 {
		l.Add(s.Key, " "+m.keyName(keys[0])).Add(s.Hint, " stop")
	}
	l.Add(s.Text, "   ")
}
