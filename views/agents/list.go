package agents

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/agents/transcript"
	"acescope/sources/sessions"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

type List struct {
	*Agents
	console.List[sessions.Row]                 // sorted and filtered
	marks                      map[string]bool // by key
	filter                     string
	Order                      int // index into orders
	shownVersion               int // version of the listed rows, -1 to sort again
	top                        bool
}

// orders are the sort orders, largest first.
var orders = []struct {
	name string
	less func(a, b sessions.Row) int
}{
	{"newest", func(a, b sessions.Row) int { return b.Last.Compare(a.Last) }},
	{"cost", func(a, b sessions.Row) int { return cmp.Compare(b.Totals.CostUSD, a.Totals.CostUSD) }},
	{"tokens", func(a, b sessions.Row) int {
		return cmp.Compare(b.Totals.Tokens.Total(), a.Totals.Tokens.Total())
	}},
	{"tool calls", func(a, b sessions.Row) int { return cmp.Compare(b.Totals.Calls, a.Totals.Calls) }},
	{"failed calls", func(a, b sessions.Row) int { return cmp.Compare(b.Totals.Failed, a.Totals.Failed) }},
	{"project", func(a, b sessions.Row) int { return cmp.Compare(a.Dir, b.Dir) }},
}

func NewList(a *Agents) *List {
	return &List{Agents: a, top: true, shownVersion: -1, marks: map[string]bool{},
		List: console.NewList[sessions.Row]("Agents",
			widget.Heading{Title: "STATE", Width: 10},
			widget.Heading{Title: "SESSION", Minimum: 24},
			widget.Heading{Title: "PROJECT", Width: 10, Drop: 4},
			widget.Heading{Title: "AGENT", Width: 8, Drop: 5},
			widget.Heading{Title: "KIND", Width: 6, Drop: 7},
			widget.Heading{Title: "MODEL", Width: 12, Drop: 8},
			widget.Heading{Title: "AGE", Width: 5, Right: true},
			widget.Heading{Title: "TURNS", Width: 5, Right: true, Drop: 6},
			widget.Heading{Title: "TOOLS", Width: 7, Right: true, Drop: 3},
			widget.Heading{Title: "TOKENS", Width: 6, Right: true, Drop: 2},
			widget.Heading{Title: "COST", Width: 8, Right: true},
		)}
}

func (v *List) Footer() string {
	var parts []string
	if d := v.data; d != nil {
		older := d.Dropped + d.Progress.Dropped
		parts = []string{console.Reading(d, v.Styles.Glyphs),
			widget.If(v.sessions != nil && v.sessions.More, "older sessions on the engine not listed", ""),
			widget.If(older > 0, ace.Number(older)+" older not listed", "")}
	}
	if n := len(v.marks); n > 0 {
		parts = append(parts, ace.Number(n)+" marked "+v.marked())
	}
	return v.Join(append(parts, widget.If(v.Order > 0, "by "+orders[v.Order].name, ""),
		console.FilterText(v.filter), v.Table.Position())...)
}

// marked sums the cost and tokens of the marked sessions.
func (v *List) marked() string {
	var t transcript.Totals
	for _, r := range v.rows {
		if v.marks[r.Key] {
			t = t.Add(r.Totals)
		}
	}
	return console.CostCell(t.Usage(), v.Styles.Glyphs) + " " + text.ShortCount(t.Tokens.Total()) + " tokens"
}

func (v *List) Bindings() []tui.Binding {
	list := append(widget.Motions("agents", v),
		console.Key("agents.read", "read the conversation", "read", v.open, "enter"),
		console.Key("agents.mark", "mark, to add up the cost of several", "mark", v.mark, "space"),
		console.Key("agents.unmark", "unmark all", "", func() { clear(v.marks) }, "u"),
		console.Key("agents.sort", "sort by newest, cost, tokens, calls, failed calls, project", "sort",
			func() { v.Order = (v.Order + 1) % len(orders); v.shownVersion = -1 }, "s"),
		console.Key("agents.search", "filter by name, project, agent, model, branch or ID", "filter", v.ask,
			"/"),
		console.Key("agents.next_error", "next session with a failed call", "", v.toError(1), "e"),
		console.Key("agents.previous_error", "previous session with a failed call", "", v.toError(-1), "E"))
	if v.actions != nil {
		list = append(list,
			console.MutatingKey("agents.new", "start a session on the engine", "new", v.askStart, "n"))
	}
	return slices.Concat(list, v.actionBindings("agents", v.waiting), v.runBindings("agents", v.openRuns))
}

func (v *List) Commands() []tui.Command { return v.commands() }

func (v *List) open(s tui.Shell) {
	r, ok := v.Row()
	if !ok {
		s.Note("no session is selected")
		return
	}
	if v.wanted != r.Key {
		v.read(r.Key)
	}
	s.Open("conversation")
}

func (v *List) mark() {
	if v.marks[v.Cursor] {
		delete(v.marks, v.Cursor)
	} else if v.Cursor != "" {
		v.marks[v.Cursor] = true
	}
	v.Scroll(1)
}

func (v *List) ask(s tui.Shell) {
	s.Ask(tui.Prompt{Label: "/", Value: v.filter, Hint: "part of a name, project, agent, model, branch or id",
		Done: func(typed string) tea.Cmd {
			v.filter, v.shownVersion = strings.TrimSpace(typed), -1
			return nil
		}})
}

func (v *List) Unfilter() (was bool) {
	if was = v.filter != ""; was {
		v.filter, v.shownVersion = "", -1
	}
	return was
}

func (v *List) toError(by int) func(tui.Shell) {
	return func(s tui.Shell) {
		if v.Next(s, by, func(r sessions.Row) bool { return r.Bad }, "no other session with a failed call") {
			v.Scroll(0)
		}
	}
}

func (v *List) Copy() (what, content string) {
	r, _ := v.Row()
	return "session id", r.ID
}

func (v *List) Copies() []tui.Copy {
	r, ok := v.Row()
	if !ok {
		return nil
	}
	return []tui.Copy{{Key: "i", What: "session id", Text: r.ID},
		v.nav.CommandCopy("session", "show", r.ID)}
}

func (v *List) Keep() map[string]string {
	return map[string]string{"filter": v.filter, "order": orders[v.Order].name, "cursor": v.Cursor}
}

func (v *List) Restore(kept map[string]string) {
	v.filter = kept["filter"]
	for i, o := range orders {
		if o.name == kept["order"] {
			v.Order = i
		}
	}
}

func (v *List) SetShown(shown bool) {
	v.look(shown)
	if r, ok := v.Row(); shown && ok && v.wanted != r.Key {
		v.read(r.Key)
	}
}

func (v *List) Refresh() { v.refresh() }

// arrange sorts and filters the rows, and keeps the cursor on its session or at the top.
func (v *List) arrange() {
	if v.shownVersion == v.version && v.nav.Session == "" {
		return
	}
	v.shownVersion = v.version
	var rows []sessions.Row
	for _, r := range v.rows {
		if v.filter == "" || widget.Holds(v.filter, r.Name, r.Dir, r.Model, r.ID, r.Agent, gitBranchOf(r)) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, orders[v.Order].less)
	v.Set(rows, nil)
	index := func(key string) int {
		return slices.IndexFunc(rows, func(r sessions.Row) bool {
			return r.Key == key || r.Transcript != nil && r.Transcript.Path == key
		})
	}
	at := 0
	if goal := index(v.nav.Session); v.nav.Session != "" && goal >= 0 {
		at, v.top, v.nav.Session = goal, goal == 0, ""
	} else if !v.top {
		if at = index(v.Cursor); at < 0 {
			at = v.Table.Cursor
		}
	}
	v.goTo(at)
}

func gitBranchOf(r sessions.Row) string {
	if r.Transcript == nil {
		return ""
	}
	return r.Transcript.Summary.Branch
}

func (v *List) Scroll(by int) {
	v.arrange()
	v.nav.Session = ""
	v.goTo(v.Table.Cursor + by)
	v.top = v.Table.Cursor == 0
}

func (v *List) goTo(at int) {
	v.GoTo(at)
	if r, ok := v.Current(); ok {
		v.choose(r)
	}
}

func (v *List) Draw(now time.Time, focused bool) []string {
	v.arrange()
	s := v.Styles
	var lines []string
	if v.data != nil && v.data.Progress.Trouble != "" {
		lines = append(lines, v.Problem(s.Error, v.data.Progress.Trouble))
	}
	if v.sessions != nil && v.sessions.Err != "" {
		lines = append(lines, v.Problem(s.Warning, "the engine's sessions: "+v.sessions.Err))
	}
	if len(v.Rows) == 0 {
		return v.Message(lines, v.empty()...)
	}
	return v.DrawRows(lines, focused, func(r sessions.Row) []widget.Cell { return v.cells(r, now) })
}

func (v *List) empty() []string {
	if v.data != nil && v.filter != "" {
		return []string{"no session matches", text.Safe(v.filter, " "), "/ changes the filter"}
	}
	if reading := console.Reading(v.data, v.Styles.Glyphs); reading != "" {
		return []string{reading}
	}
	lines := []string{"no agent sessions"}
	if v.actions != nil {
		lines = append(lines, "+ starts one on the engine")
	}
	return append(lines, console.Searched(v.data.Dirs)...)
}

func (v *List) cells(r sessions.Row, now time.Time) []widget.Cell {
	s, g := v.Styles, v.Styles.Glyphs
	state := stateMark(r, now, s)
	name, ink := text.Safe(sessionName(r), " "), widget.If(r.Name != "", s.Text, s.Muted)
	if v.marks[r.Key] {
		name = "*" + name
	}
	if r.Waiting > 0 {
		name = ace.Count(r.Waiting, "approval") + ": " + name
	}
	turns, tools := strconv.Itoa(r.Turns), strconv.Itoa(r.Totals.Calls)
	tokens, cost := text.ShortCount(r.Totals.Tokens.Total()), console.CostCell(r.Totals.Usage(), g)
	switch {
	case r.Engine != nil && r.Transcript == nil && r.Engine.State == nil:
		turns, tools, tokens, cost = g.Dash, g.Dash, g.Dash, g.Dash
	case !r.Known:
		turns, tools, tokens, cost = g.Ellipsis, g.Ellipsis, g.Ellipsis, g.Ellipsis
	}
	toolInk := s.Text
	if r.Totals.Failed > 0 {
		tools, toolInk = tools+" "+strconv.Itoa(r.Totals.Failed)+g.Wrong, s.Failed
	}
	kind := widget.If(r.Engine != nil, "engine", "file")
	return []widget.Cell{
		{state.Glyph + " " + state.Word, state.Ink}, {name, ink},
		{console.OrDash(filepath.Base(r.Dir), g), s.Muted},
		{console.OrDash(text.Safe(r.Agent, " "), g), s.Muted}, {kind, s.Muted},
		{console.OrDash(shortModel(r.Model), g), s.Muted}, {text.Span(now.Sub(r.Last)), s.Muted},
		{turns, s.Text}, {tools, toolInk}, {tokens, s.Text}, {cost, s.Muted},
	}
}

// shortModel strips the vendor prefix and the date from a model's name.
func shortModel(model string) string {
	return modelDate.ReplaceAllString(strings.TrimPrefix(model, "claude-"), "")
}

// modelDate matches the date at the end of a model's name.
var modelDate = regexp.MustCompile(`-20\d{6}$`)
