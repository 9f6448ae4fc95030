package views

import (
	"time"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// column is one column of the runs table. Width 0 takes what the others leave. Columns
// are given up in the order of drop, highest first, where a pane is narrow.
type column struct {
	title string
	width int
	right bool
	drop  int
	cell  func(r sources.Run, now time.Time, s theme.Styles) string
	ink   func(r sources.Run, s theme.Styles) theme.Ink
}

// nameWidth is what a task's name gets before another column is let in.
const nameWidth = 16

func plainInk(_ sources.Run, s theme.Styles) theme.Ink { return s.Text }
func mutedInk(_ sources.Run, s theme.Styles) theme.Ink { return s.Muted }

func columns(g theme.Glyphs) []column {
	return []column{
		{"TASK", 0, false, 0, func(r sources.Run, _ time.Time, _ theme.Styles) string { return nameOf(r) }, plainInk},
		{"EXPERIMENT", 16, false, 7, func(r sources.Run, _ time.Time, s theme.Styles) string { return orDash(r.Experiment, s.Glyphs) }, mutedInk},
		{"MODEL", 12, false, 8, func(r sources.Run, _ time.Time, s theme.Styles) string { return orDash(r.Model, s.Glyphs) }, mutedInk},
		{"PHASE", 9, false, 2, func(r sources.Run, _ time.Time, s theme.Styles) string { return orDash(string(r.Phase), s.Glyphs) }, plainInk},
		{"SKILLS", 6, true, 5, func(r sources.Run, _ time.Time, s theme.Styles) string { return skillsCell(r.Summary, s.Glyphs) }, plainInk},
		{g.Delta, 8, false, 4, func(r sources.Run, _ time.Time, s theme.Styles) string { return deltaCell(r.Summary, s.Glyphs) }, plainInk},
		{"COST", 7, true, 6, costOf, mutedInk},
		{"TOOK", 6, true, 9, func(r sources.Run, now time.Time, s theme.Styles) string { return tookOf(r, now) }, mutedInk},
		{"AGE", 5, true, 3, func(r sources.Run, now time.Time, _ theme.Styles) string { return text.Span(now.Sub(r.Start)) }, mutedInk},
		{"STATUS", 12, false, 1, statusOf, func(r sources.Run, s theme.Styles) theme.Ink { return markOf(r, s).Ink }},
	}
}

func costOf(r sources.Run, _ time.Time, s theme.Styles) string {
	if r.Summary == nil {
		return s.Glyphs.Dash
	}
	return costCell(r.Summary.Usage, s.Glyphs)
}

// tookOf is how long a run took; in whole seconds while it is open.
func tookOf(r sources.Run, now time.Time) string {
	if age := r.Age(now); r.Open() && age < time.Minute {
		return text.Span(age)
	}
	return text.Took(r.Age(now))
}

func statusOf(r sources.Run, _ time.Time, s theme.Styles) string {
	m := markOf(r, s)
	return m.Glyph + " " + m.Word
}

// pointerWidth is the room for the mark of the selected row.
const pointerWidth = 2

// fitting is the columns that fit a width, with the first one's width worked out.
func fitting(all []column, width int) []column {
	cols := append([]column{}, all...)
	for {
		rest := width - pointerWidth - (len(cols) - 1)
		drop := 0
		for i, c := range cols {
			rest -= c.width
			if c.drop > cols[drop].drop {
				drop = i
			}
		}
		if rest >= nameWidth || len(cols) == 1 {
			cols[0].width = max(rest, 1)
			return cols
		}
		cols = append(cols[:drop], cols[drop+1:]...)
	}
}

func (c column) fit(s string, tail string) string {
	if c.right {
		return text.FitLeft(s, c.width, tail)
	}
	return text.Fit(s, c.width, tail)
}
