package run

import (
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// operationWhole is a change to the playbook as a diff.
func (w *inspection) operationWhole(op ace.Operation) {
	glyph, ink := console.OpMark(op.Type, w.S)
	fate := string(op.Outcome)
	if fate == "" {
		fate = "proposed"
	}
	fateInk := w.S.Success
	if refused(op) {
		glyph, fateInk = w.S.Glyphs.Rejected, w.S.Warning
	}
	w.End(w.Line().Add(ink, " "+glyph+" "+text.Safe(string(op.Type), " ")).Add(fateInk, "  "+text.Safe(fate, " ")))
	w.field("bullet", op.BulletID)
	w.field("section", op.Section)
	if op.Reason != "" {
		w.field("because", op.Reason)
	}
	old, known := w.d.Old[op.BulletID]
	if known && op.Section == "" {
		w.field("section", old.Section)
	}
	w.Say(w.S.Text, "")
	switch {
	case op.Type == ace.OpTag:
		w.counters(op, old, known)
	case op.Type == ace.OpUpdate && known && op.Content != "":
		w.wordDiff(old.Content, op.Content)
	case op.Type == ace.OpUpdate:
		w.Prose(" "+w.S.Glyphs.Updated+" ", widget.Unless(refused(op), w.S.Muted, w.S.Updated), op.Content)
		w.Say(w.S.Muted, "   what it said before is not known here")
	case op.Type == ace.OpRemove && known:
		w.Prose(" "+w.S.Glyphs.Removed+" ", w.S.Removed, old.Content)
	case op.Type == ace.OpRemove:
		w.Say(w.S.Muted, "   what it said is not known here")
	default:
		w.Prose(" "+glyph+" ", widget.Unless(refused(op), w.S.Muted, ink), op.Content)
	}
	if w.d.Delta.Rationale != "" {
		w.Section("Rationale", "")
		w.Prose(" ", w.S.Muted, w.d.Delta.Rationale)
	}
}

func (w *inspection) counters(op ace.Operation, old histories.OldBullet, known bool) {
	had := map[string]int{"helpful": old.Helpful, "harmful": old.Harmful, "neutral": old.Neutral}
	for _, name := range []string{"helpful", "harmful", "neutral"} {
		n := op.Metadata[name]
		if n == 0 {
			continue
		}
		l := w.Line().Add(w.S.Tagged, " "+w.S.Glyphs.Tagged+" "+text.Fit(name, 8, "")+" ")
		if n > 0 {
			l.Add(w.S.Tagged, "+")
		}
		l.Add(w.S.Tagged, strconv.Itoa(n))
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

// wordDiff shows the old text, the new one, and both in one with what changed between
// brackets.
func (w *inspection) wordDiff(old, new string) {
	w.Prose(" "+w.S.Glyphs.Removed+" ", w.S.Removed, old)
	w.Prose(" "+w.S.Glyphs.Added+" ", w.S.Added, new)
	w.Section("Word by word", "[-gone-] {+new+}")
	w.flow(widget.DiffWords(widget.Bounded(old, 1000), widget.Bounded(new, 1000)))
}

// flow writes runs of words one after the other, broken between words.
func (w *inspection) flow(edits []widget.Edit) {
	room := w.Width - 2
	l, used := w.Line().Add(w.S.Text, " "), 0
	put := func(ink theme.Ink, word string) {
		width := text.Width(word)
		if used > 0 && used+width > room {
			w.End(l)
			l, used = w.Line().Add(w.S.Text, " "), 0
			if word = strings.TrimLeft(word, " "); word == "" {
				return
			}
			width = text.Width(word)
		}
		l.Add(ink, word)
		used += width
	}
	for _, e := range edits {
		ink, t := editText(e, w.S)
		for _, word := range widget.SplitWords(t) {
			put(ink, word)
		}
	}
	w.End(l)
}

// bullet is a bullet as it was before, where that is known.
func (w *inspection) bullet(id string) {
	w.field("bullet", id)
	if b, ok := w.d.Old[id]; ok {
		w.field("section", b.Section)
		w.Prose(" ", w.S.Muted, b.Content)
	}
}
