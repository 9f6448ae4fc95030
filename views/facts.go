package views

import (
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// trouble is what went wrong: with the run, and with reading it.
func (w *writer) trouble(d *sources.Detail) {
	g := w.s.Glyphs
	if f := d.Phase.Failure; f != nil {
		m := w.s.Status(string(f.Kind))
		label := " " + m.Glyph + " " + orDash(m.Word, g) + ": "
		if f.Type != "" {
			label += text.Safe(f.Type, " ") + ": "
		}
		w.prose(label, w.s.Error, f.Message)
	}
	if d.Err != "" {
		w.prose(" "+g.Failed+" reading: ", w.s.Error, d.Err)
	}
	if len(d.Missing) > 0 {
		w.prose(" "+g.Unknown+" not answered by this workflow: ", w.s.Warning, strings.Join(d.Missing, ", "))
	}
}

// pending is the activities that are under way or being retried.
func (w *writer) pending(d *sources.Detail) {
	for _, p := range d.Pending {
		mark := w.s.Status(string(ace.Running))
		if p.Attempt > 1 {
			mark = w.s.Retry()
		}
		l := w.line().Add(mark.Ink, " "+mark.Glyph+" "+text.Safe(p.Type, " "))
		if p.Attempt > 1 {
			l.Add(mark.Ink, " retrying, attempt "+text.Count(int64(p.Attempt)))
		}
		l.Add(w.s.Muted, "  "+text.Safe(p.State, " "))
		if !p.Since.IsZero() {
			l.Add(w.s.Muted, " for "+text.Span(w.now.Sub(p.Since)))
		}
		w.end(l)
		if p.LastError != "" {
			w.prose("   last error: ", w.s.Error, p.LastError)
		}
	}
}

// skills is a table of the tools that were called.
func (w *writer) skills(a ace.SkillAnswer) {
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
	w.section("Skills", remark)
	room := w.width - 39
	if w.lastFits() {
		room -= 9
	}
	name := clamp(room, 8, 24)
	heading := "   " + text.Fit("SKILL", name, "") + " CALLS  OK FAIL DENIED    P50    P95"
	if w.lastFits() {
		heading += "  LAST"
	}
	w.say(w.s.Muted, heading)
	for _, u := range a.Skills {
		w.skill(u, name)
	}
}

func (w *writer) skill(u ace.SkillUsage, name int) {
	number := func(n, width int) string { return text.FitLeft(text.Count(int64(n)), width, "") }
	l := w.line().Add(w.s.Text, "   "+text.Fit(text.Safe(u.Name, " "), name, w.s.Glyphs.Ellipsis))
	l.Add(w.s.Text, number(u.Calls, 6)+number(u.OK, 4))
	l.Add(unless(u.Failed == 0, w.s.Muted, w.s.Failed), number(u.Failed, 5))
	l.Add(unless(u.Denied == 0, w.s.Muted, w.s.Warning), number(u.Denied, 7))
	l.Add(w.s.Muted, text.FitLeft(tookMS(u.P50MS, w.s.Glyphs), 7, "")+text.FitLeft(tookMS(u.P95MS, w.s.Glyphs), 7, ""))
	last := ""
	switch {
	case !w.lastFits():
	case u.Pending > 0:
		last = "  now"
	default:
		last = "  " + w.ago(u.LastAt)
	}
	w.end(l.Add(w.s.Muted, last))
	if u.LastError != "" {
		w.prose("     last error: ", w.s.Error, u.LastError)
	}
}

// lastFits tells whether the skill table has room for when a skill was last called.
func (w *writer) lastFits() bool { return w.width >= 58 }

func unless(quiet bool, a, b theme.Ink) theme.Ink {
	if quiet {
		return a
	}
	return b
}

// delta is what the run did to the playbook, one operation a line, and why not.
func (w *writer) delta(d ace.DeltaAnswer) {
	if len(d.Operations) == 0 && d.PlaybookAfter == "" {
		return
	}
	g := w.s.Glyphs
	w.section("Playbook "+g.Delta, deltaRemark(d, g))
	for _, op := range d.Operations {
		w.operation(op)
	}
	if len(d.Operations) == 0 {
		w.say(w.s.Muted, "   no operations")
	}
}

func (w *writer) operation(op ace.Operation) {
	glyph, ink := opMark(op.Type, w.s)
	fate := ""
	if op.Fate != "" && op.Fate != ace.FateAccepted {
		glyph, ink = w.s.Glyphs.Refused, w.s.Muted
		fate = text.Safe(string(op.Fate), " ") + " " + text.Safe(string(op.Type), " ") + ": "
	}
	label := "   " + glyph + " " + fate
	if op.BulletID != "" {
		label += "[" + text.Safe(op.BulletID, " ") + "] "
	}
	what := op.Content
	if op.Type == ace.OpTag {
		what = tagText(op.Metadata)
	}
	if what == "" {
		what = strings.ToLower(string(op.Type))
	}
	if text.Width(label) > w.width/2 {
		w.end(w.line().Add(ink, label))
		label = "     "
	}
	w.prose(label, ink, what)
	if op.Reason != "" {
		w.prose("     because ", w.s.Muted, op.Reason)
	}
}

func opMark(t ace.OperationType, s theme.Styles) (string, theme.Ink) {
	switch t {
	case ace.OpAdd:
		return s.Glyphs.Added, s.Added
	case ace.OpUpdate, ace.OpMerge:
		return s.Glyphs.Updated, s.Updated
	case ace.OpRemove:
		return s.Glyphs.Removed, s.Removed
	case ace.OpTag:
		return s.Glyphs.Tagged, s.Tagged
	}
	return s.Glyphs.Unknown, s.Muted
}

// tagText is what a TAG adds to a bullet's counters, in a fixed order.
func tagText(counts map[string]int) string {
	var parts []string
	for _, name := range []string{"helpful", "harmful", "neutral"} {
		if n := counts[name]; n != 0 {
			sign := ""
			if n > 0 {
				sign = "+"
			}
			parts = append(parts, name+" "+sign+strconv.Itoa(n))
		}
	}
	return strings.Join(parts, ", ")
}
