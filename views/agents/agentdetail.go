package agents

import (
	"path/filepath"
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
	"acescope/views/run"
)

// agentDetail is what is known of the selected session: facts, tools, subagents, and the
// end of its conversation.
type agentDetail struct {
	*Agents
	styles        theme.Styles
	width, height int
	panel         widget.Panel
	doc           widget.Document
	lines         []string
	of            agentDocKey
}

// agentDocKey is what the lines were made of.
type agentDocKey struct {
	key     string
	session *sessions.Transcript
	engine  *sessions.EngineSession
	live    *sessions.Talk
	talk    *sessions.Conversation
	width   int
	second  int64
}

// tailEntries is how many of the last entries of a conversation stand beside the list.
const tailEntries = 40

func newAgentDetail(a *Agents) *agentDetail { return &agentDetail{Agents: a} }

func (v *agentDetail) Name() string { return "Session" }

func (v *agentDetail) Title() string {
	if r, ok := v.Row(); ok {
		return "Session " + text.Safe(r.ID, " ")
	}
	return "Session"
}

func (v *agentDetail) Footer() string { return run.Position(&v.panel) }

func (v *agentDetail) Bindings() []tui.Binding {
	list := append(widget.Motions("agent", v),
		tui.Binding{Action: "agent.read", Keys: []string{"enter"}, Help: "read the conversation whole", Short: "read",
			Do: func(s tui.Shell) tea.Cmd { s.Open("conversation"); return nil }},
		tui.Binding{Action: "agent.part", Keys: []string{"a"}, Help: "the end of the next subagent's conversation, then of the session's again", Short: "subagent",
			Do: func(s tui.Shell) tea.Cmd { v.nextPart(s, 1); return nil }})
	return append(append(list, v.talkBindings("agent", v.waiting)...), v.runsBinding("agent"), v.eventBinding("agent"))
}

// Copy gives the path of the transcript.
func (v *agentDetail) Copy() (what, content string) {
	if r, ok := v.Row(); ok && r.Engine != nil {
		return "workflow id", r.Key
	}
	if r, ok := v.Row(); ok && r.Transcript != nil {
		return "path of the transcript", r.Transcript.Path
	}
	return "", ""
}

func (v *agentDetail) SetStyles(s theme.Styles) {
	v.styles, v.of = s, agentDocKey{}
	v.doc.Clear()
}

func (v *agentDetail) SetSize(width, height int) { v.width, v.height = width, height }
func (v *agentDetail) Refresh()                  { v.refresh() }
func (v *agentDetail) Page() int                 { return max(v.height, 1) }
func (v *agentDetail) Scroll(by int)             { v.panel.Scroll(by) }

func (v *agentDetail) Draw(now time.Time, _ bool) []string {
	r, ok := v.Row()
	if !ok || r.Transcript == nil && r.Engine == nil {
		return widget.Centre([]string{"no session is selected"}, v.width, v.height, v.styles)
	}
	v.build(r, now)
	v.panel.Lines, v.panel.Height = len(v.lines), v.height
	v.panel.Scroll(0)
	return widget.Fill(append([]string(nil), v.lines[v.panel.Top:min(v.panel.Top+v.height, len(v.lines))]...), v.width, v.height)
}

func (v *agentDetail) build(r sessions.AgentSession, now time.Time) {
	key := agentDocKey{r.Key, r.Transcript, r.Engine, v.live(), v.Talk(), v.width, now.Unix()}
	if key == v.of {
		return
	}
	if v.of.key != r.Key {
		v.panel.Top = 0
	}
	v.of = key
	w := agentWriter{&widget.Writer{Doc: &v.doc, S: v.styles, Width: v.width, Now: now, Loc: v.location}, r.Transcript}
	if r.Engine != nil {
		w.engine(r, v.state(r), v.live())
		w.runs(r, v.runsOf(r))
	} else {
		w.facts(r)
	}
	if w.t != nil {
		w.tools()
		w.agents()
	}
	v.tail(w)
	v.lines = w.Lines
}

// tail is the end of the conversation.
func (v *agentDetail) tail(w agentWriter) {
	title := "Conversation"
	if a, ok := v.part(); ok {
		title += " of subagent " + text.Safe(a.ID, " ")
	}
	c := v.Talk()
	if c == nil {
		w.Section(title, "reading"+w.S.Glyphs.Ellipsis)
		return
	}
	from := max(len(c.Entries)-tailEntries, 0)
	remark := "enter reads it whole"
	if from+c.First > 0 {
		remark = "the last " + strconv.Itoa(len(c.Entries)-from) + " of " + text.Count(int64(len(c.Entries)+c.First)) + "; " + remark
	}
	w.Section(title, remark)
	if c.Err != "" {
		w.Prose(" "+w.S.Glyphs.Failed+" ", w.S.Error, c.Err)
	}
	p := talkPainter{s: v.styles, width: v.width, loc: v.location}
	for _, e := range c.Entries[from:] {
		w.Lines = append(w.Lines, p.lines(e, false)...)
	}
}

// agentWriter writes what is known of a session.
type agentWriter struct {
	*widget.Writer
	t *sessions.Transcript
}

func (w agentWriter) fact(name string, ink theme.Ink, said string) {
	if said != "" {
		w.Prose(" "+text.Fit(name, 10, ""), ink, said)
	}
}

func (w agentWriter) facts(r sessions.AgentSession) {
	t, sum, g := w.t, w.t.Summary, w.S.Glyphs
	w.Prose(" ", w.S.Strong, console.OrDash(t.Name(), g))
	if t.Err != "" {
		w.Prose(" "+g.Failed+" ", w.S.Error, t.Err)
	}
	m := stateMark(r, w.Now, w.S)
	said := m.Word + ", last line " + w.Ago(t.Last())
	if r.Unfinished {
		said += ", its last turn has no end"
	}
	w.fact("state", m.Ink, m.Glyph+" "+said)
	w.fact("directory", w.S.Text, t.Dir())
	if sum.Title != "" {
		w.fact("prompt", w.S.Text, firstLine(sum.Prompt))
	}
	if !sum.Started.IsZero() {
		w.fact("began", w.S.Text, sum.Started.In(w.Loc).Format("2006-01-02 15:04:05")+", over "+text.Span(sum.Last.Sub(sum.Started)))
	}
	w.fact("git", w.S.Text, sum.Branch)
	w.fact("version", w.S.Text, sum.Version)
	w.fact("said", w.S.Text, plural(sum.Turns, "turn")+", "+plural(sum.Messages, "message")+compactions(sum.Compactions))
	if t.ForkedFrom != "" {
		w.fact("forked", w.S.Text, "from "+t.ForkedFrom+": "+text.Count(int64(t.Shared))+" lines, "+spent(t.Inherits, g)+" are counted there")
	}
	w.spending()
	if sum.Errors > 0 {
		w.fact("errors", w.S.Error, text.Count(int64(sum.Errors))+", the last: "+firstLine(sum.LastError))
	}
	w.fact("odd lines", w.S.Warning, oddities(t))
}

func firstLine(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if rest != "" {
		line += " …"
	}
	return line
}

func compactions(n int) string {
	if n == 0 {
		return ""
	}
	return ", compacted " + strconv.Itoa(n) + "x"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return text.Count(int64(n)) + " " + what + "s"
}

// oddities is what of the transcript was not understood, "" for nothing of note.
func oddities(t *sessions.Transcript) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{t.Summary.Unreadable, "no JSON"}, {t.Summary.Odd, "without content"}, {t.Summary.Oversized, "too long"}, {t.Summary.Repeated, "repeated"}} {
		if p.n > 0 {
			parts = append(parts, text.Count(int64(p.n))+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}

func (w agentWriter) spending() {
	t, g := w.t.Totals(), w.S.Glyphs
	said := roughly(t.Tokens.Total()) + ": " + roughly(t.Tokens.Input) + " in, " + roughly(t.Tokens.Output) + " out, cache " +
		roughly(t.Tokens.CacheRead) + " read, " + roughly(t.Tokens.CacheWrite()) + " written"
	w.fact("tokens", w.S.Text, said)
	cost := spent(t, g) + " at list prices"
	if t.Unpriced > 0 {
		cost += "; no price is known for " + roughly(t.Unpriced) + " tokens"
	}
	w.fact("cost", w.S.Text, cost)
	for _, m := range w.t.Summary.Models {
		price := widget.Dollars(m.CostUSD)
		if !m.Priced {
			price = "price unknown"
		}
		w.fact("model", w.S.Muted, m.Name+"  "+plural(m.Messages, "message")+", "+roughly(m.Tokens.Total())+" tokens, "+price)
	}
}

func (w agentWriter) tools() {
	list := w.t.Summary.Tools
	if len(list) == 0 {
		return
	}
	t := w.t.Summary.Totals
	remark := plural(t.Calls, "call")
	if t.Failed > 0 {
		remark += ", " + strconv.Itoa(t.Failed) + " failed"
	}
	if t.Denied > 0 {
		remark += ", " + strconv.Itoa(t.Denied) + " denied"
	}
	w.Section("Tools", remark)
	name := widget.Clamp(w.Width-58, 8, 32)
	w.Say(w.S.Muted, "   "+text.Fit("TOOL", name, "")+"  CALLS  FAIL DENIED    MEAN     MAX  LAST")
	for _, u := range list {
		w.tool(u, name)
	}
}

func (w agentWriter) tool(u sessions.ToolUse, name int) {
	number := func(n, width int) string { return text.FitLeft(text.Count(int64(n)), width, "") }
	g := w.S.Glyphs
	mean, most := g.Dash, g.Dash
	if u.Timed > 0 {
		mean, most = widget.Took(u.Mean(), g), widget.Took(u.Max, g)
	}
	last := w.Ago(u.Last)
	if u.Ended < u.Calls {
		last = strconv.Itoa(u.Calls-u.Ended) + " without result"
	}
	w.End(w.Line().Add(w.S.Text, "   "+text.Fit(text.Safe(u.Name, " "), name, g.Ellipsis)).Add(w.S.Text, number(u.Calls, 7)).
		Add(widget.Unless(u.Failed == 0, w.S.Muted, w.S.Failed), number(u.Failed, 6)).Add(widget.Unless(u.Denied == 0, w.S.Muted, w.S.Warning), number(u.Denied, 7)).
		Add(w.S.Muted, text.FitLeft(mean, 8, "")+text.FitLeft(most, 8, "")+"  "+last))
}

// maxTree bounds the subagents that are drawn.
const maxTree = 200

// agents is the subagents as a tree, below who called them.
func (w agentWriter) agents() {
	list := w.t.Agents
	if len(list) == 0 {
		return
	}
	w.Section("Subagents", plural(len(list), "transcript")+"; a reads them")
	children := map[string][]sessions.TranscriptAgent{}
	for _, a := range list {
		children[a.Parent] = append(children[a.Parent], a)
	}
	drawn := 0
	w.branch(children, "", "   ", &drawn)
	if rest := len(list) - drawn; rest > 0 {
		w.Say(w.S.Muted, "   "+text.Count(int64(rest))+" more")
	}
}

func (w agentWriter) branch(children map[string][]sessions.TranscriptAgent, of, indent string, drawn *int) {
	list := children[of]
	delete(children, of) // nobody is its own ancestor
	for i, a := range list {
		if *drawn >= maxTree {
			return
		}
		*drawn++
		bend, below := "|- ", "|  "
		if i == len(list)-1 {
			bend, below = "`- ", "   "
		}
		w.leaf(a, indent+bend)
		if len(indent) < 24 {
			w.branch(children, a.ID, indent+below, drawn)
		}
	}
}

func (w agentWriter) leaf(a sessions.TranscriptAgent, head string) {
	g, t := w.S.Glyphs, a.Summary.Totals
	name := a.Description
	if name == "" {
		name = firstLine(a.Summary.Prompt)
	}
	facts := "  " + plural(t.Calls, "call") + ", " + roughly(t.Tokens.Total()) + " tokens, " + spent(t, g)
	if t.Failed > 0 {
		facts += ", " + strconv.Itoa(t.Failed) + " failed"
	}
	kind := a.Type
	if kind == "" {
		kind = filepath.Base(a.ID)
	}
	l := w.Line().Add(w.S.Border, head).Add(w.S.Accent, text.Safe(kind, " ")+" ")
	room := max(l.Room()-text.Width(facts), 8)
	w.End(l.Add(w.S.Text, text.Cut(text.Safe(name, " "), room, g.Ellipsis)).Add(widget.Unless(t.Failed == 0, w.S.Muted, w.S.Failed), facts))
}
