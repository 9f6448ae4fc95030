// Package cost shows what coding agents and runs cost by day, week, month, model, agent, project and
// experiment, and the sessions and runs of a row. Its data are the transcripts on this machine and the runs
// of the server.
package cost

import (
	"fmt"
	"slices"
	"strings"

	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/costs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// rows lists the usage by one unit.
type rows struct {
	console.List[transcripts.Cost]
	nav   *console.Navigation
	feeds Feeds
	data  *sessions.Transcripts // nil before the first
	runs  *costs.Costs          // nil before the first, or without a server
	all   []*transcripts.Session
	by    transcripts.By
	key   string // of the row under the cursor
	moved bool   // the user has moved the cursor
	zone  string // local time zone

	arranged struct { // the inputs of the rows
		data *sessions.Transcripts
		runs *costs.Costs
		by   transcripts.By
		day  string
	}
	total, today, week, month transcripts.Cost
	most                      float64 // the largest cost
}

type Feeds struct {
	Transcripts console.Feed[*sessions.Transcripts]
	Runs        console.Feed[*costs.Costs]
}

// units are the periods and groups that a row can stand for.
var units = []transcripts.By{transcripts.ByDay, transcripts.ByWeek, transcripts.ByMonth, transcripts.ByModel,
	transcripts.ByAgent, transcripts.ByProject, transcripts.ByExperiment}

// Screen returns the costs with the sessions and runs of the selected row.
func Screen(c *console.Console, feeds Feeds) tui.Screen {
	v := newRows(c.Navigation, feeds)
	return tui.Screen{Name: "cost", Aliases: []string{"costs"}, Keys: []string{"$"}, Share: 58,
		Argument: v.argument(),
		Help:     "what agents and runs cost by day, week, month, model, agent, project and experiment",
		Views:    []tui.View{v, newSessionList(c.Navigation, v)}}
}

// argument lets the command choose the unit.
func (v *rows) argument() *tui.Argument {
	return &tui.Argument{Name: "UNIT", Help: "UNIT is one of them",
		Candidates: func() (list []tui.Candidate) {
			for _, u := range units {
				list = append(list, tui.Candidate{Value: string(u)})
			}
			return list
		},
		Check: func(name string) error {
			if !slices.Contains(units, transcripts.By(name)) {
				return fmt.Errorf("unknown unit %q; use day, week, month, model, agent, project or experiment",
					name)
			}
			return nil
		},
		Do: func(s tui.Shell, name string) tea.Cmd {
			v.show(transcripts.By(name))
			s.Open("cost")
			return nil
		}}
}

func newRows(nav *console.Navigation, feeds Feeds) *rows {
	return &rows{nav: nav, feeds: feeds, by: transcripts.ByDay, List: console.NewList[transcripts.Cost]("Cost",
		widget.Heading{Title: "", Minimum: 20},
		widget.Heading{Title: "", Width: barWidth, Drop: 1},
		widget.Heading{Title: "COST", Width: 9, Right: true},
		widget.Heading{Title: "SESSIONS", Width: 8, Right: true, Drop: 3},
		widget.Heading{Title: "INPUT", Width: 6, Right: true, Drop: 2},
		widget.Heading{Title: "OUTPUT", Width: 6, Right: true, Drop: 2},
		widget.Heading{Title: "CACHE R", Width: 7, Right: true, Drop: 4},
		widget.Heading{Title: "CACHE W", Width: 7, Right: true, Drop: 5},
	)}
}

// barWidth is the width of the bar of the most expensive row.
const barWidth = 10

func (v *rows) Title() string {
	title := "Cost by " + string(v.by)
	title += widget.If(v.by.IsTime() && v.zone != "", ", "+v.zone, "")
	return title
}

func (v *rows) Footer() string {
	if v.data == nil || len(v.Rows) == 0 {
		return ""
	}
	unread := v.data.Progress.Dropped
	return v.Join("total "+console.CostCell(v.total.Totals.Usage(), v.Styles.Glyphs),
		console.Reading(v.data, v.Styles.Glyphs),
		widget.If(unread > 0, ace.Number(unread)+" older transcripts not read", ""),
		widget.If(v.runs != nil && v.runs.Dropped, "older runs not read", ""), v.Table.Position())
}

func (v *rows) Bindings() []tui.Binding {
	all := append(widget.Motions("cost", v),
		console.Key("cost.sessions", "go to the sessions of the row", "sessions",
			func(s tui.Shell) { s.Focus(1) }, "enter"))
	return append(all, v.unitBindings("cost")...)
}

// unitBindings returns the keys that choose the unit, in both panes.
func (v *rows) unitBindings(view string) []tui.Binding {
	return []tui.Binding{
		console.Key(view+".next", "the next unit: day, week, month, model, agent, project, experiment",
			"unit", func() { v.nextUnit(1) }, "]"),
		console.Key(view+".previous", "the previous unit", "", func() { v.nextUnit(-1) }, "["),
	}
}

func (v *rows) nextUnit(step int) {
	at := slices.Index(units, v.by)
	v.show(units[(at+step+len(units))%len(units)])
}

// show shows the rows of another unit, from the first one.
func (v *rows) show(by transcripts.By) {
	if by != v.by {
		v.by, v.key, v.moved = by, "", false
	}
}

func (v *rows) SetShown(shown bool) {
	v.feeds.Transcripts.Look(shown)
	v.feeds.Runs.Look(shown)
	if n := v.nav; shown && n.CostBy != "" {
		v.by, v.key, v.moved = n.CostBy, n.CostKey, true
		v.arranged.by = "" // go to the row
		n.CostBy, n.CostKey = "", ""
	}
}

func (v *rows) Refresh() {
	v.data = v.feeds.Transcripts.Value()
	v.runs = v.feeds.Runs.Value()
}

func (v *rows) Scroll(by int) {
	v.Table.Scroll(by)
	v.moved = v.Table.Cursor > 0
	if c, ok := v.Current(); ok {
		v.key = c.Key
	}
}

func (v *rows) Copy() (what, content string) {
	c, _ := v.Current()
	return string(v.by), c.Key
}

func (v *rows) Keep() map[string]string { return map[string]string{"by": string(v.by)} }

func (v *rows) Restore(kept map[string]string) {
	if by := transcripts.By(kept["by"]); slices.Contains(units, by) {
		v.by = by
	}
}

// arrange makes the rows again if the sessions, the unit or the day have changed. The newest or most
// expensive row is first. The cursor stays on its row, or on the first one until the user moves it.
func (v *rows) arrange(now time.Time) {
	next := v.arranged
	next.data, next.runs, next.by, next.day = v.data, v.runs, v.by, transcripts.Today(now)
	if v.data == nil || next == v.arranged {
		return
	}
	v.arranged = next
	v.zone = now.Local().Format("MST")
	list := v.runs.With(v.data.Sessions)
	v.all = list
	v.today = transcripts.Current(list, transcripts.ByDay, now)
	v.week = transcripts.Current(list, transcripts.ByWeek, now)
	v.month = transcripts.Current(list, transcripts.ByMonth, now)
	var costs []transcripts.Cost
	costs, v.total = transcripts.Costs(list, v.by, transcripts.CostQuery{})
	if v.by.IsTime() {
		slices.Reverse(costs)
	}
	v.most = 0
	for _, c := range costs {
		v.most = max(v.most, c.CostUSD)
	}
	v.Set(costs, func(c transcripts.Cost) bool { return v.moved && c.Key == v.key })
	if !v.moved {
		v.GoTo(0)
	}
	if c, ok := v.Current(); ok {
		v.key = c.Key
	}
}

func (v *rows) Draw(now time.Time, focused bool) []string {
	v.arrange(now)
	head := v.head()
	if len(v.Rows) == 0 {
		return v.Message(head, v.empty()...)
	}
	return v.DrawRows(head, focused, v.cells)
}

// head shows the cost of the current day, week and month, and which costs are missing.
func (v *rows) head() (lines []string) {
	s, g := v.Styles, v.Styles.Glyphs
	if v.data == nil {
		return nil
	}
	if trouble := v.data.Progress.Trouble; trouble != "" {
		lines = append(lines, v.Problem(s.Error, trouble))
	}
	if v.runs != nil && v.runs.Err != "" {
		lines = append(lines, v.Problem(s.Error, "runs: "+v.runs.Err))
	}
	if len(v.Rows) == 0 {
		return lines
	}
	l := v.Line()
	for i, c := range []struct {
		name string
		cost transcripts.Cost
	}{{"today", v.today}, {"this week", v.week}, {"this month", v.month}} {
		if i > 0 {
			l.Add(s.Muted, "  "+g.Dot)
		}
		l.Add(s.Muted, " "+c.name+" ").Add(s.Strong, console.CostCell(c.cost.Totals.Usage(), g))
	}
	lines = append(lines, l.String(s.Text))
	if v.total.Unpriced == 0 {
		return lines
	}
	lacks := " + lacks " + text.ShortCount(v.total.Unpriced) + " tokens of messages that name no model"
	if models := v.total.UnpricedModels; len(models) > 0 {
		lacks = " + lacks " + text.ShortCount(v.total.Unpriced) + " tokens; set [[prices]] for " +
			strings.Join(models, ", ")
	}
	return append(lines, v.Text(s.Warning, text.Safe(lacks, " ")))
}

// empty explains why there are no costs.
func (v *rows) empty() []string {
	if reading := console.Reading(v.data, v.Styles.Glyphs); reading != "" {
		return []string{reading}
	}
	if len(v.data.Sessions) > 0 {
		return []string{"the transcripts and runs contain no usage of a model"}
	}
	const none = "no transcripts of coding agents, and no runs with a model provider"
	return append([]string{none}, console.Searched(v.data.Dirs)...)
}

func (v *rows) cells(c transcripts.Cost) []widget.Cell {
	s, g := v.Styles, v.Styles.Glyphs
	name := text.Safe(c.Key, " ")
	switch {
	case c.Key == "" && v.by.IsTime():
		name = "no date"
	case c.Key == "" && v.by == transcripts.ByExperiment:
		name = "no experiment"
	case c.Key == "":
		name = "unknown"
	}
	count := func(n int64) widget.Cell { return widget.Cell{Text: text.ShortCount(n), Ink: s.Muted} }
	return []widget.Cell{
		{Text: name, Ink: s.Text}, {Text: bar(c.CostUSD, v.most, g), Ink: s.Accent},
		{Text: console.CostCell(c.Totals.Usage(), g), Ink: s.Text}, count(int64(c.Sessions)),
		count(c.Tokens.Input),
		count(c.Tokens.Output), count(c.Tokens.CacheRead), count(c.Tokens.CacheWrite()),
	}
}

// bar draws a cost relative to the largest one. Every cost above zero has a bar.
func bar(usd, most float64, g theme.Glyphs) string {
	if usd <= 0 || most <= 0 {
		return ""
	}
	return strings.Repeat(g.Full, max(int(usd/most*barWidth+0.5), 1))
}
