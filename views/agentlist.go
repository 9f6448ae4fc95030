package views

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

// agentList is the list of agents' sessions.
type agentList struct {
	*agents
	styles        theme.Styles
	width, height int
	table         *table
	list          []sources.AgentSession // as it is sorted and filtered
	marks         map[string]bool        // keys of rows
	filter        string
	order         int // of agentOrders
	taken         int // of fresh
	top           bool
}

// agentOrders are what the list can be sorted by, most first.
var agentOrders = []struct {
	name string
	less func(a, b sources.AgentSession) int
}{
	{"newest", func(a, b sources.AgentSession) int { return b.Last.Compare(a.Last) }},
	{"cost", func(a, b sources.AgentSession) int { return cmp.Compare(b.Totals.CostUSD, a.Totals.CostUSD) }},
	{"tokens", func(a, b sources.AgentSession) int {
		return cmp.Compare(b.Totals.Tokens.Total(), a.Totals.Tokens.Total())
	}},
	{"tool calls", func(a, b sources.AgentSession) int { return cmp.Compare(b.Totals.Calls, a.Totals.Calls) }},
	{"failed calls", func(a, b sources.AgentSession) int { return cmp.Compare(b.Totals.Failed, a.Totals.Failed) }},
	{"project", func(a, b sources.AgentSession) int { return cmp.Compare(a.Dir, b.Dir) }},
}

func newAgentList(a *agents) *agentList {
	return &agentList{agents: a, top: true, taken: -1, marks: map[string]bool{}, table: newTable(
		heading{title: "STATE", width: 10},
		heading{title: "SESSION", minimum: 24},
		heading{title: "PROJECT", width: 10, drop: 4},
		heading{title: "KIND", width: 6, drop: 5},
		heading{title: "MODEL", width: 12, drop: 8},
		heading{title: "AGE", width: 5, right: true},
		heading{title: "TURNS", width: 5, right: true, drop: 6},
		heading{title: "TOOLS", width: 7, right: true, drop: 3},
		heading{title: "TOKENS", width: 6, right: true, drop: 2},
		heading{title: "COST", width: 8, right: true},
	)}
}

func (v *agentList) Name() string  { return "Agents" }
func (v *agentList) Title() string { return "Agents" }

// Footer is how far the reading is, what is left out, and where the cursor is.
func (v *agentList) Footer() string {
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
	if v.order > 0 {
		parts = append(parts, "by "+agentOrders[v.order].name)
	}
	if v.filter != "" {
		parts = append(parts, "/"+text.Cut(text.Safe(v.filter, " "), 20, ""))
	}
	if at := v.table.position(); at != "" {
		parts = append(parts, at)
	}
	return strings.Join(parts, dot)
}

// reading is how far the index is, nothing once it is done.
func (v *agentList) reading() []string {
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
func (v *agentList) marked() string {
	var t sources.AgentTotals
	for _, r := range v.rows {
		if v.marks[r.Key] {
			t = t.Add(r.Totals)
		}
	}
	return spent(t, v.styles.Glyphs) + " " + roughly(t.Tokens.Total()) + " tokens"
}

func (v *agentList) Bindings() []tui.Binding {
	b := func(name, help, short string, do func(tui.Shell), keys ...string) tui.Binding {
		return tui.Binding{Action: "agents." + name, Keys: keys, Help: help, Short: short, Do: func(s tui.Shell) tea.Cmd { do(s); return nil }}
	}
	list := append(motions("agents", v),
		b("read", "read the conversation", "read", v.open, "enter"),
		b("mark", "mark, to see what several have cost together", "mark", func(tui.Shell) { v.mark() }, "space"),
		b("unmark", "unmark all", "", func(tui.Shell) { clear(v.marks) }, "u"),
		b("sort", "sort by newest, cost, tokens, calls, failed calls, project", "sort", func(tui.Shell) { v.order = (v.order + 1) % len(agentOrders); v.taken = -1 }, "s"),
		b("filter", "list those whose name, project, model, branch or id holds a text", "filter", v.ask, "/"),
		b("next_error", "next in which something failed", "", func(s tui.Shell) { v.toError(s, 1) }, "e"),
		b("previous_error", "previous in which something failed", "", func(s tui.Shell) { v.toError(s, -1) }, "E"))
	return append(append(list, v.talkBindings("agents", v.waiting)...), v.runsBinding("agents"), v.eventBinding("agents"))
}

// Commands are those for what is done with sessions.
func (v *agentList) Commands() []tui.Command { return v.commands() }

func (v *agentList) open(s tui.Shell) {
	r, ok := v.row()
	if !ok {
		s.Note("no session is selected")
		return
	}
	if v.reads != r.Key {
		v.read(r.Key)
	}
	s.Open("conversation")
}

func (v *agentList) mark() {
	if v.marks[v.cursor] {
		delete(v.marks, v.cursor)
	} else if v.cursor != "" {
		v.marks[v.cursor] = true
	}
	v.scroll(1)
}

func (v *agentList) ask(s tui.Shell) {
	s.Ask(tui.Prompt{Label: "/", Value: v.filter, Hint: "part of a name, project, model, branch or id",
		Done: func(typed string) tea.Cmd { v.filter, v.taken = strings.TrimSpace(typed), -1; return nil }})
}

func (v *agentList) toError(s tui.Shell, by int) {
	for at := v.table.cursor + by; at >= 0 && at < len(v.list); at += by {
		if v.list[at].Bad {
			v.scroll(at - v.table.cursor)
			return
		}
	}
	s.Note("no other session in which something failed")
}

// Copy gives the session's id.
func (v *agentList) Copy() (what, content string) {
	if r, ok := v.row(); ok {
		return "session id", r.ID
	}
	return "", ""
}

// Keep gives the filter and the order.
func (v *agentList) Keep() map[string]string {
	return map[string]string{"filter": v.filter, "order": agentOrders[v.order].name, "cursor": v.cursor}
}

// Restore takes up what Keep gave.
func (v *agentList) Restore(kept map[string]string) {
	v.filter = kept["filter"]
	for i, o := range agentOrders {
		if o.name == kept["order"] {
			v.order = i
		}
	}
}

func (v *agentList) Update(tea.Msg) tea.Cmd { return nil }

// SetShown reads transcripts while the list is looked at.
func (v *agentList) SetShown(shown bool) {
	v.Controls.Look(sources.PartTranscripts, shown)
	v.Controls.Look(sources.PartSessions, shown)
	if r, ok := v.row(); shown && ok && v.reads != r.Key {
		v.read(r.Key)
	}
}

func (v *agentList) SetStyles(s theme.Styles)        { v.styles = s }
func (v *agentList) SetSize(width, height int)       { v.width, v.height = width, height }
func (v *agentList) SetSnapshot(s *sources.Snapshot) { v.set(s) }

// arrange sorts and filters, and keeps the cursor on its session, or at the top.
func (v *agentList) arrange() {
	if v.taken == v.fresh && v.goal == "" {
		return
	}
	v.taken, v.list = v.fresh, nil
	for _, r := range v.rows {
		if v.filter == "" || holds(v.filter, r.Name, r.Dir, r.Model, r.ID, gitBranchOf(r)) {
			v.list = append(v.list, r)
		}
	}
	slices.SortStableFunc(v.list, agentOrders[v.order].less)
	v.table.setRows(len(v.list))
	at := 0
	if goal := slices.IndexFunc(v.list, func(r sources.AgentSession) bool { return r.Key == v.goal }); v.goal != "" && goal >= 0 {
		at, v.top, v.goal = goal, goal == 0, ""
	} else if !v.top {
		if at = slices.IndexFunc(v.list, func(r sources.AgentSession) bool { return r.Key == v.cursor }); at < 0 {
			at = v.table.cursor
		}
	}
	v.goTo(at)
}

func gitBranchOf(r sources.AgentSession) string {
	if r.Transcript == nil {
		return ""
	}
	return r.Transcript.Summary.Branch
}

func (v *agentList) page() int { return v.table.page() }

func (v *agentList) scroll(by int) {
	v.arrange()
	v.goal = ""
	v.goTo(v.table.cursor + by)
	v.top = v.table.cursor == 0
}

func (v *agentList) goTo(at int) {
	v.table.scroll(at - v.table.cursor)
	if len(v.list) > 0 {
		v.choose(v.list[v.table.cursor])
	}
}

func (v *agentList) Draw(now time.Time, focused bool) []string {
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
		return fill(append(lines, centre(v.empty(), v.width, v.height-len(lines), s)...), v.width, v.height)
	}
	v.table.setSize(v.width, v.height-len(lines))
	return append(lines, v.table.draw(s, focused, func(i int) []cell { return v.cells(v.list[i], now) })...)
}

func (v *agentList) empty() []string {
	switch {
	case v.data == nil || v.data.Progress.Scanned.IsZero():
		return []string{"looking for sessions" + v.styles.Glyphs.Ellipsis}
	case v.filter != "":
		return []string{"no session holds", text.Safe(v.filter, " "), "/ to look for others"}
	case len(v.data.Roots) == 0:
		return []string{"there is no home directory to look in", "set CLAUDE_CONFIG_DIR"}
	}
	lines := []string{"no sessions of agents here"}
	if v.Actions != nil {
		lines = append(lines, "+ starts one on the engine")
	}
	lines = append(lines, "looked for transcripts in")
	for _, root := range v.data.Roots {
		lines = append(lines, text.Safe(filepath.Join(root, "projects"), " "))
	}
	return lines
}

func (v *agentList) cells(r sources.AgentSession, now time.Time) []cell {
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
	return []cell{
		{state.Glyph + " " + state.Word, state.Ink}, {text.Safe(name, " "), ink}, {orDash(filepath.Base(r.Dir), g), s.Muted}, {kindWord(r.Kind), s.Muted},
		{orDash(shortModel(r.Model), g), s.Muted}, {text.Span(now.Sub(r.Last)), s.Muted}, {turns, s.Text}, {tools, toolInk},
		{tokens, s.Text}, {cost, s.Muted},
	}
}

// kindWord says where a session is known from.
func kindWord(k sources.AgentKind) string {
	if k == sources.AgentTranscript {
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
