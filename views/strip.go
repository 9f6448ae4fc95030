package views

import (
	"time"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// strip is the phases of a run in a line, each with its state and, where there is
// room, how long it took.
func (v *run) strip(d *sources.Detail) string {
	s := v.styles
	if len(d.Phase.Steps) == 0 {
		l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
		where := orDash(string(d.Phase.Phase), s.Glyphs)
		if p := d.Experiment; p != nil {
			where = howFar(p)
		}
		l.Add(s.Strong, " "+where)
		return l.String(s.Text)
	}
	for _, detail := range []stripDetail{stripTimes, stripNames, stripCurrent} {
		l := text.Line{Max: v.width, Tail: s.Glyphs.Ellipsis}
		l.Add(s.Text, " ")
		full := addSteps(&l, d.Phase.Steps, detail, s)
		if full || detail == stripCurrent {
			return l.String(s.Text)
		}
	}
	return ""
}

type stripDetail int

const (
	stripTimes stripDetail = iota
	stripNames
	stripCurrent // only the step that runs or ran last is named
)

// addSteps tells whether all of it fitted.
func addSteps(l *text.Line, steps []ace.StepState, detail stripDetail, s theme.Styles) bool {
	last := lastReached(steps)
	for i, st := range steps {
		m := stepMark(st.Status, s)
		label := m.Glyph
		if detail != stripCurrent || i == last {
			label += " " + text.Safe(string(st.Phase), " ")
		}
		if detail == stripTimes {
			label += stepTime(st, s.Glyphs)
		}
		link := ""
		if i+1 < len(steps) {
			link = " " + s.Glyphs.LinkTodo + " "
			if st.Status == ace.StatusDone {
				link = " " + s.Glyphs.Link + " "
			}
		}
		if text.Width(label)+text.Width(link) > l.Room() {
			return false
		}
		l.Add(m.Ink, label).Add(s.Border, link)
	}
	return true
}

func lastReached(steps []ace.StepState) int {
	last := 0
	for i, st := range steps {
		if st.Status != ace.StatusPending {
			last = i
		}
	}
	return last
}

func stepMark(status string, s theme.Styles) theme.Mark {
	switch status {
	case ace.StatusDone:
		return theme.Mark{Glyph: s.Glyphs.Success, Word: status, Ink: s.Success}
	case ace.StatusRunning:
		return theme.Mark{Glyph: s.Glyphs.Running, Word: status, Ink: s.Running}
	case ace.StatusFailed:
		return s.Status(string(ace.Failed))
	case ace.StatusCancelled:
		return s.Status(string(ace.Cancelled))
	}
	return theme.Mark{Glyph: s.Glyphs.Pending, Word: status, Ink: s.Muted}
}

func stepTime(st ace.StepState, g theme.Glyphs) string {
	if st.Time == nil {
		return ""
	}
	t := " " + text.Took(time.Duration(st.Time.DurationMS*float64(time.Millisecond)))
	if st.Time.Attempt > 1 {
		t += " " + g.Retry + text.Count(int64(st.Time.Attempt))
	}
	return t
}
