package views

import (
	"testing"

	"acescope/engine/ace"
	"acescope/views/console"
)

func TestCostCell(t *testing.T) {
	g := plainLook.Glyphs
	for want, u := range map[string]ace.Usage{"?": {InputTokens: 1, Unpriced: true}, "$0": {InputTokens: 1},
		"$1.0000+": {CostUSD: 1, Unpriced: true}, "<$.0001": {CostUSD: 1e-6},
		"$12.35": {CostUSD: 12.345}, plainLook.Glyphs.Dash: {}} {
		if got := console.CostCell(u, g); got != want {
			t.Errorf("%+v costs %q, want %q", u, got, want)
		}
	}
}
