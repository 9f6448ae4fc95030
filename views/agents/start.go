package agents

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

const (
	newestSessions = 5  // on the start screen
	startDays      = 31 // of the cost by day on the start screen
)

// start is the screen for users without runs: the agents on this machine with their cost, the newest
// sessions, and what to do next.
type start struct {
	*Agents
	console.Pane
	listing *console.Listing
	list    widget.SectionList
	rows    [][]startRow // by section
	version int          // of the sessions in rows
	day     string       // of the costs in rows
}

// startRow is a row of the start screen.
type startRow interface {
	draw(v *start, width int, plain bool, now time.Time) string
	open(v *start, s tui.Shell)
	copied() (what, content string)
}

func newStart(a *Agents, listing *console.Listing) *start {
	return &start{Agents: a, Pane: console.NewPane("Start"), listing: listing, version: -1}
}

func (v *start) Bindings() []tui.Binding {
	all := append(widget.Motions("start", &v.list),
		console.Key("start.open", "open the row; a command of acescope is copied", "open", v.open, "enter"),
		console.Key("start.next_section", "next section", "section", func() { v.list.Jump(1) }, "]"),
		console.Key("start.previous_section", "previous section", "", func() { v.list.Jump(-1) }, "["))
	if v.actor.Actions != nil {
		all = append(all, console.MutatingKey("start.session", "start a session on the engine", "session",
			v.askStart, "+"),
			console.MutatingKey("start.demo", "start an experiment that learns, to watch it (asks first)", "demo",
				v.askDemo, "d"))
	}
	return all
}

func (v *start) SetShown(shown bool) { v.look(shown) }
func (v *start) Refresh()            { v.refresh() }

// Copy returns the ID of the session, or the command, under the cursor.
func (v *start) Copy() (what, content string) {
	if r := v.selected(); r != nil {
		return r.copied()
	}
	return "", ""
}

func (v *start) open(s tui.Shell) {
	if r := v.selected(); r != nil {
		r.open(v, s)
	}
}

func (v *start) selected() startRow { return widget.SelectedRow(&v.list, v.rows) }

func (v *start) askDemo(s tui.Shell) {
	lines := []string{
		"120 generated finance problems for the built-in learner",
		"needs no language model, no API key and no network",
		"takes about five minutes and stays in the list of runs",
	}
	s.Confirm(tui.Question{Title: "Start the demo?", Lines: lines, Yes: "start the demo", Do: func() tea.Cmd {
		s.Open("runs")
		return v.actor.Act("start the demo", func(ctx context.Context) (string, error) {
			return "the demo has started; 5 shows its learning curve", v.actor.Actions.StartDemo(ctx)
		})
	}})
}

// arrange makes the rows again if sessions or the day have changed.
func (v *start) arrange(now time.Time) {
	day := transcripts.Today(now)
	if v.version == v.Agents.version && v.day == day {
		return
	}
	v.version, v.day = v.Agents.version, day
	v.rows = [][]startRow{v.agentRows(now.Local()), v.newest(), steps}
	sessions := "none"
	if len(v.rows[1]) > 0 {
		sessions = "0 lists all"
	}
	v.list.Set([]widget.SectionPart{
		{Name: "Coding agents on this machine", Remark: v.remark(), Rows: len(v.rows[0])},
		{Name: "Newest sessions", Remark: sessions, Rows: len(v.rows[1])},
		{Name: "Next steps", Rows: len(v.rows[2])},
	})
}

// remark says what the costs are, or how far the transcripts are read.
func (v *start) remark() string {
	return cmp.Or(console.Reading(v.data, v.Styles.Glyphs), "cost at list prices")
}

// agentRow is an agent with the cost of its transcripts.
type agentRow struct {
	agent              string
	sessions           int
	today, week, month transcripts.Cost
	daily              []float64 // of the last startDays days, in dollars
}

// agentRows sums the transcripts by agent.
func (v *start) agentRows(now time.Time) (rows []startRow) {
	byAgent := map[string][]*transcripts.Session{}
	if v.data != nil {
		for _, s := range v.data.Sessions {
			byAgent[string(s.Agent)] = append(byAgent[string(s.Agent)], s)
		}
	}
	for _, agent := range agentNames {
		list := byAgent[agent]
		rows = append(rows, &agentRow{agent: agent, sessions: len(list), daily: daily(list, now),
			today: transcripts.Current(list, transcripts.ByDay, now),
			week:  transcripts.Current(list, transcripts.ByWeek, now),
			month: transcripts.Current(list, transcripts.ByMonth, now)})
	}
	return rows
}

// daily returns the costs of the last startDays days.
func daily(list []*transcripts.Session, now time.Time) []float64 {
	first := now.AddDate(0, 0, 1-startDays)
	days, _ := transcripts.Costs(list, transcripts.ByDay, transcripts.CostQuery{Since: transcripts.Today(first)})
	byDay := map[string]float64{}
	for _, d := range days {
		byDay[d.Key] = d.CostUSD
	}
	costs := make([]float64, startDays)
	for i := range costs {
		costs[i] = byDay[transcripts.Today(first.AddDate(0, 0, i))]
	}
	return costs
}

func (r *agentRow) draw(v *start, width int, plain bool, _ time.Time) string {
	s, g := v.Styles, v.Styles.Glyphs
	if r.sessions == 0 {
		none := "no transcripts"
		if console.Reading(v.data, g) != "" {
			none = g.Ellipsis
		}
		return widget.SizedCells(width, plain, g.Ellipsis,
			widget.SizedCell{Text: r.agent, Width: 9, Ink: s.Muted},
			widget.SizedCell{Text: none, Ink: s.Muted})
	}
	cells := []widget.SizedCell{
		{Text: r.agent, Width: 9, Ink: s.Text},
		{Text: widget.Counted(r.sessions, "session"), Width: -12, Ink: s.Muted},
		{Text: "today " + console.CostCell(r.today.Usage(), g), Width: -14, Ink: s.Text},
		{Text: "this week " + console.CostCell(r.week.Usage(), g), Width: -18, Ink: s.Text},
		{Text: "this month " + console.CostCell(r.month.Usage(), g), Width: -19, Ink: s.Text},
	}
	if width >= 80+startDays {
		cells = append(cells, widget.SizedCell{Text: " " + widget.Spark(r.daily, startDays, g), Ink: s.Accent})
	}
	return widget.SizedCells(width, plain, g.Ellipsis, cells...)
}

func (r *agentRow) open(_ *start, s tui.Shell)     { s.Open("agents") }
func (r *agentRow) copied() (what, content string) { return "agent", r.agent }

// sessionRow is one of the newest sessions.
type sessionRow struct{ sessions.Row }

func (v *start) newest() (rows []startRow) {
	newest := slices.SortedStableFunc(slices.Values(v.Agents.rows), orders[0].less)
	for _, r := range newest[:min(len(newest), newestSessions)] {
		rows = append(rows, sessionRow{r})
	}
	return rows
}

func (r sessionRow) draw(v *start, width int, plain bool, now time.Time) string {
	s, g := v.Styles, v.Styles.Glyphs
	state := stateMark(r.Row, now, s)
	return widget.SizedCells(width, plain, g.Ellipsis,
		widget.SizedCell{Text: state.Glyph + " " + state.Word, Width: 12, Ink: state.Ink},
		widget.SizedCell{Text: text.Safe(sessionName(r.Row), " "), Ink: s.Text},
		widget.SizedCell{Text: console.OrDash(filepath.Base(r.Dir), g), Width: 12, Ink: s.Muted},
		widget.SizedCell{Text: string(r.Agent), Width: 8, Ink: s.Muted},
		widget.SizedCell{Text: text.Span(now.Sub(r.Last)), Width: -5, Ink: s.Muted},
		widget.SizedCell{Text: console.CostCell(r.Totals.Usage(), g), Width: -8, Ink: s.Text})
}

func (r sessionRow) open(v *start, s tui.Shell) {
	v.Cursor = r.Key
	v.read(r.Key)
	s.Open("conversation")
}

func (r sessionRow) copied() (what, content string) { return "session id", r.ID }

// step is something to do next: a key, of a screen or of this one, or a command for the shell.
type step struct{ key, screen, command, does string }

var steps = []startRow{
	step{key: "d", does: "demo: watch a program learn; needs no API key"},
	step{key: "0", screen: "agents", does: "sessions: conversations and tool calls"},
	step{key: "$", screen: "cost", does: "cost by day, month, model or project"},
	step{command: "acescope observe install", does: "make each new Claude Code session a run"},
	step{command: "acescope session start --resume ID", does: "continue a conversation in acescope"},
	step{command: "acescope run --dataset FILE", does: "learn from your own tasks"},
	step{command: "acescope open FILE", does: "show an exported history"},
}

func (p step) draw(v *start, width int, plain bool, _ time.Time) string {
	s := v.Styles
	return widget.SizedCells(width, plain, s.Glyphs.Ellipsis,
		widget.SizedCell{Text: p.key + p.command, Width: 36, Ink: s.Accent},
		widget.SizedCell{Text: p.does, Ink: s.Muted})
}

func (p step) open(_ *start, s tui.Shell) {
	switch {
	case p.screen != "":
		s.Open(p.screen)
		return
	case p.command == "":
		s.Note("press " + p.key)
		return
	}
	s.Note("y copies " + p.command + "; run it in a shell")
}

func (p step) copied() (what, content string) {
	if p.command == "" {
		return "", ""
	}
	return "command", p.command
}

// runs says whether there are runs, which another screen lists.
func (v *start) runs() string {
	switch list := v.listing.Runs; {
	case len(list.Rows) > 0:
		return "1 lists the runs"
	case list.Query != "" || list.Loaded.IsZero():
		return "1 is the list of runs"
	}
	return "no runs yet"
}

func (v *start) Draw(now time.Time, focused bool) []string {
	v.arrange(now)
	s := v.Styles
	head := []string{s.Muted.Paint(text.Fit(" "+v.runs(), v.Width, s.Glyphs.Ellipsis)), text.Spaces(v.Width)}
	v.list.SetSize(v.Width, max(v.Height-len(head), 0))
	row := func(at widget.SectionRow, width int, plain bool) string {
		return v.rows[at.Part][at.Row].draw(v, width, plain, now)
	}
	return widget.Fill(append(head, v.list.Draw(s, focused, row)...), v.Width, v.Height)
}
