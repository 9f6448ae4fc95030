package console

import (
	"testing"

	"acescope/theme"
)

// What no event tells of has not failed.
func TestUnknownOutcome(t *testing.T) {
	s := theme.NoColor().Styles(theme.Unicode())
	if m := OutcomeMark("unknown", s); m.Glyph == s.Glyphs.Failed || m.Word != "unknown" {
		t.Errorf("%+v", m)
	}
	if m := OutcomeMark("anything else", s); m.Glyph != s.Glyphs.Failed {
		t.Errorf("%+v", m)
	}
}
