package views

import (
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// engine is what is known of a session on the engine: what waits first.
func (w agentWriter) engine(r sources.AgentSession, st *sources.TalkState, live *sources.Talk) {
	g := w.s.Glyphs
	w.prose(" ", w.s.Strong, orDash(r.Name, g))
	if e := r.Engine.Err; e != "" {
		w.prose(" "+g.Failed+" ", w.s.Error, e)
	}
	if live != nil && live.Err != "" {
		w.prose(" "+g.Failed+" ", w.s.Error, live.Err)
	}
	if st == nil {
		m := stateMark(r, w.now, w.s)
		w.fact("state", m.Ink, m.Glyph+" "+m.Word)
		w.say(w.s.Muted, " reading"+g.Ellipsis)
		return
	}
	w.pendingCalls(st)
	w.talkState(r, st, live)
	w.talkFacts(r, st, live)
	w.queue(st)
	w.turns(st)
	w.asked(st)
}

func (w agentWriter) pendingCalls(st *sources.TalkState) {
	for i, p := range st.Pending {
		if i == 0 {
			w.section(plural(len(st.Pending), "call")+" "+waitWord(len(st.Pending))+" for you", "w shows and answers")
		}
		if i == 5 {
			w.say(w.s.Warning, "   "+strconv.Itoa(len(st.Pending)-i)+" more")
			break
		}
		risk := sources.CallRisk(p, st.Input.WorkingDir)
		l := w.line().Add(w.s.Alert, " "+w.s.Glyphs.Failed+" "+text.Safe(p.Name, " ")+" ")
		w.end(l.Add(w.s.Text, " "+text.Safe(payload(p.Args), " ")))
		if risk != "" {
			w.prose("     ", w.s.Error, "it "+risk)
		}
	}
	if len(st.Pending) > 0 {
		w.say(w.s.Text, "")
	}
}

// talkState is how the session stands, and where that is known from.
func (w agentWriter) talkState(r sources.AgentSession, st *sources.TalkState, live *sources.Talk) {
	m := talkMark(st.Status, st.Exit, w.s)
	said := m.Word
	if st.Current != nil {
		said += ", turn " + strconv.Itoa(st.Current.Turn)
	}
	w.fact("state", m.Ink, m.Glyph+" "+said)
	from := r.Engine.From
	if live != nil {
		from = live.From
	}
	switch {
	case from == sources.FromQuery:
		w.fact("known", w.s.Muted, string(from)+": its worker answers")
	case r.Engine.Open():
		w.fact("known", w.s.Warning, string(sources.FromHistory)+": no worker answers; it goes on when one serves it")
	default:
		w.fact("known", w.s.Muted, string(sources.FromHistory))
	}
	for _, n := range []struct {
		what string
		note string
		ink  theme.Ink
	}{{"stop", noteText(st.Stop), w.s.Warning}, {"interrupt", noteText(st.Interrupt), w.s.Warning}, {"failure", failureText(st.Failure), w.s.Error}} {
		w.fact(n.what, n.ink, n.note)
	}
}

func noteText(n *sources.SessionNote) string {
	if n == nil {
		return ""
	}
	said := "asked for"
	if n.By != "" {
		said += " by " + n.By
	}
	if n.Reason != "" {
		said += ": " + n.Reason
	}
	return said
}

func failureText(f *ace.Failure) string {
	if f == nil {
		return ""
	}
	return strings.TrimPrefix(f.Type+": "+f.Message, ": ")
}

func (w agentWriter) talkFacts(r sources.AgentSession, st *sources.TalkState, live *sources.Talk) {
	in := st.Input
	agent := in.Agent
	if h := st.Host; h != nil {
		agent = strings.TrimSpace(in.Agent+" "+h.Version) + " on " + h.Name
	}
	w.fact("agent", w.s.Text, agent)
	w.fact("model", w.s.Text, r.Model)
	w.fact("directory", w.s.Text, in.WorkingDir)
	w.fact("mode", w.s.Text, in.PermissionMode)
	w.fact("tools", w.s.Text, toolRules(in))
	w.fact("reports", w.s.Text, sources.ReportsText(st))
	w.fact("began", w.s.Text, r.Engine.Start.In(w.loc).Format("2006-01-02 15:04:05")+", "+w.ago(r.Engine.Start))
	w.fact("spent", w.s.Text, roughly(st.Usage.InputTokens)+" tokens in, "+roughly(st.Usage.OutputTokens)+" out, "+dollars(st.Usage.CostUSD)+" as the agent says")
	w.fact("session", w.s.Muted, st.AgentSessionID+" of the agent")
	if t := r.Transcript; t != nil {
		w.fact("file", w.s.Muted, t.Path)
	}
	if live != nil && live.Log != "" {
		w.fact("log", w.s.Muted, live.Log)
	}
	w.fact("workflow", w.s.Muted, r.Key+", run "+r.Engine.RunID)
	if st.Runs > 1 {
		w.fact("runs", w.s.Muted, "this is run "+strconv.Itoa(st.Runs)+" of its workflow")
	}
	if st.Lost > 0 {
		w.fact("lost", w.s.Warning, text.Count(st.Lost)+" messages out of it were not acknowledged in time")
	}
}

// toolRules says which tools may be used without a person.
func toolRules(in sources.TalkInput) string {
	var parts []string
	if len(in.AllowedTools) > 0 {
		parts = append(parts, "allowed "+strings.Join(in.AllowedTools, ", "))
	}
	for _, r := range in.Rules {
		parts = append(parts, r.Tool+"="+string(r.Action))
	}
	switch in.Otherwise {
	case "", "ask":
		parts = append(parts, "else a person is asked")
	default:
		parts = append(parts, "else "+string(in.Otherwise))
	}
	return strings.Join(parts, "; ")
}

func (w agentWriter) queue(st *sources.TalkState) {
	if len(st.Queue) == 0 {
		return
	}
	w.section(plural(len(st.Queue), "message")+" "+waitWord(len(st.Queue))+" for the agent", "")
	for i, m := range st.Queue[:min(len(st.Queue), 5)] {
		said := firstLine(m.Text)
		if m.Callback {
			said = sources.SenderText(m) + ": " + said
		}
		w.prose("   "+strconv.Itoa(i+1)+" ", w.s.Text, said)
	}
}

// shownTurns is how many of the newest turns are listed.
const shownTurns = 8

func (w agentWriter) turns(st *sources.TalkState) {
	if len(st.Recent) == 0 {
		return
	}
	from := max(len(st.Recent)-shownTurns, 0)
	w.section("Turns", plural(st.Turns, "turn")+"; the newest:")
	for _, t := range st.Recent[from:] {
		m := turnMark(string(t.Status), w.s)
		l := w.line().Add(m.Ink, "   "+text.FitLeft(strconv.Itoa(t.Turn), 3, "")+" "+m.Glyph+" ")
		said := "  " + sources.TurnText(t)
		room := max(l.Room()-text.Width(text.Safe(said, " ")), 12)
		w.end(l.Add(w.s.Text, text.Cut(text.Safe(firstLine(t.Prompt), " "), room, w.s.Glyphs.Ellipsis)).Add(w.s.Muted, text.Safe(said, " ")))
	}
}

func turnMark(status string, s theme.Styles) theme.Mark {
	switch status {
	case "completed":
		return s.Status(string(ace.Success))
	case "interrupted":
		return s.Status(string(ace.Cancelled))
	}
	return s.Status(string(ace.Failed))
}

// asked is what became of the calls that the session was asked about.
func (w agentWriter) asked(st *sources.TalkState) {
	if len(st.Tools) == 0 {
		return
	}
	w.section("Asked about", "calls that the agent asked leave for, or that the session makes")
	name := clamp(w.width-40, 8, 32)
	w.say(w.s.Muted, "   "+text.Fit("TOOL", name, "")+"  ASKED ALLOWED DENIED  FAILED")
	for _, c := range st.Tools {
		w.end(w.line().Add(w.s.Text, "   "+text.Fit(text.Safe(c.Name, " "), name, w.s.Glyphs.Ellipsis)).Add(w.s.Text, text.FitLeft(strconv.Itoa(c.Asked), 7, "")).
			Add(w.s.Text, text.FitLeft(strconv.Itoa(c.Allowed), 8, "")).Add(unless(c.Denied == 0, w.s.Muted, w.s.Warning), text.FitLeft(strconv.Itoa(c.Denied), 7, "")).
			Add(unless(c.Failed == 0, w.s.Muted, w.s.Failed), text.FitLeft(strconv.Itoa(c.Failed), 8, "")))
	}
}
