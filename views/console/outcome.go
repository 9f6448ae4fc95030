package console

import (
	"acescope/engine/kind"
	"acescope/theme"
	"acescope/tui/text"
)

// OutcomeMark returns the sign, the word and the color of an outcome.
func OutcomeMark(o kind.Outcome, s theme.Styles) theme.Mark {
	m := theme.Mark{Word: text.Safe(string(o), " "), Glyph: s.Glyphs.Failed, Ink: s.Error}
	switch o {
	case "ok", "correct":
		m.Glyph, m.Ink = s.Glyphs.Success, s.Success
	case "proposed":
		m.Glyph, m.Ink = s.Glyphs.Pending, s.Muted
	case "accepted":
		m.Glyph, m.Ink = s.Glyphs.Added, s.Added
	case "wrong":
		m.Glyph = s.Glyphs.Wrong
	case "denied":
		m.Glyph, m.Ink = s.Glyphs.Canceled, s.Warning
	case "running", "canceled", "timed_out", "terminated":
		return s.Status(string(o))
	case "scheduled", "unknown":
		m.Glyph, m.Ink = s.Glyphs.Pending, s.Muted
	case "pending":
		m.Glyph, m.Ink = s.Glyphs.Running, s.Running
	case "rejected", "ignored", "unparsable", "unmerged":
		m.Glyph, m.Ink = s.Glyphs.Rejected, s.Muted
	}
	return m
}
