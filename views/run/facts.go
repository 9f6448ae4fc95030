package run

import (
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// trouble is what went wrong: with the run, and with reading it.
func trouble(w *widget.Writer, d *histories.Detail) {
	g := w.S.Glyphs
	if f := d.Phase.Failure; f != nil {
		m := w.S.Status(string(f.Kind))
		label := " " + m.Glyph + " " + console.OrDash(m.Word, g) + ": "
		if f.Type != "" {
			label += text.Safe(f.Type, " ") + ": "
		}
		w.Prose(label, w.S.Error, f.Message)
	}
	if d.Err != "" {
		w.Prose(" "+g.Failed+" reading: ", w.S.Error, d.Err)
	}
	if len(d.Missing) > 0 {
		w.Prose(" "+g.Unknown+" not answered by this workflow: ", w.S.Warning, strings.Join(d.Missing, ", "))
	}
}

// pending is the activities that are under way or being retried.
func pending(w *widget.Writer, d *histories.Detail) {
	for _, p := range d.Pending {
		mark := w.S.Status(string(ace.Running))
		if p.Attempt > 1 {
			mark = w.S.Retry()
		}
		l := w.Line().Add(mark.Ink, " "+mark.Glyph+" "+text.Safe(p.Type, " "))
		if p.Attempt > 1 {
			l.Add(mark.Ink, " retrying, attempt "+text.Count(int64(p.Attempt)))
		}
		l.Add(w.S.Muted, "  "+text.Safe(p.State, " "))
		if !p.Since.IsZero() {
			l.Add(w.S.Muted, " for "+text.Span(w.Now.Sub(p.Since)))
		}
		w.End(l)
		if p.LastError != "" {
			w.Prose("   last error: ", w.S.Error, p.LastError)
		}
	}
}

// skills is a table of the tools that were called.
func skills(w *widget.Writer, a ace.SkillAnswer) {
	if len(a.Skills) == 0 {
		return
	}
	remark := text.Count(int64(a.Total)) + " calls"
	if a.Dropped > 0 {
		remark += ", " + text.Count(int64(a.Dropped)) + " not kept"
	}
	if a.Unreadable > 0 {
		remark += ", " + text.Count(int64(a.Unreadable)) + " unreadable"
	}
	w.Section("Skills", remark)
	room := w.Width - 39
	if lastFits(w) {
		room -= 9
	}
	name := widget.Clamp(room, 8, 24)
	heading := "   " + text.Fit("SKILL", name, "") + " CALLS  OK FAIL DENIED    P50    P95"
	if lastFits(w) {
		heading += "  LAST"
	}
	w.Say(w.S.Muted, heading)
	for _, u := range a.Skills {
		skill(w, u, name)
	}
}

func skill(w *widget.Writer, u ace.SkillUsage, name int) {
	number := func(n, width int) string { return text.FitLeft(text.Count(int64(n)), width, "") }
	l := w.Line().Add(w.S.Text, "   "+text.Fit(text.Safe(u.Name, " "), name, w.S.Glyphs.Ellipsis))
	l.Add(w.S.Text, number(u.Calls, 6)+number(u.OK, 4))
	l.Add(widget.Unless(u.Failed == 0, w.S.Muted, w.S.Failed), number(u.Failed, 5))
	l.Add(widget.Unless(u.Denied == 0, w.S.Muted, w.S.Warning), number(u.Denied, 7))
	l.Add(w.S.Muted, text.FitLeft(widget.TookMS(u.P50MS, w.S.Glyphs), 7, "")+text.FitLeft(widget.TookMS(u.P95MS, w.S.Glyphs), 7, ""))
	last := ""
	switch {
	case !lastFits(w):
	case u.Pending > 0:
		last = "  now"
	default:
		last = "  " + w.Ago(u.LastAt)
	}
	w.End(l.Add(w.S.Muted, last))
	if u.LastError != "" {
		w.Prose("     last error: ", w.S.Error, u.LastError)
	}
}

// lastFits tells whether the skill table has room for when a skill was last called.
func lastFits(w *widget.Writer) bool { return w.Width >= 58 }

// delta is what the run did to the playbook, one operation a line, and why not.
func delta(w *widget.Writer, d ace.DeltaAnswer) {
	if len(d.Operations) == 0 && d.PlaybookAfter == "" {
		return
	}
	g := w.S.Glyphs
	w.Section("Playbook "+g.Delta, deltaRemark(d, g))
	for _, op := range d.Operations {
		console.Operation(w, op)
	}
	if len(d.Operations) == 0 {
		w.Say(w.S.Muted, "   no operations")
	}
}
