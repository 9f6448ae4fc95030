package triage

import (
	"strconv"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/sources/triage"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// triageRoomy is the width from which rows of the triage have all their columns.
const triageRoomy = 90

func (v *triageList) row(at widget.SectionRow, width int, plain bool, now time.Time) string {
	switch at.Part {
	case triageRetrying:
		return v.retryRow(v.arranged.Retrying[at.Row], width, plain, now)
	case triageGroups:
		return v.groupRow(v.groups[at.Row], width, plain)
	case triagePhases:
		return v.phaseRow(v.arranged.Phases[at.Row], width, plain)
	}
	return v.runRow(v.runsOf(at.Part)[at.Row], width, plain, now)
}

func (v *triageList) retryRow(r triage.Retrying, width int, plain bool, now time.Time) string {
	s := v.styles
	m := s.Retry()
	next := "now"
	if r.Next.After(now) {
		next = "in " + text.Span(r.Next.Sub(now))
	}
	cells := []widget.SizedCell{
		{m.Glyph + " #" + strconv.Itoa(int(r.Attempt)), 6, m.Ink},
		{text.Middle(console.NameOf(r.Run), 16, s.Glyphs.Ellipsis), 16, s.Text},
		{whereFailed(r.Phase, r.Activity), 13, s.Muted},
		{text.Span(now.Sub(r.Since)), -5, s.Muted},
	}
	if width >= triageRoomy {
		cells = append(cells, widget.SizedCell{next, -7, s.Muted})
	}
	cells = append(cells, widget.SizedCell{lastErrorOf(r.LastError), 0, s.Error})
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

// whereFailed is where something happened: the phase, or the activity where it is none.
func whereFailed(p ace.Phase, activity string) string {
	if p != "" && activity != triage.WorkflowTask {
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

func (v *triageList) groupRow(g triage.FailureGroup, width int, plain bool) string {
	s := v.styles
	m := s.Status(string(g.Kind))
	where := whereFailed(g.Phase, g.Activity)
	if g.Kind == ace.Wrong {
		where = text.Safe(g.Dataset, " ")
	}
	cells := []widget.SizedCell{
		{text.Count(int64(g.Count)), -6, s.Strong},
		{m.Glyph + " " + text.Safe(m.Word, " "), 11, m.Ink},
		{where, 11, s.Muted},
	}
	if width >= triageRoomy {
		cells = append(cells, widget.SizedCell{console.Percent(g.Share), -6, s.Muted}, widget.SizedCell{widget.Spark(g.Trend, 12, s.Glyphs), 12, s.Accent})
	}
	cells = append(cells, widget.SizedCell{text.Safe(g.Pattern, " "), 0, s.Text})
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

func (v *triageList) runRow(r runs.Run, width int, plain bool, now time.Time) string {
	s := v.styles
	m := s.Status(string(r.Exit))
	var u ace.Usage
	if r.Summary != nil {
		u = r.Summary.Usage
	}
	tokens := s.Glyphs.Dash
	if n := triage.Tokens(r); n > 0 {
		tokens = text.Count(n) + " tok"
	}
	cells := []widget.SizedCell{{console.NameOf(r), 0, s.Text}}
	if width >= triageRoomy {
		cells = append(cells, widget.SizedCell{text.Safe(r.Experiment, " "), 20, s.Muted})
	}
	cells = append(cells,
		widget.SizedCell{text.Took(r.Age(now)), -7, s.Text},
		widget.SizedCell{console.CostCell(u, s.Glyphs), -8, s.Text},
		widget.SizedCell{tokens, -11, s.Muted},
		widget.SizedCell{m.Glyph + " " + text.Safe(m.Word, " "), 11, m.Ink})
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis, cells...)
}

func (v *triageList) phaseRow(p triage.PhaseStat, width int, plain bool) string {
	s := v.styles
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{text.Safe(p.Phase, " "), 0, s.Text},
		widget.SizedCell{"p50 " + widget.TookMS(p.P50, s.Glyphs), -11, s.Text},
		widget.SizedCell{"p95 " + widget.TookMS(p.P95, s.Glyphs), -11, s.Text},
		widget.SizedCell{"max " + widget.TookMS(p.Max, s.Glyphs), -11, s.Muted},
		widget.SizedCell{widget.HowMany(p.Runs, "run"), -11, s.Muted})
}
