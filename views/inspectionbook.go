package views

import (
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/theme"
	"acescope/tui/text"
)

// operationWhole is a change to the playbook as a diff.
func (w *inspection) operationWhole(op ace.Operation) {
	glyph, ink := opMark(op.Type, w.s)
	fate := string(op.Fate)
	if fate == "" {
		fate = "proposed"
	}
	fateInk := w.s.Success
	if refused(op) {
		glyph, fateInk = w.s.Glyphs.Refused, w.s.Warning
	}
	w.end(w.line().Add(ink, " "+glyph+" "+text.Safe(string(op.Type), " ")).Add(fateInk, "  "+text.Safe(fate, " ")))
	w.field("bullet", op.BulletID)
	w.field("section", op.Section)
	if op.Reason != "" {
		w.field("because", op.Reason)
	}
	old, known := w.d.Old[op.BulletID]
	if known && op.Section == "" {
		w.field("section", old.Section)
	}
	w.say(w.s.Text, "")
	switch {
	case op.Type == ace.OpTag:
		w.counters(op, old, known)
	case op.Type == ace.OpUpdate && known && op.Content != "":
		w.wordDiff(old.Content, op.Content)
	case op.Type == ace.OpUpdate:
		w.prose(" "+w.s.Glyphs.Updated+" ", unless(refused(op), w.s.Muted, w.s.Updated), op.Content)
		w.say(w.s.Muted, "   what it said before is not known here")
	case op.Type == ace.OpRemove && known:
		w.prose(" "+w.s.Glyphs.Removed+" ", w.s.Removed, old.Content)
	case op.Type == ace.OpRemove:
		w.say(w.s.Muted, "   what it said is not known here")
	default:
		w.prose(" "+glyph+" ", unless(refused(op), w.s.Muted, ink), op.Content)
	}
	if w.d.Delta.Rationale != "" {
		w.section("Rationale", "")
		w.prose(" ", w.s.Muted, w.d.Delta.Rationale)
	}
}

func (w *inspection) counters(op ace.Operation, old sources.OldBullet, known bool) {
	had := map[string]int{"helpful": old.Helpful, "harmful": old.Harmful, "neutral": old.Neutral}
	for _, name := range []string{"helpful", "harmful", "neutral"} {
		n := op.Metadata[name]
		if n == 0 {
			continue
		}
		l := w.line().Add(w.s.Tagged, " "+w.s.Glyphs.Tagged+" "+text.Fit(name, 8, "")+" ")
		if n > 0 {
			l.Add(w.s.Tagged, "+")
		}
		l.Add(w.s.Tagged, strconv.Itoa(n))
		if known {
			l.Add(w.s.Muted, "  "+strconv.Itoa(had[name])+" "+w.s.Glyphs.Arrow+" "+strconv.Itoa(had[name]+n))
		}
		w.end(l)
	}
	if known {
		w.say(w.s.Text, "")
		w.prose(" ", w.s.Muted, old.Content)
	}
}

// wordDiff shows the old text, the new one, and both in one with what changed between
// brackets.
func (w *inspection) wordDiff(old, new string) {
	w.prose(" "+w.s.Glyphs.Removed+" ", w.s.Removed, old)
	w.prose(" "+w.s.Glyphs.Added+" ", w.s.Added, new)
	w.section("Word by word", "[-gone-] {+new+}")
	w.flow(diffWords(bounded(old, 1000), bounded(new, 1000)))
}

// flow writes runs of words one after the other, broken between words.
func (w *inspection) flow(edits []edit) {
	room := w.width - 2
	l, used := w.line().Add(w.s.Text, " "), 0
	put := func(ink theme.Ink, word string) {
		width := text.Width(word)
		if used > 0 && used+width > room {
			w.end(l)
			l, used = w.line().Add(w.s.Text, " "), 0
			if word = strings.TrimLeft(word, " "); word == "" {
				return
			}
			width = text.Width(word)
		}
		l.Add(ink, word)
		used += width
	}
	for _, e := range edits {
		ink, t := editText(e, w.s)
		for _, word := range splitWords(t) {
			put(ink, word)
		}
	}
	w.end(l)
}

// bullet is a bullet as it was before, where that is known.
func (w *inspection) bullet(id string) {
	w.field("bullet", id)
	if b, ok := w.d.Old[id]; ok {
		w.field("section", b.Section)
		w.prose(" ", w.s.Muted, b.Content)
	}
}
