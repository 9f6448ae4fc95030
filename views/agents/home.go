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
	agents := console.Section{Name: "Coding agents on this machine", Rows: h.agentRows(now.Local()),
		Remark: "cost at list prices"}
	sessions := console.Section{Name: "Newest sessions", Remark: "0 lists all", Rows: h.newest()}
	if len(agents.Rows) == 0 {
		agents.Remark = "no transcripts"
	}
	if len(sessions.Rows) == 0 {
		sessions.Remark = "none"
	}
	agents.Remark = cmp.Or(console.Reading(h.data, g), agents.Remark)
	h.sections = []console.Section{agents, sessions}
	return h.sections
}

// SetShown reads sessions while the overview shows them.
func (h *Home) SetShown(shown bool) { h.look(shown) }

// Refresh takes the newest sessions.
func (h *Home) Refresh() { h.refresh() }

// agentRow is an agent with the cost of its transcripts.
type agentRow struct {
	agent              string
	sessions           int
	today, week, month transcripts.Cost
	daily              []float64 // of the last homeDays days, in dollars
}

// Empty reports whether no session is known.
func (h *Home) Empty() bool { return len(h.rows) == 0 }

// agentRows sums the transcripts by agent.
func (h *Home) agentRows(now time.Time) (rows []console.Row) {
	byAgent := map[string][]*transcripts.Session{}
	if h.data != nil {
		for _, s := range h.data.Sessions {
			byAgent[string(s.Agent)] = append(byAgent[string(s.Agent)], s)
		}
	}
	for _, agent := range agentNames {
		list := byAgent[agent]
		if len(list) == 0 {
			continue
		}
		rows = append(rows, &agentRow{agent: agent, sessions: len(list), daily: daily(list, now),
			today: transcripts.Current(list, transcripts.ByDay, now),
			week:  transcripts.Current(list, transcripts.ByWeek, now),
			month: transcripts.Current(list, transcripts.ByMonth, now)})
	}
	return rows
}

// daily returns the costs of the last homeDays days.
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

// Draw implements [console.Row].
func (r *agentRow) Draw(s theme.Styles, width int, plain bool, _ time.Time) string {
	g := s.Glyphs
	cells := []widget.SizedCell{
		{Text: r.agent, Width: 9, Ink: s.Text},
		{Text: ace.Count(r.sessions, "session"), Width: -12, Ink: s.Muted},
		{Text: "today " + console.CostCell(r.today.Usage(), g), Width: -14, Ink: s.Text},
		{Text: "this week " + console.CostCell(r.week.Usage(), g), Width: -18, Ink: s.Text},
		{Text: "this month " + console.CostCell(r.month.Usage(), g), Width: -19, Ink: s.Text},
	}
	if width >= 80+homeDays {
		cells = append(cells, widget.SizedCell{Text: " " + widget.Spark(r.daily, homeDays, g), Ink: s.Accent})
	}
	return widget.SizedCells(width, plain, g.Ellipsis, cells...)
}

// Open implements [console.Row].
func (r *agentRow) Open(s tui.Shell) tea.Cmd { s.Open("agents"); return nil }

// Copied implements [console.Row].
func (r *agentRow) Copied() (what, content string) { return "agent", r.agent }

// sessionRow is one of the newest sessions.
type sessionRow struct {
	home *Home
	sessions.Row
}

func (h *Home) newest() (rows []console.Row) {
	newest := slices.SortedStableFunc(slices.Values(h.rows), orders[0].less)
	for _, r := range newest[:min(len(newest), newestSessions)] {
		rows = append(rows, sessionRow{h, r})
	}
	return rows
}

// Draw implements [console.Row].
func (r sessionRow) Draw(s theme.Styles, width int, plain bool, now time.Time) string {
	g := s.Glyphs
	state := stateMark(r.Row, now, s)
	return widget.SizedCells(width, plain, g.Ellipsis,
		widget.SizedCell{Text: state.Glyph + " " + state.Word, Width: 12, Ink: state.Ink},
		widget.SizedCell{Text: text.Safe(sessionName(r.Row), " "), Ink: s.Text},
		widget.SizedCell{Text: console.OrDash(filepath.Base(r.Dir), g), Width: 12, Ink: s.Muted},
		widget.SizedCell{Text: string(r.Agent), Width: 8, Ink: s.Muted},
		widget.SizedCell{Text: text.Span(now.Sub(r.Last)), Width: -5, Ink: s.Muted},
		widget.SizedCell{Text: console.CostCell(r.Totals.Usage(), g), Width: -8, Ink: s.Text})
}

// Open implements [console.Row].
func (r sessionRow) Open(s tui.Shell) tea.Cmd {
	r.home.Cursor = r.Key
	r.home.read(r.Key)
	s.Open("conversation")
	return nil
}

// Copied implements [console.Row].
func (r sessionRow) Copied() (what, content string) { return "session id", r.ID }
