package run

import (
	"encoding/json"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

func skillRows(b *lister, d *histories.Detail) {
	for i := range d.Skills.Skills {
		u := &d.Skills.Skills[i]
		b.add("skill", i, skillRow{textRow: textRow{name: "skill",
			text: strings.TrimSpace(u.Name + " " + u.LastError)}, d: d, u: u})
	}
	for _, st := range d.Phase.Steps {
		if st.Phase == ace.PhaseSkills && st.Usage != nil && len(d.Skills.Skills) > 0 {
			b.add("usage", 0, usageRow{textRow{event: phaseEvent(d, ace.PhaseSkills)}, st.Usage})
		}
	}
}

func skillsRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	summary := ace.Count(d.Skills.Total, "call")
	summary += widget.If(d.Skills.Dropped > 0, ", "+ace.Number(d.Skills.Dropped)+" not kept", "")
	summary += widget.If(d.Skills.Unreadable > 0, ", "+ace.Number(d.Skills.Unreadable)+" unreadable", "")
	return summary, s.Muted
}

// skillRow is the usage of one skill.
type skillRow struct {
	textRow
	ages
	d *histories.Detail
	u *ace.SkillUsage
}

func (r skillRow) Draw(l *line) {
	u, s, g := r.u, l.S, l.S.Glyphs
	number := func(n, width int, word string, ink theme.Ink) {
		if n == 0 {
			ink = s.Muted
		}
		l.add(ink, text.FitLeft(ace.Number(n), width, "")+word)
	}
	l.add(s.Text, text.Fit(text.Safe(u.Name, " "), widget.Clamp(l.Width-66, 10, 24), g.Ellipsis))
	calls := widget.If(u.Calls == 1, " call ", " calls")
	number(u.Calls, 6, calls, s.Text)
	number(u.OK, 6, " ok", s.Text)
	number(u.Failed, 4, " failed", s.Failed)
	number(u.Denied, 4, " denied", s.Warning)
	if u.Pending > 0 {
		number(u.Pending, 4, " pending", s.Running)
	}
	l.add(s.Muted, "  p50 "+widget.Milliseconds(u.P50MS, g)+"  p95 "+widget.Milliseconds(u.P95MS, g))
	if l.whole && !u.LastAt.IsZero() {
		l.add(s.Muted, ", last "+text.Span(l.Now.Sub(u.LastAt))+" ago")
	}
	if u.LastError != "" {
		l.add(s.Muted, "  last error: ").add(s.Error, oneLine(u.LastError))
	}
}

// Inspect writes the numbers of the skill, and its newest calls that did not succeed.
func (r skillRow) Inspect(w *inspection) {
	u := r.u
	for _, f := range []struct {
		name string
		n    int
	}{{"calls", u.Calls}, {"ok", u.OK}, {"failed", u.Failed}, {"denied", u.Denied}, {"pending", u.Pending}} {
		w.field(f.name, ace.Number(f.n))
	}
	w.field("p50", widget.Milliseconds(u.P50MS, w.S.Glyphs))
	w.field("p95", widget.Milliseconds(u.P95MS, w.S.Glyphs))
	if !u.LastAt.IsZero() {
		w.field("last call", w.Ago(u.LastAt))
	}
	if u.LastError != "" {
		w.Prose(" last error  ", w.S.Error, u.LastError)
	}
	const most = 20
	written := 0
	for i := r.d.Calls.Len() - 1; i >= 0 && written < most; i-- {
		c := callRow{r.d.Calls.At(i)}
		if c.Name != u.Name || !c.failed() {
			continue
		}
		if written == 0 {
			w.Section("Not ok", "newest first, at most "+strconv.Itoa(most))
		}
		writeRows(w.Writer, []listedRow{{Row: c}}, allRows)
		written++
	}
}

// Event returns the event of the last call of the skill.
func (r skillRow) Event() int64 {
	for i := r.d.Calls.Len() - 1; i >= 0; i-- {
		if c := r.d.Calls.At(i); c.Name == r.u.Name {
			return c.Event()
		}
	}
	return 0
}

func (r skillRow) title() string { return "skill " + text.Safe(r.u.Name, " ") }

// usageRow is the usage of the skills phase, which workers report for all calls together.
type usageRow struct {
	textRow
	u *ace.Usage
}

func (r usageRow) Draw(l *line) {
	l.add(l.S.Muted, "all calls: "+console.UsageText(*r.u)+" (not reported per skill)")
}

func (r usageRow) Inspect(w *inspection) {
	w.field("all calls", console.UsageText(*r.u))
	w.Say(w.S.Muted, "")
	w.Prose(" ", w.S.Muted, "Workers report tokens and cost for the skills phase, not for each call.")
}

func (r usageRow) title() string { return "Skills" }

func callRows(b *lister, d *histories.Detail) {
	if d.CallLog != nil {
		b.add("call log", 0, callLogRow{textRow{"artifact", d.CallLog.SHA256, phaseEvent(d, ace.PhaseSkills)},
			d.CallLog})
	}
	d.Calls.All(func(i int, c *histories.ToolCall) bool {
		b.add("call", i, callRow{c})
		return true
	})
}

func callsRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	summary := ace.Count(d.Calls.Len(), "call") + ", oldest first"
	if n := d.Calls.Cut(); n > 0 {
		summary += ", payloads of " + ace.Number(n) + " cut"
	}
	return summary, s.Muted
}

func (w *inspection) calls() {
	failed := 0
	w.d.Calls.All(func(_ int, c *histories.ToolCall) bool {
		if (callRow{c}).failed() {
			failed++
		}
		return true
	})
	w.field("calls", ace.Number(w.d.Calls.Len()))
	w.field("not ok", ace.Number(failed))
}

// callLogRow is the artifact with the full calls of the run.
type callLogRow struct {
	textRow
	ref *ace.Ref
}

func (r callLogRow) Draw(l *line) {
	l.add(l.S.Accent, "full calls").add(l.S.Muted, "  "+console.RefText(*r.ref))
}

func (r callLogRow) Inspect(w *inspection) {
	w.Prose(" ", w.S.Muted, "The calls were too large for the history, which contains previews. "+
		"This artifact contains the full calls, one JSON object per line.")
	w.refs(r.refs())
}

func (r callLogRow) refs() []ace.Ref { return []ace.Ref{*r.ref} }

type callRow struct{ *histories.ToolCall }

func (r callRow) Draw(l *line) {
	m, s := callMark(r.Call, l.S), l.S
	l.add(s.Muted, l.clock(r.At)+" ").add(m.Ink, m.Glyph+" "+text.Safe(r.Name, " "))
	l.add(s.Text, "("+text.Cut(text.Payload(beginning(r.Args)), max(l.Width/2, 10), s.Glyphs.Ellipsis)+")")
	if m.Word != "" {
		l.add(m.Ink, " "+m.Word)
	}
	if r.DurationMS > 0 {
		l.add(s.Muted, " "+widget.Milliseconds(r.DurationMS, s.Glyphs))
	}
	switch {
	case r.Error != "":
		l.add(s.Error, " "+oneLine(r.Error))
	case len(r.Result) > 0:
		l.add(s.Muted, " "+s.Glyphs.Arrow+" ").add(s.Text, resultText(r.Result))
	}
}

// resultText returns a result in one line, or a description of it if it is not text.
func resultText(raw []byte) string {
	if kind, size := widget.EncodedIn(raw); kind != "" {
		return kind + ", " + widget.SizeText(int64(size))
	}
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw[:min(len(raw), widget.MaxPayload)], &s) == nil && widget.Binary([]byte(s)) {
			return "binary, " + widget.SizeText(int64(len(s)))
		}
	}
	return text.Payload(beginning(raw))
}

// beginning returns as much of a payload as a row can show.
func beginning(raw []byte) []byte { return raw[:min(len(raw), 4096)] }

func (r callRow) Inspect(w *inspection) {
	m := callMark(r.Call, w.S)
	word := m.Word
	if word == "" {
		word = "ok"
	}
	w.End(w.Line().Add(m.Ink, " "+m.Glyph+" "+word).Add(w.S.Strong, "  "+text.Safe(r.Name, " ")).
		Add(w.S.Muted, "  "+widget.Milliseconds(r.DurationMS, w.S.Glyphs)))
	w.field("id", r.ID)
	w.time("at", r.At)
	var events []string
	for _, e := range []struct {
		id   int64
		what string
	}{{r.UseEvent, "started"}, {r.ResultEvent, "ended"}, {r.SessionEvent, "in the result of the phase"}} {
		if e.id != 0 {
			events = append(events, ace.Number(e.id)+" "+e.what)
		}
	}
	w.field("events", strings.Join(events, ", "))
	if r.Error != "" {
		w.Prose(" error       ", w.S.Error, r.Error)
	}
	if r.ToolCall.Cut {
		w.Prose(" ", w.S.Warning, "Only the beginning of the payloads is kept here. The event has all of them.")
	}
	w.payload("Arguments", r.Args, "--call", r.ID, "--args")
	w.payload("Result", r.Result, "--call", r.ID)
	w.refs(r.refs())
}

func (r callRow) Copy() (what, text string) { return "call id", r.ID }
func (r callRow) title() string             { return "call " + text.Safe(r.Name, " ") }

func (r callRow) failed() bool {
	s := r.State()
	return s == ace.CallDenied || s == ace.CallFailed
}

func (r callRow) refs() []ace.Ref {
	return append(histories.RefsIn(r.Args), histories.RefsIn(r.Result)...)
}

func (r callRow) find(has func(string) bool) bool {
	return has(r.Name) || has(r.ID) || has(string(r.Args)) || has(string(r.Result)) || has(r.Error)
}

// payload returns the result, or the arguments of a call without one.
func (r callRow) payload() (what string, raw []byte) {
	if len(r.Result) == 0 {
		return "arguments", r.Args
	}
	return "result", r.Result
}

// callMark returns the mark of a call's outcome. Its word is "" if the call succeeded and the result says
// enough.
func callMark(c ace.Call, s theme.Styles) theme.Mark {
	switch c.State() {
	case ace.CallDenied:
		return theme.Mark{Glyph: s.Status(string(ace.Canceled)).Glyph, Word: "denied", Ink: s.Warning}
	case ace.CallOK:
		return theme.Mark{Glyph: s.Glyphs.Success, Ink: s.Success}
	case ace.CallPending:
		m := s.Status(string(ace.Running))
		m.Word = "no result yet"
		return m
	}
	return s.Status(string(ace.Failed))
}
