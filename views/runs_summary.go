package views

import (
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// summaryFrom is the height of a list that has room for a line about its last tasks.
const summaryFrom = 14

// recentLine tells at a glance what the last tasks cost and learnt: in words where there
// is room, else in glyphs.
func recentLine(r *sources.Recent, width int, s theme.Styles) string {
	inWords, inGlyphs := recentParts(r, s, true), recentParts(r, s, false)
	parts := inWords
	if w := 0; width < recentWidth {
		for _, p := range inWords {
			w += text.Width(p.text)
		}
		if w > width {
			parts = inGlyphs
		}
	}
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	for _, p := range parts {
		l.Add(p.ink, p.text)
	}
	return l.String(s.Text)
}

// recentWidth is wider than the line ever is.
const recentWidth = 160

func recentParts(r *sources.Recent, s theme.Styles, words bool) []cell {
	g := s.Glyphs
	sep := " " + g.Dot + " "
	parts := []cell{{" last " + text.Count(int64(r.Runs)) + " ended:", s.Muted}}
	for _, exit := range []ace.ExitStatus{ace.Success, ace.Wrong, ace.Failed, ace.Timeout, ace.Cancelled} {
		n := r.Counts[exit]
		if n == 0 && exit != ace.Success {
			continue
		}
		m := s.Status(string(exit))
		label := " " + m.Glyph + text.Count(int64(n))
		if words {
			if exit == ace.Success {
				m.Word = "right"
			}
			if label = " " + text.Count(int64(n)) + " " + m.Word; len(parts) > 1 {
				label = "," + label
			}
		}
		parts = append(parts, cell{label, m.Ink})
	}
	return append(parts, cell{sep, s.Muted}, cell{g.Added + strconv.Itoa(r.Sum.Added), s.Added},
		cell{" " + g.Updated + strconv.Itoa(r.Sum.Updated), s.Updated}, cell{" " + g.Removed + strconv.Itoa(r.Sum.Removed), s.Removed},
		cell{sep + dollars(r.Sum.Usage.CostUSD) + sep + "p50 " + text.Took(r.P50) + "  p95 " + text.Took(r.P95), s.Muted})
}

// dollars is a sum of money to the cent, and closer where it is less than one.
func dollars(usd float64) string {
	switch {
	case usd == 0:
		return "$0"
	case usd < 0.01:
		return "$" + strconv.FormatFloat(usd, 'g', 2, 64)
	}
	return "$" + strconv.FormatFloat(usd, 'f', 2, 64)
}

// RecentText is the same line without colours, as wide as it takes.
func RecentText(r *sources.Recent) string {
	line := recentLine(r, 200, theme.NoColor().Styles(theme.Unicode()))
	return strings.TrimSpace(text.Safe(line, " ")) // which takes bold and faint out

}
