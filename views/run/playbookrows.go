package run

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

func operationRows(b *lister, d *histories.Detail) {
	event := phaseEvent(d, ace.PhasePersist)
	if event == 0 || d.Delta.PlaybookAfter == "" {
		event = phaseEvent(d, ace.PhaseCurator)
	}
	open := d.UnderReview()
	for i := range d.Delta.Operations {
		if !slices.Contains(open, i+1) { // open operations are in the section Review
			b.add("operation", i, operationRowOf(d, i, event))
		}
	}
}

func operationRowOf(d *histories.Detail, i int, event int64) operationRow {
	op := &d.Delta.Operations[i]
	copied := textRow{"operation", op.Content, event}
	if op.Content == "" {
		copied = textRow{"bullet id", op.BulletID, event}
	}
	return operationRow{copied, d, op}
}

func deltaTitle(_ *histories.Detail, g theme.Glyphs) string { return "Playbook " + g.Delta }

func deltaRemark(detail *histories.Detail, s theme.Styles) (string, theme.Ink) {
	d, g := detail.Delta, s.Glyphs
	summary := console.Short(d.PlaybookBefore, g)
	switch {
	case d.PlaybookAfter == "":
		return summary + ", not merged yet", s.Muted
	case d.PlaybookAfter == d.PlaybookBefore:
		summary += " (unchanged)"
	default:
		summary += " " + g.Arrow + " " + console.Short(d.PlaybookAfter, g)
	}
	summary += widget.If(d.Bullets > 0, ", "+ace.Count(d.Bullets, "bullet"), "")
	if r := detail.Phase.Review; r.Ended() {
		summary += ", " + text.Safe(r.String(), " ")
	}
	return summary, s.Muted
}

// operationRow is one operation on the playbook.
type operationRow struct {
	textRow
	d *histories.Detail
	*ace.Operation
}

// mark returns the mark of the operation, and the ink of its text.
func (r operationRow) mark(s theme.Styles) (theme.Mark, theme.Ink) {
	m := console.OperationMark(r.Operation, s)
	return m, widget.If(r.Outcome == ace.OutcomeProposed, s.Text, m.Ink)
}

func (r operationRow) Draw(l *line) {
	m, ink := r.mark(l.S)
	switch head := m.Glyph + " "; {
	case r.Refused():
		l.add(m.Ink, head+text.Safe(string(r.Outcome)+" "+string(r.Type), " ")+" ")
	case r.Outcome == ace.OutcomeProposed:
		l.add(m.Ink, head+text.Safe(string(r.Type), " ")+" ")
	default:
		l.add(m.Ink, head)
	}
	if r.BulletID != "" {
		l.add(ink, "["+text.Safe(r.BulletID, " ")+"] ")
	}
	old := r.d.OldBullets[r.BulletID].Content
	if r.Type == ace.OpMerge {
		l.add(ink, text.Safe(console.MergeText(r.SourceIDs), " ")+" ")
	}
	switch {
	case r.Type == ace.OpTag:
		l.add(ink, console.TagText(r.Metadata))
	case r.Type == ace.OpUpdate && !r.Refused() && old != "" && r.Content != "":
		words := playbook.Words(widget.Bounded(old, 100), widget.Bounded(r.Content, 100))
		for _, span := range console.HunkSpans(words, l.S, l.S.Text) {
			l.add(span.Ink, text.Safe(span.Text, " "))
		}
	case r.Content != "":
		l.add(ink, oneLine(r.Content))
	case r.Type == ace.OpRemove:
		l.add(ink, oneLine(old))
	}
	if r.Reason != "" {
		l.add(l.S.Muted, " "+l.S.Glyphs.Dash+" because "+oneLine(r.Reason))
	}
}

// Inspect writes the operation as a diff.
func (r operationRow) Inspect(w *inspection) {
	m, ink := r.mark(w.S)
	outcome := cmp.Or(r.Outcome, ace.OutcomeProposed)
	outcomeInk := widget.If(r.Refused(), w.S.Warning, w.S.Success)
	if outcome == ace.OutcomeProposed {
		outcomeInk = w.S.Muted
	}
	w.End(w.Line().Add(w.S.Operation(string(r.Type)).Ink, " "+m.Glyph+" "+text.Safe(string(r.Type), " ")).
		Add(outcomeInk, "  "+text.Safe(string(outcome), " ")))
	w.field("bullet", r.BulletID)
	w.field("section", r.Section)
	w.field("because", r.Reason)
	old, known := r.d.OldBullets[r.BulletID]
	if known && r.Section == "" {
		w.field("section", old.Section)
	}
	w.Say(w.S.Text, "")
	switch {
	case r.Type == ace.OpTag:
		r.inspectCounters(w, old, known)
	case r.Type == ace.OpUpdate && known && r.Content != "":
		w.Prose(" "+w.S.Glyphs.Removed+" ", w.S.Removed, old.Content)
		w.Prose(" "+w.S.Glyphs.Added+" ", w.S.Added, r.Content)
		w.Section("Word by word", "[-removed-] {+added+}")
		words := playbook.Words(widget.Bounded(old.Content, 1000), widget.Bounded(r.Content, 1000))
		w.Spans(" ", w.S.Text, console.HunkSpans(words, w.S, w.S.Text))
	case r.Type == ace.OpUpdate:
		w.Prose(" "+w.S.Glyphs.Updated+" ", widget.If(r.Refused(), w.S.Muted, w.S.Updated), r.Content)
		w.Say(w.S.Muted, "   the previous text is not known here")
	case r.Type == ace.OpRemove && known:
		w.Prose(" "+w.S.Glyphs.Removed+" ", w.S.Removed, old.Content)
	case r.Type == ace.OpRemove:
		w.Say(w.S.Muted, "   the removed text is not known here")
	default:
		w.Prose(" "+m.Glyph+" ", ink, r.Content)
	}
	for _, id := range r.SourceIDs {
		w.Prose(" "+w.S.Glyphs.Removed+" ["+text.Safe(id, " ")+"] ", w.S.Removed, r.d.OldBullets[id].Content)
	}
	if r.d.Delta.Rationale != "" {
		w.Section("Rationale", "")
		w.Prose(" ", w.S.Muted, r.d.Delta.Rationale)
	}
}

// inspectCounters writes what a TAG operation adds to the counters of a bullet.
func (r operationRow) inspectCounters(w *inspection, old histories.OldBullet, known bool) {
	had := map[string]int{"helpful": old.Helpful, "harmful": old.Harmful, "neutral": old.Neutral}
	for _, name := range []string{"helpful", "harmful", "neutral"} {
		n := r.Metadata[name]
		if n == 0 {
			continue
		}
		sign := widget.If(n > 0, "+", "")
		l := w.Line().Add(w.S.Tagged, " "+w.S.Glyphs.Tagged+" "+text.Fit(name, 8, "")+" "+sign+
			strconv.Itoa(n))
		if known {
			l.Add(w.S.Muted, "  "+strconv.Itoa(had[name])+" "+w.S.Glyphs.Arrow+" "+strconv.Itoa(had[name]+n))
		}
		w.End(l)
	}
	if known {
		w.Say(w.S.Text, "")
		w.Prose(" ", w.S.Muted, old.Content)
	}
}

func (r operationRow) title() string {
	return strings.TrimSpace(text.Safe(string(r.Type)+" "+r.BulletID, " "))
}

func (r operationRow) find(has func(string) bool) bool {
	return has(r.Content) || has(r.BulletID) || has(string(r.Type)) || has(r.Reason) || has(string(r.Outcome))
}

func reflectionRows(b *lister, d *histories.Detail) {
	reflector, curator := phaseEvent(d, ace.PhaseReflector), phaseEvent(d, ace.PhaseCurator)
	b.text("insights", 0, textRow{"insights", d.Delta.Insights, reflector})
	for i, t := range d.Delta.BulletTags {
		b.add("tag", i, tagRow{textRow{"bullet id", t.ID, reflector}, d, t.Tag})
	}
	b.text("rationale", 0, textRow{"rationale", d.Delta.Rationale, curator})
	for i, t := range d.Delta.FollowUpActions {
		b.add("follow up", i, textRow{"follow up", t, curator})
	}
}

// tagRow is the tag that the reflector gave to a bullet.
type tagRow struct {
	textRow
	d   *histories.Detail
	tag string
}

func (r tagRow) Draw(l *line) {
	l.add(l.S.Tagged, l.S.Glyphs.Tagged+" ["+text.Safe(r.text, " ")+"] "+text.Safe(r.tag, " "))
}

func (r tagRow) Inspect(w *inspection) {
	w.field("bullet", r.text)
	if b, ok := r.d.OldBullets[r.text]; ok {
		w.field("section", b.Section)
		w.Prose(" ", w.S.Muted, b.Content)
	}
	w.field("tag", r.tag)
}
