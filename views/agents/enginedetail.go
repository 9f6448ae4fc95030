package agents

import (
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// engine writes a session on the engine, waiting calls first.
func (w sessionWriter) engine(r sessions.Row, st *session.State, live *sessions.Detail) {
	g := w.S.Glyphs
	w.Prose(" ", w.S.Strong, console.OrDash(r.Name, g))
	if e := r.Engine.Err; e != "" {
		w.Prose(" "+g.Failed+" ", w.S.Error, e)
	}
	if live != nil && live.Err != "" {
		w.Prose(" "+g.Failed+" ", w.S.Error, live.Err)
	}
	if st == nil {
		m := stateMark(r, w.Now, w.S)
		w.Fact("state", m.Ink, m.Glyph+" "+m.Word)
		w.Say(w.S.Muted, " reading"+g.Ellipsis)
		return
	}
	w.pendingCalls(st)
	w.status(r, st, live)
	w.engineFacts(r, st, live)
	w.queue(st)
	w.turns(st)
	w.askedTools(st)
}

func (w sessionWriter) pendingCalls(st *session.State) {
	for i, p := range st.Pending {
		if i == 0 {
			w.Section(waiting(len(st.Pending), "call")+" for approval", "press w to answer")
		}
		if i == 5 {
			w.Say(w.S.Warning, "   "+strconv.Itoa(len(st.Pending)-i)+" more")
			break
		}
		risk := sessions.CallRisk(p, st.Input.WorkingDir)
		l := w.Line().Add(w.S.Alert, " "+w.S.Glyphs.Failed+" "+text.Safe(p.Name, " ")+" ")
		w.End(l.Add(w.S.Text, " "+text.Payload(p.Args)))
		if risk != "" {
			w.Prose("     ", w.S.Error, "it "+risk)
		}
	}
	if len(st.Pending) > 0 {
		w.Say(w.S.Text, "")
	}
}

// status writes the state of the session and its source.
func (w sessionWriter) status(r sessions.Row, st *session.State, live *sessions.Detail) {
	m := engineMark(st.Status, st.Exit, w.S)
	summary := m.Word
	if st.Current != nil {
		summary += ", turn " + strconv.Itoa(st.Current.Turn)
	}
	w.Fact("state", m.Ink, m.Glyph+" "+summary)
	from := r.Engine.From
	if live != nil {
		from = live.From
	}
	switch {
	case from == runs.FromQuery:
		w.Fact("source", w.S.Muted, string(from)+": its worker answers")
	case r.Engine.Open():
		w.Fact("source", w.S.Warning,
			string(runs.FromHistory)+": no worker answers; the session continues when one does")
	default:
		w.Fact("source", w.S.Muted, string(runs.FromHistory))
	}
	w.Fact("stop", w.S.Warning, noteText(st.Stop))
	w.Fact("interrupt", w.S.Warning, noteText(st.Interrupt))
	if f := st.Failure; f != nil {
		w.Fact("failure", w.S.Error, strings.TrimPrefix(f.Type+": "+f.Message, ": "))
	}
}

func noteText(n *session.Note) string {
	if n == nil {
		return ""
	}
	summary := "requested"
	summary += widget.If(n.By != "", " by "+n.By, "")
	summary += widget.If(n.Reason != "", ": "+n.Reason, "")
	return summary
}

func (w sessionWriter) engineFacts(r sessions.Row, st *session.State, live *sessions.Detail) {
	in := st.Input
	w.Fact("agent", w.S.Text, sessions.AgentText(st))
	w.Fact("moved", w.S.Text, sessions.MovedText(st))
	w.Fact("blocked", w.S.Alert, sessions.BlockedText(st))
	w.Fact("model", w.S.Text, r.Model)
	w.Fact("directory", w.S.Text, in.WorkingDir)
	w.Fact("mode", w.S.Text, in.PermissionMode)
	w.Fact("tools", w.S.Text, toolRules(in))
	w.Fact("reports", w.S.Text, sessions.ReportsText(st))
	w.Fact("started", w.S.Text, r.Engine.Start.In(w.Loc).Format("2006-01-02 15:04:05")+", "+
		w.Ago(r.Engine.Start))
	w.Fact("started by", w.S.Text, in.By)
	t := r.Totals.Tokens
	w.Fact("spent", w.S.Text, text.ShortCount(t.Total())+" tokens: "+text.ShortCount(t.Input)+" in, "+
		text.ShortCount(t.Output)+" out, "+console.CostCell(r.Totals.Usage(), w.S.Glyphs)+" "+r.CostSource())
	w.Fact("session", w.S.Muted, st.AgentSessionID+" of the agent")
	if t := r.Transcript; t != nil {
		w.Fact("file", w.S.LinkedFile(w.S.Muted, t.Path), t.Path)
	}
	if live != nil && live.Log != "" {
		w.Fact("log", w.S.Muted, live.Log)
	}
	w.Fact("workflow", w.S.Muted, r.Key+", run "+r.Engine.RunID)
	if st.Runs > 1 {
		w.Fact("runs", w.S.Muted, "this is run "+strconv.Itoa(st.Runs)+" of its workflow")
	}
	if st.Lost > 0 {
		w.Fact("lost", w.S.Warning, ace.Count(st.Lost, "message")+" from it not acknowledged in time")
	}
}

// toolRules lists which tools are allowed without asking the user.
func toolRules(in session.Input) string {
	var parts []string
	if len(in.AllowedTools) > 0 {
		parts = append(parts, "allowed "+strings.Join(in.AllowedTools, ", "))
	}
	for _, r := range in.Rules {
		parts = append(parts, r.Tool+"="+string(r.Action))
	}
	otherwise := string(in.DefaultAction)
	if otherwise == "" || otherwise == "ask" {
		otherwise = "ask the user"
	}
	parts = append(parts, "otherwise "+otherwise)
	return strings.Join(parts, "; ")
}

func (w sessionWriter) queue(st *session.State) {
	if len(st.Queue) == 0 {
		return
	}
	w.Section(waiting(len(st.Queue), "message")+" for the agent", "")
	for i, m := range st.Queue[:min(len(st.Queue), 5)] {
		summary := firstLine(m.Text)
		if m.Callback {
			summary = sessions.SenderText(m) + ": " + summary
		}
		w.Prose("   "+strconv.Itoa(i+1)+" ", w.S.Text, summary)
	}
}

// shownTurns is the number of newest turns and runs listed.
const shownTurns = 8

func (w sessionWriter) turns(st *session.State) {
	if len(st.Recent) == 0 {
		return
	}
	from := max(len(st.Recent)-shownTurns, 0)
	w.Section("Turns", ace.Count(st.Turns, "turn")+"; the newest:")
	for _, t := range st.Recent[from:] {
		m := turnMark(string(t.Status), w.S)
		l := w.Line().Add(m.Ink, "   "+text.FitLeft(strconv.Itoa(t.Turn), 3, "")+" "+m.Glyph+" ")
		summary := text.Safe("  "+sessions.TurnText(t), " ")
		prompt := text.Safe(firstLine(t.Prompt), " ")
		space := max(l.Rest()-text.Width(summary), 12)
		w.End(l.Add(w.S.Text, text.Cut(prompt, space, w.S.Glyphs.Ellipsis)).Add(w.S.Muted, summary))
	}
}

func turnMark(status string, s theme.Styles) theme.Mark {
	switch status {
	case "completed":
		return s.Status(string(ace.Completed))
	case "interrupted":
		return s.Status(string(ace.Canceled))
	}
	return s.Status(string(ace.Failed))
}

// askedTools writes the outcomes of the tool calls that needed a decision.
func (w sessionWriter) askedTools(st *session.State) {
	if len(st.Tools) == 0 {
		return
	}
	w.Section("Decisions", "tool calls that needed permission, and calls of the session")
	name := widget.Clamp(w.Width-40, 8, 32)
	w.Say(w.S.Muted, "   "+text.Fit("TOOL", name, "")+"  ASKED ALLOWED DENIED  FAILED")
	for _, c := range st.Tools {
		w.End(w.counts(c.Name, name, count{c.Asked, 7, w.S.Text}, count{c.Allowed, 8, w.S.Text},
			count{c.Denied, 7, w.S.Warning}, count{c.Failed, 8, w.S.Failed}))
	}
}
