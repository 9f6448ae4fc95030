package agents

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

const (
	newestSessions = 5  // on the overview
	homeDays       = 31 // of the cost by day on the overview
)

// Home is the part of the overview for users without runs: the agents on this machine with their cost, and
// the newest sessions.
type Home struct {
	*Agents
	version  int    // of the sessions in the sections
	day      string // of the costs in the sections
	sections []console.Section
}

// Sections returns the sections as of a time. They are made again if sessions or the day have changed.
func (h *Home) Sections(now time.Time, g theme.Glyphs) []console.Section {
	day := transcripts.Today(now)
	if h.sections != nil && h.version == h.Agents.version && h.day == day {
		return h.sections
	}
	h.version, h.day = h.Agents.version, day
	agents, sessions := h.agentRows(now.Local()), h.newest()
	remark := widget.If(len(agents) == 0, "no transcripts", "cost at list prices")
	h.sections = []console.Section{
		{Name: "Coding agents on this machine", Rows: agents,
			Remark: cmp.Or(console.Reading(h.data, g), remark)},
		{Name: "Newest sessions", Remark: widget.If(len(sessions) == 0, "none", "0 lists all"),
			Rows: sessions},
	}
	return h.sections
}

func (h *Home) SetShown(shown bool) { h.look(shown) }
func (h *Home) Refresh()            { h.refresh() }
func (h *Home) Empty() bool         { return len(h.rows) == 0 }

// Answer shows a tool call that waits, then allows or denies it.
func (h *Home) Answer(s tui.Shell, call sessions.Approval) tea.Cmd { return h.answer(s, &call) }

// agentRows lists the agents with the cost of their transcripts.
func (h *Home) agentRows(now time.Time) (rows []console.Row) {
	byAgent := map[string][]*transcripts.Session{}
	if h.data != nil {
		for _, s := range h.data.Sessions {
			byAgent[string(s.Agent)] = append(byAgent[string(s.Agent)], s)
		}
	}
	for _, agent := range ace.Agents() {
		if list := byAgent[agent]; len(list) > 0 {
			rows = append(rows, console.Row{What: "agent", Content: agent, Open: console.Opens("agents"),
				Cells: agentCells(agent, list, now)})
		}
	}
	return rows
}

func agentCells(agent string, list []*transcripts.Session, now time.Time) console.Cells {
	today := transcripts.Current(list, transcripts.ByDay, now).Usage()
	week := transcripts.Current(list, transcripts.ByWeek, now).Usage()
	month := transcripts.Current(list, transcripts.ByMonth, now).Usage()
	days := daily(list, now)
	return func(s theme.Styles, width int, _ time.Time) []widget.SizedCell {
		g := s.Glyphs
		cells := []widget.SizedCell{{agent, 9, s.Text}, {ace.Count(len(list), "session"), -12, s.Muted},
			{"today " + console.CostCell(today, g), -14, s.Text},
			{"this week " + console.CostCell(week, g), -18, s.Text},
			{"this month " + console.CostCell(month, g), -19, s.Text}}
		if width >= 80+homeDays {
			cells = append(cells, widget.SizedCell{" " + widget.Spark(days, homeDays, g), 0, s.Accent})
		}
		return cells
	}
}

// daily returns the costs of the last homeDays days, in dollars.
func daily(list []*transcripts.Session, now time.Time) []float64 {
	first := now.AddDate(0, 0, 1-homeDays)
	days, _ := transcripts.Costs(list, transcripts.ByDay,
		transcripts.CostQuery{Since: transcripts.Today(first)})
	byDay := map[string]float64{}
	for _, d := range days {
		byDay[d.Key] = d.CostUSD
	}
	costs := make([]float64, homeDays)
	for i := range costs {
		costs[i] = byDay[transcripts.Today(first.AddDate(0, 0, i))]
	}
	return costs
}

func (h *Home) newest() (rows []console.Row) {
	newest := slices.SortedStableFunc(slices.Values(h.rows), orders[0].less)
	for _, r := range newest[:min(len(newest), newestSessions)] {
		rows = append(rows, console.Row{What: "session id", Content: r.ID,
			Open: func(s tui.Shell) tea.Cmd {
				h.Cursor = r.Key
				h.read(r.Key)
				s.Open("conversation")
				return nil
			},
			Cells: func(s theme.Styles, _ int, now time.Time) []widget.SizedCell {
				state, g := stateMark(r, now, s), s.Glyphs
				return []widget.SizedCell{{state.Glyph + " " + state.Word, 12, state.Ink},
					{text.Safe(sessionName(r), " "), 0, s.Text},
					{console.OrDash(filepath.Base(r.Dir), g), 12, s.Muted}, {string(r.Agent), 8, s.Muted},
					{text.Span(now.Sub(r.Last)), -5, s.Muted},
					{console.CostCell(r.Totals.Usage(), g), -8, s.Text}}
			}})
	}
	return rows
}
