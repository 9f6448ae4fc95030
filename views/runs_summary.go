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

// recentLine tells at a glance what the last tasks cost and learnt.
func recentLine(r *sources.Recent, width int, s theme.Styles) string {
	g, l := s.Glyphs, text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	sep := " " + g.Dot + " "
	l.Add(s.Muted, " last "+text.Count(int64(r.Runs))+" ended: ")
	first := true
	for _, exit := range []ace.ExitStatus{ace.Success, ace.Wrong, ace.Failed, ace.Timeout, ace.Cancelled} {
		n := r.Counts[exit]
		if n == 0 && exit != ace.Success {
			continue
		}
		if !first {
			l.Add(s.Muted, ", ")
		}
		first = false
		word := string(exit)
		if exit == ace.Success {
			word = "right"
		}
		l.Add(s.Status(string(exit)).Ink, text.Count(int64(n))+" "+word)
	}
	l.Add(s.Muted, sep)
	l.Add(s.Added, g.Added+strconv.Itoa(r.Sum.Added)).Add(s.Updated, " "+g.Updated+strconv.Itoa(r.Sum.Updated))
	l.Add(s.Removed, " "+g.Removed+strconv.Itoa(r.Sum.Removed))
	l.Add(s.Muted, sep+dollars(r.Sum.Usage.CostUSD)+sep+"p50 "+text.Took(r.P50)+"  p95 "+text.Took(r.P95))
	return l.String(s.Text)
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
