package views

import (
	"testing"

	"acescope/engine/ace"
	"acescope/views/console"
)

func TestCostCell(t *testing.T) {
	g := plainLook.Glyphs
	for want, u := range map[string]ace.Usage{"?": {InputTokens: 1, Unpriced: true}, "$0": {InputTokens: 1}, "$1.000": {CostUSD: 1, Unpriced: true}} {
		if got := console.CostCell(u, g); got != want {
			t.Errorf("%+v costs %q, want %q", u, got, want)
		}
	}
}
