package runs

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
)

// agentDrop is the order in which a narrow list drops the columns about agents: before the answers go the
// times, the model and the number of calls; agent, tokens and cost stay longest, because no other column says
// who worked and what that took.
var agentDrop = map[string]int{columnAgent: 1, columnTokens: 1, columnCost: 1, columnModel: 7, columnCalls: 6}

// agentColumns show the agents of runs of other workflow types.
func agentColumns() []Column {
	return []Column{
		named((*runs.Run).Agents, Column{ID: columnAgent, Title: "AGENT", Width: 12, drop: 11, traced: true,
			ink: plainInk}),
		named((*runs.Run).Models, Column{ID: columnModel, Title: "MODEL", Width: 12, drop: 11}),
	}
}

// named makes a column of the first of several names, with the number of the others.
func named(of func(*runs.Run) []string, c Column) Column {
	first := func(r runs.Run) string {
		names := of(&r)
		switch len(names) {
		case 0:
			return ""
		case 1:
			return names[0]
		}
		return names[0] + others + strconv.Itoa(len(names)-1)
	}
	return texts(first, c)
}

// others precedes the number of names that are not shown.
const others = " +"

// namesIn shortens the name in the text of a column of names, so that the number of the others stays.
func namesIn(width int, names string, s theme.Styles) string {
	at := strings.LastIndex(names, others)
	if at < 0 || text.Width(names) <= width {
		return names
	}
	return text.Cut(names[:at], max(width-text.Width(names[at:]), 1), s.Glyphs.Ellipsis) + names[at:]
}

// figures makes a column of a sum: with a plus sign if it lacks something, and [ace.UnknownCost] if nothing of it
// is recorded.
func figures(of func(*runs.Run) runs.Figure, c Column) Column {
	c.Cell = func(r runs.Run, _ time.Time, s theme.Styles) string {
		f := of(&r)
		switch {
		case !f.Known && f.Partial:
			return ace.UnknownCost
		case !f.Known:
			return s.Glyphs.Dash
		}
		return ace.Number(f.N) + widget.If(f.Partial, "+", "")
	}
	c.right, c.Order = true, most(func(r *runs.Run) float64 {
		f := of(r)
		return widget.If(f.Known, float64(f.N), -1)
	})
	return c
}

// traced reports whether a run of the list has a trace.
func traced(rows []runs.Run) bool {
	return slices.ContainsFunc(rows, func(r runs.Run) bool { return r.Trace != nil })
}

// reading says how far the reading of histories has come, "" if it takes no time.
func (v *Runs) reading() string {
	p := v.listing.Runs.Traces
	of := slices.ContainsFunc([]string{columnAgent, columnModel, columnCalls, columnTokens, columnCost},
		func(id string) bool { return id == v.Sorting.By })
	switch {
	case p.Total > 0:
		return "reading " + ace.Number(p.Done) + " of " + ace.Count(p.Total, "history")
	case p.Bounded && (of || v.listing.Runs.Searched > 0):
		return "histories of older runs are not read"
	}
	return ""
}

// show names the runs on the screen, whose histories are read first.
func (v *Runs) show() {
	var ids []string
	if v.shown {
		for i := v.Top; i < min(v.Top+v.Page(), v.Count()); i++ {
			ids = append(ids, v.At(i).RunID)
		}
	}
	v.feeds.List.Show(ids)
}
