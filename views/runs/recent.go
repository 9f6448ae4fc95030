package runs

import (
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// recentMinHeight is the minimum height of a list that shows a line about the last tasks.
const recentMinHeight = 14

// recentLine summarizes the results, changes and cost of the last tasks: in words if they fit, otherwise in
// glyphs.
func recentLine(r *runs.Recent, width int, s theme.Styles) string {
	inWords, inGlyphs := recentParts(r, s, true), recentParts(r, s, false)
	parts := inWords
	if w := 0; width < recentWidth {
		for _, p := range inWords {
			w += text.Width(p.Text)
		}
		if w > width {
			parts = inGlyphs
		}
	}
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	for _, p := range parts {
		l.Add(p.Ink, p.Text)
	}
	return l.String(s.Text)
}

// recentWidth is a width that every line of [recentLine] fits.
const recentWidth = 160

func recentParts(r *runs.Recent, s theme.Styles, words bool) []widget.Cell {
	g := s.Glyphs
	sep := " " + g.Dot + " "
	parts := []widget.Cell{{" last " + ace.Number(r.Runs) + ":", s.Muted}}
	add := func(m theme.Mark, n int) {
		if n == 0 {
			return
		}
		label := " " + m.Glyph + ace.Number(n)
		if words {
			if label = " " + ace.Number(n) + " " + m.Word; len(parts) > 1 {
				label = "," + label
			}
		}
		parts = append(parts, widget.Cell{label, m.Ink})
	}
	for _, word := range theme.Statuses() {
		add(s.Status(word), r.Status[ace.Status(word)])
	}
	for _, v := range ace.Verdicts() {
		add(s.Verdict(string(v)), r.Verdict[v])
	}
	return append(parts, widget.Cell{sep, s.Muted}, widget.Cell{g.Added + strconv.Itoa(r.Sum.Added), s.Added},
		widget.Cell{" " + g.Updated + strconv.Itoa(r.Sum.Updated), s.Updated},
		widget.Cell{" " + g.Removed + strconv.Itoa(r.Sum.Removed), s.Removed},
		widget.Cell{sep + r.Sum.Usage.Cost() + sep + "p50 " + widget.Milliseconds(r.P50MS, g) +
			"  p95 " + widget.Milliseconds(r.P95MS, g), s.Muted})
}

// RecentText returns the line about the last tasks without colors, in full width.
func RecentText(r *runs.Recent) string {
	line := recentLine(r, 200, theme.NoColor().Styles(theme.Unicode()))
	return strings.TrimSpace(text.Safe(line, " ")) // Safe removes bold and faint
}
