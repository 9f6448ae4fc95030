package run

import (
	"time"

	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// logPanel is a window on a run's log. It follows the end until somebody scrolls up;
// then it stays on its lines, even when older ones fall out of the buffer.
type logPanel struct {
	away   bool // scrolled up
	top    int  // number of the first visible line since the log began
	height int
}

func (p *logPanel) Scroll(by int, d *histories.Detail) {
	if d == nil {
		return
	}
	first, end := p.window(d)
	oldest, last := d.LogDropped, d.LogDropped+len(d.Log)
	p.top = widget.Clamp(first+by, oldest, max(last-p.height, oldest))
	p.away = p.top+(end-first) < last
}

// window is the numbers of the first visible line and of the one after the last.
func (p *logPanel) window(d *histories.Detail) (int, int) {
	oldest, last := d.LogDropped, d.LogDropped+len(d.Log)
	top := max(last-p.height, oldest)
	if p.away {
		top = widget.Clamp(p.top, oldest, top)
	}
	return top, min(top+p.height, last)
}

// state is whether the log follows, and what was lost.
func (p *logPanel) state(d *histories.Detail) string {
	said := "following"
	if !d.Close.IsZero() {
		said = "complete"
	}
	if p.away {
		_, end := p.window(d)
		said = text.Count(int64(d.LogDropped+len(d.Log)-end)) + " below, G follows"
	}
	return said + ", " + text.Count(int64(d.LogDropped)) + " dropped"
}

func (p *logPanel) draw(d *histories.Detail, width int, s theme.Styles, loc *time.Location) []string {
	if len(d.Log) == 0 {
		return widget.Fill([]string{s.Muted.Paint(text.Fit(" nothing yet", width, ""))}, width, p.height)
	}
	from, to := p.window(d)
	lines := make([]string, 0, p.height)
	for _, l := range d.Log[from-d.LogDropped : to-d.LogDropped] {
		lines = append(lines, logLine(l, width, s, loc))
	}
	return widget.Fill(lines, width, p.height)
}

func logLine(l runs.LogLine, width int, s theme.Styles, loc *time.Location) string {
	out := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	at := "        "
	if !l.At.IsZero() {
		at = l.At.In(loc).Format("15:04:05")
	}
	out.Add(s.Muted, at+" ").Add(kindInk(l.Kind, s), text.Fit(text.Safe(l.Kind, " "), 7, ""))
	ink := s.Text
	if l.Kind == "error" {
		ink = s.Error
	}
	out.Add(ink, text.Safe(widget.Bounded(l.Text, width), " "+s.Glyphs.Newline+" "))
	return out.String(s.Text)
}

func kindInk(kind string, s theme.Styles) theme.Ink {
	switch kind {
	case "phase":
		return s.Accent
	case "skill":
		return s.Tagged
	case "delta":
		return s.Added
	case "error":
		return s.Error
	case "status":
		return s.Strong
	case "err":
		return s.Warning
	}
	return s.Muted
}
