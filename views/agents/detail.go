package agents

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// detail shows the selected session: facts, tools, subagents, and the end of its conversation.
type detail struct {
	*Agents
	console.Reader
	tailOf    *transcripts.Conversation // that tailLines were drawn from, with this width and these styles
	tailWidth int
	tailLines []string
}

// shownSession is the session that the lines were written from.
type shownSession struct {
	session *transcripts.Session
	engine  *sessions.EngineSession
	live    *sessions.Detail
	read    *transcripts.Conversation
	second  int64
}

// tailEntries is the number of last entries shown of a conversation.
const tailEntries = 40

func newDetail(a *Agents) *detail {
	return &detail{Agents: a, Reader: console.NewReader("Session", a.location)}
}

func (v *detail) SetStyles(s theme.Styles) {
	v.Reader.SetStyles(s)
	v.tailOf = nil
}

func (v *detail) Title() string {
	if r, ok := v.Row(); ok {
		return "Session " + text.Safe(r.ID, " ")
	}
	return "Session"
}

func (v *detail) Bindings() []tui.Binding {
	list := append(widget.Motions("agent", v),
		console.Key("agent.read", "read the whole conversation", "read",
			func(s tui.Shell) { s.Open("conversation") }, "enter"),
		console.Key("agent.branch", "show the conversation of the next subagent, then of the session again",
			"subagent", func(s tui.Shell) { v.nextPart(s, 1) }, "B"))
	return slices.Concat(list, v.actionBindings("agent", v.waiting), v.runBindings("agent", v.openRuns))
}

func (v *detail) Copy() (what, content string) {
	if r, ok := v.Row(); ok && r.Engine != nil {
		return "workflow ID", r.Key
	}
	if r, ok := v.Row(); ok && r.Transcript != nil {
		return "transcript path", r.Transcript.Path
	}
	return "", ""
}

func (v *detail) Refresh() { v.refresh() }

func (v *detail) Draw(now time.Time, focused bool) []string {
	r, ok := v.Row()
	if !ok || r.Transcript == nil && r.Engine == nil {
		return v.Message(nil, "no session is selected")
	}
	of := shownSession{r.Transcript, r.Engine, v.live(), v.Loaded(), now.Unix()}
	return v.Show(r.Key, of, now, focused, func(writer *widget.Writer) {
		writer.Labels = 10
		w := sessionWriter{writer, r.Transcript}
		if r.Engine != nil {
			w.engine(r, v.state(r), v.live())
			w.runs(r, v.runsOf(r))
		} else {
			w.facts(r)
		}
		if w.t != nil {
			w.tools()
			w.agentTree()
		}
		v.tail(w)
	})
}

// tail writes the end of the conversation.
func (v *detail) tail(w sessionWriter) {
	title := "Conversation"
	if a, ok := v.part(); ok {
		title += " of subagent " + text.Safe(a.ID, " ")
	}
	c := v.Loaded()
	if c == nil {
		w.Section(title, "reading"+w.S.Glyphs.Ellipsis)
		return
	}
	from := max(len(c.Entries)-tailEntries, 0)
	remark := "enter opens the whole conversation"
	if from+c.First > 0 {
		all := ace.Number(len(c.Entries) + c.First)
		remark = "the last " + strconv.Itoa(len(c.Entries)-from) + " of " + all + "; " + remark
	}
	w.Section(title, remark)
	if c.Err != "" {
		w.Prose(" "+w.S.Glyphs.Failed+" ", w.S.Error, c.Err)
	}
	if v.tailOf != c || v.tailWidth != v.Width {
		v.tailOf, v.tailWidth, v.tailLines = c, v.Width, nil
		p := entryPainter{s: v.Styles, width: v.Width, loc: v.location}
		for _, e := range c.Entries[from:] {
			v.tailLines = append(v.tailLines, p.lines(e, false)...)
		}
	}
	w.Lines = append(w.Lines, v.tailLines...)
}

// sessionWriter writes the facts of a session.
type sessionWriter struct {
	*widget.Writer
	t *transcripts.Session
}

func (w sessionWriter) facts(r sessions.Row) {
	t, sum, g := w.t, w.t.Summary, w.S.Glyphs
	w.Prose(" ", w.S.Strong, console.OrDash(t.Name(), g))
	if t.Err != "" {
		w.Prose(" "+g.Failed+" ", w.S.Error, t.Err)
	}
	m := stateMark(r, w.Now, w.S)
	summary := m.Word + ", last line " + w.Ago(t.Last())
	summary += widget.If(r.Unfinished, ", its last turn is incomplete", "")
	w.Fact("state", m.Ink, m.Glyph+" "+summary)
	w.Fact("directory", w.S.LinkedFile(w.S.Text, t.Dir()), t.Dir())
	if sum.Title != "" {
		w.Fact("prompt", w.S.Text, firstLine(sum.Prompt))
	}
	if !sum.Started.IsZero() {
		at := sum.Started.In(w.Loc).Format("2006-01-02 15:04:05")
		w.Fact("started", w.S.Text, at+", over "+text.Span(sum.Last.Sub(sum.Started)))
	}
	w.Fact("git", w.S.Text, sum.Branch)
	w.Fact("agent", w.S.Text, strings.TrimSpace(string(t.Agent)+" "+sum.Version))
	length := ace.Count(sum.Turns, "turn") + ", " + ace.Count(sum.Messages, "message")
	length += widget.If(sum.Compactions > 0, ", compacted "+strconv.Itoa(sum.Compactions)+"x", "")
	w.Fact("length", w.S.Text, length)
	if t.ForkedFrom != "" {
		w.Fact("forked", w.S.Text, "from "+t.ForkedFrom+": "+ace.Count(t.Shared, "line")+", "+
			console.CostCell(t.Inherits.Totals.Usage(), g)+" counted there")
	}
	w.spending(r)
	if sum.Errors > 0 {
		w.Fact("errors", w.S.Error, ace.Number(sum.Errors)+", the last: "+firstLine(sum.LastError))
	}
	w.Fact("skipped", w.S.Warning, oddLines(t))
}

func firstLine(s string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line += widget.If(rest != "", " …", "")
	return line
}

// oddLines counts the lines that could not be used, by reason.
func oddLines(t *transcripts.Session) string {
	var parts []string
	repeated := t.Summary.Repeated
	if t.ForkedFrom != "" {
		repeated = 0 // copied lines
	}
	for _, p := range []struct {
		n    int
		what string
	}{{t.Summary.Unreadable, "not JSON"}, {t.Summary.Odd, "without content"},
		{t.Summary.Oversized, "too long"},
		{repeated, "repeated"}} {
		if p.n > 0 {
			parts = append(parts, ace.Number(p.n)+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}

func (w sessionWriter) spending(r sessions.Row) {
	t, g := r.Totals, w.S.Glyphs
	w.Fact("tokens", w.S.Text, fmt.Sprintf("%s: %s in, %s out, cache %s read, %s written",
		text.ShortCount(t.Tokens.Total()), text.ShortCount(t.Tokens.Input), text.ShortCount(t.Tokens.Output),
		text.ShortCount(t.Tokens.CacheRead), text.ShortCount(t.Tokens.CacheWrite())))
	cost := console.CostCell(t.Usage(), g) + " " + r.CostSource()
	cost += widget.If(t.Unpriced > 0, "; no known price for "+text.ShortCount(t.Unpriced)+" tokens", "")
	w.Fact("cost", w.S.Text, cost)
	for _, m := range w.t.Models() {
		price := ace.Dollars(m.CostUSD)
		if !m.Priced {
			price = "price unknown"
		}
		w.Fact("model", w.S.Muted, m.Name+"  "+ace.Count(m.Messages, "message")+", "+
			text.ShortCount(m.Tokens.Total())+" tokens, "+price)
	}
}

func (w sessionWriter) tools() {
	list := w.t.Summary.Tools
	if len(list) == 0 {
		return
	}
	t := w.t.Summary.Totals
	remark := ace.Count(t.Calls, "call")
	remark += widget.If(t.Failed > 0, ", "+strconv.Itoa(t.Failed)+" failed", "")
	remark += widget.If(t.Denied > 0, ", "+strconv.Itoa(t.Denied)+" denied", "")
	w.Section("Tools", remark)
	name := widget.Clamp(w.Width-58, 8, 32)
	w.Say(w.S.Muted, "   "+text.Fit("TOOL", name, "")+"  CALLS  FAIL DENIED    MEAN     MAX  LAST")
	g := w.S.Glyphs
	for _, u := range list {
		mean, most := g.Dash, g.Dash
		if u.Timed > 0 {
			mean, most = widget.Milliseconds(u.MeanMS(), g), widget.Milliseconds(u.MaxMS, g)
		}
		last := widget.If(u.Ended < u.Calls, strconv.Itoa(u.Calls-u.Ended)+" without result", w.Ago(u.Last))
		w.End(w.counts(u.Name, name, count{u.Calls, 7, w.S.Text}, count{u.Failed, 6, w.S.Failed},
			count{u.Denied, 7, w.S.Warning}).
			Add(w.S.Muted, text.FitLeft(mean, 8, "")+text.FitLeft(most, 8, "")+"  "+last))
	}
}

// count is a number in a column. Zero is muted.
type count struct {
	n, width int
	ink      theme.Ink
}

// counts writes a line with a name and counts.
func (w sessionWriter) counts(name string, width int, list ...count) *text.Line {
	l := w.Line().Add(w.S.Text, "   "+text.Fit(text.Safe(name, " "), width, w.S.Glyphs.Ellipsis))
	for _, c := range list {
		ink := widget.If(c.n == 0 && c.ink != w.S.Text, w.S.Muted, c.ink)
		l.Add(ink, text.FitLeft(ace.Number(c.n), c.width, ""))
	}
	return l
}

// maxTree is the largest number of subagents drawn.
const maxTree = 200

// agentTree writes the subagents as a tree, below their callers.
func (w sessionWriter) agentTree() {
	list := w.t.Agents
	if len(list) == 0 {
		return
	}
	w.Section("Subagents", ace.Count(len(list), "transcript")+"; B reads them")
	children := map[string][]transcripts.Agent{}
	for _, a := range list {
		children[a.Parent] = append(children[a.Parent], a)
	}
	drawn := 0
	w.subagents(children, "", "   ", &drawn)
	if rest := len(list) - drawn; rest > 0 {
		w.Say(w.S.Muted, "   "+ace.Number(rest)+" more")
	}
}

func (w sessionWriter) subagents(children map[string][]transcripts.Agent, of, indent string, drawn *int) {
	list := children[of]
	delete(children, of) // stop at a cycle
	for i, a := range list {
		if *drawn >= maxTree {
			return
		}
		*drawn++
		bend, below := "|- ", "|  "
		if i == len(list)-1 {
			bend, below = "`- ", "   "
		}
		w.subagent(a, indent+bend)
		if len(indent) < 24 {
			w.subagents(children, a.ID, indent+below, drawn)
		}
	}
}

func (w sessionWriter) subagent(a transcripts.Agent, head string) {
	g, t := w.S.Glyphs, a.Summary.Totals
	name := cmp.Or(a.Description, firstLine(a.Summary.Prompt))
	facts := "  " + ace.Count(t.Calls, "call") + ", " + text.ShortCount(t.Tokens.Total()) + " tokens, " +
		console.CostCell(t.Usage(), g)
	facts += widget.If(t.Failed > 0, ", "+strconv.Itoa(t.Failed)+" failed", "")
	kind := cmp.Or(a.Type, filepath.Base(a.ID))
	l := w.Line().Add(w.S.Border, head).Add(w.S.Accent, text.Safe(kind, " ")+" ")
	space := max(l.Rest()-text.Width(facts), 8)
	w.End(l.Add(w.S.Text, text.Cut(text.Safe(name, " "), space, g.Ellipsis)).
		Add(widget.If(t.Failed == 0, w.S.Muted, w.S.Failed), facts))
}
