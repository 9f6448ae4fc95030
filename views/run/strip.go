package run

import (
	"time"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// stripLine is the phases of a run in a line, each with its state, its attempts and,
// where there is room, how long it took.
func stripLine(d *histories.Detail, width int, now time.Time, s theme.Styles) string {
	if len(d.Phase.Steps) == 0 {
		l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
		where := console.OrDash(string(d.Phase.Phase), s.Glyphs)
		if p := d.Experiment; p != nil {
			where = howFar(p)
		}
		l.Add(s.Strong, " "+where)
		return l.String(s.Text)
	}
	for _, detail := range []stripDetail{stripTimes, stripNames, stripCurrent} {
		l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
		l.Add(s.Text, " ")
		full := addSteps(&l, d, detail, now, s)
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
func addSteps(l *text.Line, d *histories.Detail, detail stripDetail, now time.Time, s theme.Styles) bool {
	steps := d.Phase.Steps
	last := lastReached(steps)
	for i, st := range steps {
		m := stepMark(st.Status, s)
		retry := stepRetry(d, st, now, s.Glyphs)
		if retry != "" && st.Status == ace.StatusRunning {
			m.Ink = s.Retrying
		}
		label := m.Glyph
		if detail != stripCurrent || i == last {
			label += " " + text.Safe(string(st.Phase), " ")
		}
		if detail == stripTimes {
			label += stepTime(st, s.Glyphs)
		}
		if detail != stripCurrent || i == last {
			label += retry
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
	case ace.StatusCanceled:
		return s.Status(string(ace.Canceled))
	}
	return theme.Mark{Glyph: s.Glyphs.Pending, Word: status, Ink: s.Muted}
}

func stepTime(st ace.StepState, g theme.Glyphs) string {
	if st.Time == nil {
		return ""
	}
	return " " + widget.TookMS(st.Time.DurationMS, g)
}

// stepRetry is a step's attempts where there was more than one, and until when it waits for
// the next.
func stepRetry(d *histories.Detail, st ace.StepState, now time.Time, g theme.Glyphs) string {
	n := int32(0)
	if st.Time != nil {
		n = st.Time.Attempt
	}
	if a := activityOf(d, st.Phase); a != nil {
		n = max(n, a.Attempt)
	}
	wait := ""
	if p := pendingOf(d, st.Phase); p != nil {
		n = max(n, p.Attempt)
		if p.Next.After(now) {
			wait = " in " + text.Span(p.Next.Sub(now)+time.Second)
		}
	}
	if n < 2 {
		return ""
	}
	return " " + g.Retry + text.Count(int64(n)) + wait
}
