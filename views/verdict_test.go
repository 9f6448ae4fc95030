package views

import (
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/views/console"
	"acescope/views/run"
)

func TestVerdictText(t *testing.T) {
	for want, v := range map[string]ace.Verdict{
		"as asked for":                        {Parse: ace.ParseClean, Attempts: 1},
		"asked again: it was x y (2 answers)": {Parse: ace.ParseAsked, Note: "it was x\ny", Attempts: 2},
	} {
		if got := run.VerdictText(&v); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := run.VerdictText(&ace.Verdict{Parse: "repaired", Note: "\x1b[31mred"}); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	g := plainLook.Glyphs
	for want, u := range map[string]ace.Usage{"?": {InputTokens: 1, Unpriced: true}, "$0": {InputTokens: 1}, "$1.000": {CostUSD: 1, Unpriced: true}} {
		if got := console.CostCell(u, g); got != want {
			t.Errorf("%+v costs %q, want %q", u, got, want)
		}
	}
}
