package views

import (
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/tui/text"
)

// triageRoomy is the width from which rows of the triage have all their columns.
const triageRoomy = 90

func (v *triage) row(at sectionRow, width int, plain bool, now time.Time) string {
	switch at.part {
	case triageRetrying:
		return v.retryRow(v.arranged.Retrying[at.row], width, plain, now)
	case triageGroups:
		return v.groupRow(v.groups[at.row], width, plain)
	case triagePhases:
		return v.phaseRow(v.arranged.Phases[at.row], width, plain)
	}
	return v.runRow(v.runsOf(at.part)[at.row], width, plain, now)
}

func (v *triage) retryRow(r sources.Retrying, width int, plain bool, now time.Time) string {
	s := v.styles
	m := s.Retry()
	next := "now"
	if r.Next.After(now) {
		next = "in " + text.Span(r.Next.Sub(now))
	}
	cells := []sizedCell{
		{m.Glyph + " #" + strconv.Itoa(int(r.Attempt)), 6, m.Ink},
		{text.Middle(nameOf(r.Run), 16, s.Glyphs.Ellipsis), 16, s.Text},
		{whereFailed(r.Phase, r.Activity), 13, s.Muted},
		{text.Span(now.Sub(r.Since)), -5, s.Muted},
	}
	if width >= triageRoomy {
		cells = append(cells, sizedCell{next, -7, s.Muted})
	}
	cells = append(cells, sizedCell{lastErrorOf(r.LastError), 0, s.Error})
	return sizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

// whereFailed is where something happened: the phase, or the activity where it is none.
func whereFailed(p ace.Phase, activity string) string {
	if p != "" && activity != sources.WorkflowTask {
		return text.Safe(string(p), " ")
	}
	return text.Safe(activity, " ")
}

func lastErrorOf(f ace.Failure) string {
	if f.Message == "" {
		return "no error is known"
	}
	return text.Safe(f.Message, " ")
}

func (v *triage) groupRow(g sources.FailureGroup, width int, plain bool) string {
	s := v.styles
	m := s.Status(string(g.Kind))
	where := whereFailed(g.Phase, g.Activity)
	if g.Kind == ace.Wrong {
		where = text.Safe(g.Dataset, " ")
	}
	cells := []sizedCell{
		{text.Count(int64(g.Count)), -6, s.Strong},
		{m.Glyph + " " + text.Safe(m.Word, " "), 11, m.Ink},
		{where, 11, s.Muted},
	}
	if width >= triageRoomy {
		cells = append(cells, sizedCell{percent(g.Share), -6, s.Muted}, sizedCell{spark(g.Trend, 12, s.Glyphs), 12, s.Accent})
	}
	cells = append(cells, sizedCell{text.Safe(g.Pattern, " "), 0, s.Text})
	return sizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

func (v *triage) runRow(r sources.Run, width int, plain bool, now time.Time) string {
	s := v.styles
	m := s.Status(string(r.Exit))
	var u ace.Usage
	if r.Summary != nil {
		u = r.Summary.Usage
	}
	tokens := s.Glyphs.Dash
	if n := sources.Tokens(r); n > 0 {
		tokens = text.Count(n) + " tok"
	}
	cells := []sizedCell{{nameOf(r), 0, s.Text}}
	if width >= triageRoomy {
		cells = append(cells, sizedCell{text.Safe(r.Experiment, " "), 20, s.Muted})
	}
	cells = append(cells,
		sizedCell{text.Took(r.Age(now)), -7, s.Text},
		sizedCell{costCell(u, s.Glyphs), -8, s.Text},
		sizedCell{tokens, -11, s.Muted},
		sizedCell{m.Glyph + " " + text.Safe(m.Word, " "), 11, m.Ink})
	return sizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

func (v *triage) phaseRow(p sources.PhaseStat, width int, plain bool) string {
	s := v.styles
	return sizedCells(width, plain, s.Glyphs.Ellipsis,
		sizedCell{text.Safe(p.Phase, " "), 0, s.Text},
		sizedCell{"p50 " + tookMS(p.P50, s.Glyphs), -11, s.Text},
		sizedCell{"p95 " + tookMS(p.P95, s.Glyphs), -11, s.Text},
		sizedCell{"max " + tookMS(p.Max, s.Glyphs), -11, s.Muted},
		sizedCell{howMany(p.Runs, "run"), -11, s.Muted})
}
