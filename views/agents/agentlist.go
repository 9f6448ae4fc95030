package agents

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources/sessions"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// AgentList is the list of agents' sessions.
type AgentList struct {
	*Agents
	styles        theme.Styles
	width, height int
	table         *widget.Table
	list          []sessions.AgentSession // as it is sorted and filtered
	marks         map[string]bool         // keys of rows
	filter        string
	Order         int // of agentOrders
	taken         int // of fresh
	top           bool
}

// agentOrders are what the list can be sorted by, most first.
var agentOrders = []struct {
	name string
	less func(a, b sessions.AgentSession) int
}{
	{"newest", func(a, b sessions.AgentSession) int { return b.Last.Compare(a.Last) }},
	{"cost", func(a, b sessions.AgentSession) int { return cmp.Compare(b.Totals.CostUSD, a.Totals.CostUSD) }},
	{"tokens", func(a, b sessions.AgentSession) int {
		return cmp.Compare(b.Totals.Tokens.Total(), a.Totals.Tokens.Total())
	}},
	{"tool calls", func(a, b sessions.AgentSession) int { return cmp.Compare(b.Totals.Calls, a.Totals.Calls) }},
	{"failed calls", func(a, b sessions.AgentSession) int { return cmp.Compare(b.Totals.Failed, a.Totals.Failed) }},
	{"project", func(a, b sessions.AgentSession) int { return cmp.Compare(a.Dir, b.Dir) }},
}

func NewAgentList(a *Agents) *AgentList {
	return &AgentList{Agents: a, top: true, taken: -1, marks: map[string]bool{}, table: widget.NewTable(
		widget.Heading{Title: "STATE", Width: 10},
		widget.Heading{Title: "SESSION", Minimum: 24},
		widget.Heading{Title: "PROJECT", Width: 10, Drop: 4},
		widget.Heading{Title: "KIND", Width: 6, Drop: 5},
		widget.Heading{Title: "MODEL", Width: 12, Drop: 8},
		widget.Heading{Title: "AGE", Width: 5, Right: true},
		widget.Heading{Title: "TURNS", Width: 5, Right: true, Drop: 6},
		widget.Heading{Title: "TOOLS", Width: 7, Right: true, Drop: 3},
		widget.Heading{Title: "TOKENS", Width: 6, Right: true, Drop: 2},
		widget.Heading{Title: "COST", Width: 8, Right: true},
	)}
}

func (v *AgentList) Name() string  { return "Agents" }
func (v *AgentList) Title() string { return "Agents" }

// Footer is how far the reading is, what is left out, and where the cursor is.
func (v *AgentList) Footer() string {
	dot := " " + v.styles.Glyphs.Dot + " "
	var parts []string
	if d := v.data; d != nil {
		parts = append(parts, v.reading()...)
		if v.sessions != nil && v.sessions.More {
			parts = append(parts, "older ones on the engine left out")
		}
		if n := d.Dropped + d.Progress.Dropped; n > 0 {
			parts = append(parts, text.Count(int64(n))+" older left out")
		}
	}
	if n := len(v.marks); n > 0 {
		parts = append(parts, text.Count(int64(n))+" marked "+v.marked())
	}
	if v.Order > 0 {
		parts = append(parts, "by "+agentOrders[v.Order].name)
	}
	if v.filter != "" {
		parts = append(parts, "/"+text.Cut(text.Safe(v.filter, " "), 20, ""))
	}
	if at := v.table.Position(); at != "" {
		parts = append(parts, at)
	}
	return strings.Join(parts, dot)
}

// reading is how far the index is, nothing once it is done.
func (v *AgentList) reading() []string {
	p := v.data.Progress
	if p.Done >= p.Files {
		return nil
	}
	said := "reading " + text.Count(int64(p.Done)) + " of " + text.Count(int64(p.Files))
	if p.Rate() > 0 {
		said += ", " + megabytes(p.Rate()) + "/s"
	}
	return []string{said}
}

// marked is what the marked sessions have spent.
func (v *AgentList) marked() string {
	var t sessions.AgentTotals
	for _, r := range v.rows {
		if v.marks[r.Key] {
			t = t.Add(r.Totals)
		}
	}
	return spent(t, v.styles.Glyphs) + " " + roughly(t.Tokens.Total()) + " tokens"
}

func (v *AgentList) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return tui.Binding{Action: "agents." + name, Keys: keys, Help: help, Short: short, Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	list := append(widget.Motions("agents", v),
		b("read", "read the conversation", "read", v.open, "enter"),
		b("mark", "mark, to see what several have cost together", "mark", func(tui.Shell) { v.mark() }, "space"),
		b("unmark", "unmark all", "", func(tui.Shell) { clear(v.marks) }, "u"),
		b("sort", "sort by newest, cost, tokens, calls, failed calls, project", "sort", func(tui.Shell) { v.Order = (v.Order + 1) % len(agentOrders); v.taken = -1 }, "s"),
		b("filter", "list those whose name, project, model, branch or id holds a text", "filter", v.ask, "/"),
		b("next_error", "next in which something failed", "", func(s tui.Shell) { v.toError(s, 1) }, "e"),
		b("previous_error", "previous in which something failed", "", func(s tui.Shell) { v.toError(s, -1) }, "E"))
	return append(append(list, v.talkBindings("agents", v.waiting)...), v.runsBinding("agents"), v.eventBinding("agents"))
}

// Commands are those for what is done with sessions.
func (v *AgentList) Commands() []tui.Command { return v.commands() }

func (v *AgentList) open(s tui.Shell) {
	r, ok := v.Row()
	if !ok {
		s.Note("no session is selected")
		return
	}
	if v.reads != r.Key {
		v.read(r.Key)
	}
	s.Open("conversation")
}

func (v *AgentList) mark() {
	if v.marks[v.Cursor] {
		delete(v.marks, v.Cursor)
	} else if v.Cursor != "" {
		v.marks[v.Cursor] = true
	}
	v.Scroll(1)
}

func (v *AgentList) ask(s tui.Shell) {
	s.Ask(tui.Prompt{Label: "/", Value: v.filter, Hint: "part of a name, project, model, branch or id",
		Done: func(typed string) tea.Cmd { v.filter, v.taken = strings.TrimSpace(typed), -1; return nil }})
}

func (v *AgentList) toError(s tui.Shell, by int) {
	for at := v.table.Cursor + by; at >= 0 && at < len(v.list); at += by {
		if v.list[at].Bad {
			v.Scroll(at - v.table.Cursor)
			return
		}
	}
	s.Note("no other session in which something failed")
}

// Copy gives the session's id.
func (v *AgentList) Copy() (what, content string) {
	if r, ok := v.Row(); ok {
		return "session id", r.ID
	}
	return "", ""
}

// Keep gives the filter and the order.
func (v *AgentList) Keep() map[string]string {
	return map[string]string{"filter": v.filter, "order": agentOrders[v.Order].name, "cursor": v.Cursor}
}

// Restore takes up what Keep gave.
func (v *AgentList) Restore(kept map[string]string) {
	v.filter = kept["filter"]
	for i, o := range agentOrders {
		if o.name == kept["order"] {
			v.Order = i
		}
	}
}

// SetShown reads transcripts while the list is looked at.
func (v *AgentList) SetShown(shown bool) {
	v.look(shown)
	if r, ok := v.Row(); shown && ok && v.reads != r.Key {
		v.read(r.Key)
	}
}

func (v *AgentList) SetStyles(s theme.Styles)  { v.styles = s }
func (v *AgentList) SetSize(width, height int) { v.width, v.height = width, height }
func (v *AgentList) Refresh()                  { v.refresh() }

// arrange sorts and filters, and keeps the cursor on its session, or at the top.
func (v *AgentList) arrange() {
	if v.taken == v.fresh && v.nav.Session == "" {
		return
	}
	v.taken, v.list = v.fresh, nil
	for _, r := range v.rows {
		if v.filter == "" || widget.Holds(v.filter, r.Name, r.Dir, r.Model, r.ID, gitBranchOf(r)) {
			v.list = append(v.list, r)
		}
	}
	slices.SortStableFunc(v.list, agentOrders[v.Order].less)
	v.table.SetRows(len(v.list))
	at := 0
	if goal := slices.IndexFunc(v.list, func(r sessions.AgentSession) bool { return r.Key == v.nav.Session }); v.nav.Session != "" && goal >= 0 {
		at, v.top, v.nav.Session = goal, goal == 0, ""
	} else if !v.top {
		if at = slices.IndexFunc(v.list, func(r sessions.AgentSession) bool { return r.Key == v.Cursor }); at < 0 {
			at = v.table.Cursor
		}
	}
	v.goTo(at)
}

func gitBranchOf(r sessions.AgentSession) string {
	if r.Transcript == nil {
		return ""
	}
	return r.Transcript.Summary.Branch
}

func (v *AgentList) Page() int { return v.table.Page() }

func (v *AgentList) Scroll(by int) {
	v.arrange()
	v.nav.Session = ""
	v.goTo(v.table.Cursor + by)
	v.top = v.table.Cursor == 0
}

func (v *AgentList) goTo(at int) {
	v.table.Scroll(at - v.table.Cursor)
	if len(v.list) > 0 {
		v.choose(v.list[v.table.Cursor])
	}
}

func (v *AgentList) Draw(now time.Time, focused bool) []string {
	v.arrange()
	s := v.styles
	var lines []string
	if v.data != nil && v.data.Progress.Trouble != "" {
		lines = append(lines, s.Error.Paint(text.Fit(" "+s.Glyphs.Failed+" "+text.Safe(v.data.Progress.Trouble, " "), v.width, s.Glyphs.Ellipsis)))
	}
	if v.sessions != nil && v.sessions.Err != "" {
		lines = append(lines, s.Warning.Paint(text.Fit(" "+s.Glyphs.Failed+" the engine's sessions: "+text.Safe(v.sessions.Err, " "), v.width, s.Glyphs.Ellipsis)))
	}
	if len(v.list) == 0 {
		return widget.Fill(append(lines, widget.Centre(v.empty(), v.width, v.height-len(lines), s)...), v.width, v.height)
	}
	v.table.SetSize(v.width, v.height-len(lines))
	return append(lines, v.table.Draw(s, focused, func(i int) []widget.Cell { return v.cells(v.list[i], now) })...)
}

func (v *AgentList) empty() []string {
	switch {
	case v.data == nil || v.data.Progress.Scanned.IsZero():
		return []string{"looking for sessions" + v.styles.Glyphs.Ellipsis}
	case v.filter != "":
		return []string{"no session holds", text.Safe(v.filter, " "), "/ to look for others"}
	case len(v.data.Roots) == 0:
		return []string{"there is no home directory to look in", "set CLAUDE_CONFIG_DIR"}
	}
	lines := []string{"no sessions of agents here"}
	if v.actor.Actions != nil {
		lines = append(lines, "+ starts one on the engine")
	}
	lines = append(lines, "looked for transcripts in")
	for _, root := range v.data.Roots {
		lines = append(lines, text.Safe(filepath.Join(root, "projects"), " "))
	}
	return lines
}

func (v *AgentList) cells(r sessions.AgentSession, now time.Time) []widget.Cell {
	s, g := v.styles, v.styles.Glyphs
	state := stateMark(r, now, s)
	name := text.Safe(r.Name, " ")
	ink := s.Text
	if name == "" {
		name, ink = r.ID, s.Muted
	}
	if v.marks[r.Key] {
		name = "*" + name
	}
	turns, tools, tokens, cost := strconv.Itoa(r.Turns), strconv.Itoa(r.Totals.Calls), roughly(r.Totals.Tokens.Total()), spent(r.Totals, g)
	if !r.Known {
		turns, tools, tokens, cost = g.Ellipsis, g.Ellipsis, g.Ellipsis, g.Ellipsis
	}
	toolInk := s.Text
	if r.Totals.Failed > 0 {
		tools, toolInk = tools+" "+strconv.Itoa(r.Totals.Failed)+g.Wrong, s.Failed
	}
	if r.Waiting > 0 {
		name = plural(r.Waiting, "approval") + ": " + name
	}
	if r.Engine != nil && r.Transcript == nil && r.Engine.State == nil {
		turns, tools, tokens, cost = g.Dash, g.Dash, g.Dash, g.Dash
	}
	return []widget.Cell{
		{state.Glyph + " " + state.Word, state.Ink}, {text.Safe(name, " "), ink}, {console.OrDash(filepath.Base(r.Dir), g), s.Muted}, {kindWord(r.Kind), s.Muted},
		{console.OrDash(shortModel(r.Model), g), s.Muted}, {text.Span(now.Sub(r.Last)), s.Muted}, {turns, s.Text}, {tools, toolInk},
		{tokens, s.Text}, {cost, s.Muted},
	}
}

// kindWord says where a session is known from.
func kindWord(k sessions.AgentKind) string {
	if k == sessions.AgentTranscript {
		return "file"
	}
	return text.Safe(string(k), " ")
}

// shortModel leaves out what all names of a vendor's models begin with, and the date.
func shortModel(model string) string {
	model = strings.TrimPrefix(model, "claude-")
	if at := len(model) - len("-20260101"); at > 0 && strings.HasPrefix(model[at:], "-20") && strings.Trim(model[at+1:], "0123456789") == "" {
		return model[:at]
	}
	return model
}
