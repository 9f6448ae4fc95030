package runs

import (
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

func (v *Runs) Draw(now time.Time, focused bool) []string {
	if !v.panel.open() {
		return v.drawList(v.Width, v.Height, now, focused)
	}
	if !v.panelBeside() {
		return v.panel.draw(v.Width, v.Height, focused)
	}
	left := v.panel.draw(panelWidth, v.Height, focused)
	right := v.drawList(v.table.width, v.Height, now, false)
	side := v.Styles.Border.Paint(v.Styles.Glyphs.Plain.Side)
	for i := range left {
		left[i] += side + right[i]
	}
	return left
}

func (v *Runs) drawList(width, height int, now time.Time, focused bool) []string {
	lines := make([]string, 0, height)
	if v.sectionLines() > 0 {
		lines = append(lines, v.sections.draw(width, v.Styles))
	}
	lines = append(lines, v.problem()...)
	if v.Count() == 0 {
		lines = append(lines, widget.Centre(v.empty(), width, height-len(lines), v.Styles)...)
		return widget.Fill(lines, width, height)
	}
	lines = append(lines, v.heading)
	end := min(v.top+v.Page(), v.Count())
	for i := v.top; i < end; i++ {
		lines = append(lines, v.row(*v.At(i), i == v.Cursor, focused, now))
	}
	if v.summaryLines() > 0 {
		lines = append(widget.Fill(lines, width, height-1), recentLine(v.listing.Runs.Recent, width, v.Styles))
	}
	return widget.Fill(lines, width, height)
}

// empty explains why the list is empty.
func (v *Runs) empty() []string {
	switch {
	case !v.loaded && v.state == cluster.ConnLost:
		return []string{"no connection to the server", "no runs read yet"}
	case !v.loaded && v.state == cluster.ConnReady:
		return []string{"reading the list of runs" + v.Styles.Glyphs.Ellipsis}
	case !v.loaded:
		return []string{"starting the server" + v.Styles.Glyphs.Ellipsis}
	case v.listing.Runs.Err != "":
		return v.missing()
	case v.Sorting.retrying && len(v.listing.Runs.Rows) > 0:
		return []string{"no loaded run is retrying", v.orderState(), "R shows all again"}
	case v.listing.Runs.Query != "":
		query := text.Safe(v.listing.Runs.Query, " ")
		return append([]string{"no run matches", query, "/ changes the filter"}, v.missing()...)
	case len(v.listing.Runs.Missing) > 0:
		return append([]string{"no runs yet"}, v.missing()...)
	}
	if v.file {
		return []string{"reading the history" + v.Styles.Glyphs.Ellipsis}
	}
	return []string{"no runs yet", "start some:  acescope run --dataset FILE", "H is the overview"}
}

// missing names the search attributes that the server lacks, and the command that adds them.
func (v *Runs) missing() []string {
	missing := v.listing.Runs.Missing
	if len(missing) == 0 {
		return nil
	}
	say := []string{"", "the server lacks the search attributes " + strings.Join(missing, ", "), "add them:"}
	command := ace.SetupCommand(v.address, v.namespace)
	return append(say, text.Wrap(command, max(v.table.width-2, 1))...)
}

// problem shows why the list could not be read: the error, the query with a caret below the error, and whether the
// shown rows belong to the previous query.
func (v *Runs) problem() []string {
	if v.listing.Runs.Err == "" {
		return nil
	}
	s, width := v.Styles, v.table.width
	say := func(ink theme.Ink, t string) string {
		return ink.Paint(text.Fit(t, width, s.Glyphs.Ellipsis))
	}
	what := say(s.Error, " "+s.Glyphs.Failed+" "+text.Safe(v.listing.Runs.Err, " "))
	at := v.listing.Runs.ErrAt
	if at < 0 || at > len(v.listing.Runs.Query) {
		if v.listing.Runs.Loaded.IsZero() && len(v.listing.Runs.Rows) > 0 {
			return []string{what, say(s.Muted, "   the rows below belong to the previous query")}
		}
		return []string{what}
	}
	query, caret := around(v.listing.Runs.Query, at, width-5)
	return []string{say(s.Text, " / "+query), say(s.Error, " "+text.Spaces(caret+2)+"^"), what}
}

// around returns the part of a query around a byte, at most width cells, and the number of cells before that byte.
func around(query string, at, width int) (string, int) {
	before, after := text.Safe(query[:at], " "), text.Safe(query[at:], " ")
	if w := text.Width(before); w > width/2 && w+text.Width(after) > width {
		before = text.Last(before, width/2)
	}
	return text.Cut(before+after, width, ""), text.Width(before)
}
