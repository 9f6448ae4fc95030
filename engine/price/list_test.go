package price

import (
	"math"
	"testing"
	"time"
)

func usd(p *Prices, model string, t Tokens) float64 {
	cost, _ := p.Of(model, t, time.Now())
	return cost
}

func TestPrices(t *testing.T) {
	p := Shipped()
	if p.Source == "" || p.Date == "" {
		t.Error("the price list does not say where it is from")
	}
	day := func(s string) time.Time { d, _ := time.Parse(time.DateOnly, s); return d }
	for _, c := range []struct {
		model string
		at    time.Time
		t     Tokens
		want  float64
	}{
		{"claude-opus-5-5", day("2026-11-01"), Tokens{Input: 480, Output: 68, CacheRead: 160}, 0.003312},
		{"claude-sonnet-5-5", day("2026-10-01"), Tokens{CacheRead: 1e6}, 0.2},
		{"claude-sonnet-5-5", day("2026-10-08"), Tokens{CacheRead: 1e6}, 0.1},
		{"claude-haiku-5-5", day("2026-11-01"), Tokens{Input: 100_000, Output: 1000}, 0.0105},
		{"claude-haiku-5-5", day("2026-11-01"), Tokens{Input: 100_001, Output: 1000}, 0.0525005},
		{"us.anthropic.claude-opus-4-5-20251101-v1:0", day("2026-01-01"), Tokens{CacheWrite1h: 1e6}, 10},
		{"claude-sonnet-4-20250514", day("2025-07-01"), Tokens{Output: 1e6}, 15},
		{"claude-opus-4-6[1m]", day("2026-07-01"), Tokens{Output: 1e6}, 25},
	} {
		if got, ok := p.Of(c.model, c.t, c.at); !ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, not %v", c.model, got, c.want)
		}
	}
	for _, m := range []string{"claude-opus-4-99", "gpt-9", "", "claude", "house-model-1"} {
		if p.List(m) != nil {
			t.Errorf("there is a price for %q", m)
		}
	}
	own, err := p.With([]Price{{Models: []string{"house-model-1", "claude-opus-5"}, Input: 7}})
	if err != nil || own.Digest() == p.Digest() || usd(own, "claude-opus-5", Tokens{Input: 1e6}) != 7 || p.List("house-model-1") != nil {
		t.Errorf("own prices do not count: %v", err)
	}
	for _, bad := range []Price{{Input: 1}, {Models: []string{"x"}, Output: -1}, {Models: []string{"x"}, Output: math.NaN()}} {
		if _, err := p.With([]Price{bad}); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
