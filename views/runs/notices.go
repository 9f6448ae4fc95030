package runs

import (
	"strings"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/views/console"
)

// notices explain why the list is empty or not up to date.
type notices struct {
	pane    *console.Pane // its styles
	listing *console.Listing
	table   *table

	loaded    bool // the list was read at least once
	state     cluster.ConnState
	file      bool // the runs come from files
	address   string
	namespace string
}

// take follows the connection and the list.
func (n *notices) take(c cluster.Connection) {
	n.state, n.address, n.namespace = c.State, c.Address, c.Namespace
	n.file = c.Mode == cluster.ModeFile
	n.loaded = n.loaded || !n.listing.Runs.Loaded.IsZero() || len(n.listing.Runs.Rows) > 0
}

// empty explains why the list is empty.
func (n *notices) empty() []string {
	switch {
	case !n.loaded && n.state == cluster.ConnLost:
		return []string{"no connection to the server", "no runs read yet"}
	case !n.loaded && n.state == cluster.ConnReady:
		return []string{"reading the list of runs" + n.pane.Styles.Glyphs.Ellipsis}
	case !n.loaded:
		return []string{"starting the server" + n.pane.Styles.Glyphs.Ellipsis}
	case n.listing.Runs.Err != "":
		return n.missing()
	case n.table.Sorting.retrying && len(n.listing.Runs.Rows) > 0:
		return []string{"no loaded run is retrying", n.table.orderState(), "R shows all again"}
	case n.listing.Runs.Query == runs.OwnQuery:
		return []string{"no run was started by " + text.Safe(ace.User(), " "),
			"/by:NAME lists the runs of another user",
			"n starts an experiment or a task"}
	case n.listing.Runs.Query == runs.SpentQuery:
		return []string{"no run has a cost or tokens yet", "] lists the next section"}
	case n.listing.Runs.Query != "":
		query := text.Safe(n.listing.Runs.Query, " ")
		return append([]string{"no run matches", query, "/ changes the filter, esc clears it"}, n.missing()...)
	case len(n.listing.Runs.Missing) > 0:
		return append([]string{"no runs yet"}, n.missing()...)
	}
	if n.file {
		return []string{"reading the history" + n.pane.Styles.Glyphs.Ellipsis}
	}
	return []string{"no runs yet", "n starts an experiment or a task"}
}

// missing names the search attributes that the server lacks, and the command that adds them.
func (n *notices) missing() []string {
	missing := n.listing.Runs.Missing
	if len(missing) == 0 {
		return nil
	}
	lines := []string{"", "the server lacks the search attributes " + strings.Join(missing, ", "),
		"add them:"}
	command := ace.SetupCommand(n.address, n.namespace)
	return append(lines, text.Wrap(command, max(n.table.width-2, 1))...)
}

// problem shows why the list could not be read: the error, the query with a caret below the error, and
// whether the shown rows belong to the previous query.
func (n *notices) problem() []string {
	if n.listing.Runs.Err == "" {
		return nil
	}
	s, width := n.pane.Styles, n.table.width
	draw := func(ink theme.Ink, t string) string {
		return ink.Paint(text.Fit(t, width, s.Glyphs.Ellipsis))
	}
	what := draw(s.Error, " "+s.Glyphs.Failed+" "+text.Safe(n.listing.Runs.Err, " "))
	at := n.listing.Runs.ErrAt
	if at < 0 || at > len(n.listing.Runs.Query) {
		if n.listing.Runs.Loaded.IsZero() && len(n.listing.Runs.Rows) > 0 {
			return []string{what, draw(s.Muted, "   the rows below belong to the previous query")}
		}
		return []string{what}
	}
	query, caret := around(n.listing.Runs.Query, at, width-5)
	return []string{draw(s.Text, " / "+query), draw(s.Error, " "+text.Spaces(caret+2)+"^"), what}
}

// around returns the part of a query around a byte, at most width cells, and the number of cells before that
// byte.
func around(query string, at, width int) (string, int) {
	before, after := text.Safe(query[:at], " "), text.Safe(query[at:], " ")
	if w := text.Width(before); w > width/2 && w+text.Width(after) > width {
		before = text.Last(before, width/2)
	}
	return text.Cut(before+after, width, ""), text.Width(before)
}
