package price

import (
	"math"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	list, err := ParsePrices([]byte(`{"source": "s", "date": "2026-11-21", "prices": [
		{"models": ["m-1"], "input": 2, "output": 10, "cache_read": 0.2},
		{"models": ["m-1"], "from": "2026-10-07T00:00:00Z", "input": 1, "output": 10},
		{"models": ["m-1"], "from": "2026-10-07T00:00:00Z", "prompt_over": 1000, "input": 4, "output": 20}]}`))
	if err != nil {
		t.Fatal(err)
	}
	old, now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		model string
		of    Tokens
		at    time.Time
		want  float64
		ok    bool
	}{
		{"m-1", Tokens{Input: 1000, Output: 100, CacheRead: 1000}, old, 0.0032, true},
		{"m-1-20260101", Tokens{Input: 1000}, now, 0.001, true},
		{"m-1", Tokens{Input: 2000, Output: 100}, now, 0.01, true},
		{"m-2", Tokens{Input: 1000}, now, 0, false},
	} {
		got, ok := list.Cost(c.model, c.of, c.at)
		if d := got - c.want; d > 1e-12 || d < -1e-12 || ok != c.ok {
			t.Errorf("%s %+v: %v, %t; want %v, %t", c.model, c.of, got, ok, c.want, c.ok)
		}
	}
	own, err := list.With([]Price{{Models: []string{"m-2"}, Input: 3}})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := own.Cost("m-2", Tokens{Input: 1_000_000}, now); got != 3 || !ok {
		t.Errorf("own price: %v, %t", got, ok)
	}
}

func TestShipped(t *testing.T) {
	p := Shipped()
	if p.Source == "" || p.Date == "" {
		t.Errorf("no source or date: %q, %q", p.Source, p.Date)
	}
	if _, ok := p.Cost("claude-sonnet-4-5-20250929", Tokens{Input: 1}, time.Now()); !ok {
		t.Error("no price for a listed model")
	}
}

func usd(p *Prices, model string, t Tokens) float64 {
	cost, _ := p.Cost(model, t, time.Now())
	return cost
}

func TestPrices(t *testing.T) {
	p := Shipped()
	if p.Source == "" || p.Date == "" {
		t.Error("no source or date")
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
		if got, ok := p.Cost(c.model, c.t, c.at); !ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.model, got, c.want)
		}
	}
	for _, m := range []string{"claude-opus-4-99", "gpt-9", "", "claude", "house-model-1"} {
		if p.ForModel(m) != nil {
			t.Errorf("price for unknown model %q", m)
		}
	}
	own, err := p.With([]Price{{Models: []string{"house-model-1", "claude-opus-5"}, Input: 7}})
	if err != nil || own.Digest() == p.Digest() || usd(own, "claude-opus-5", Tokens{Input: 1e6}) != 7 ||
		p.ForModel("house-model-1") != nil {
		t.Errorf("own prices are ignored: %v", err)
	}
	for _, bad := range []Price{{Input: 1}, {Models: []string{"x"}, Output: -1},
		{Models: []string{"x"}, Output: math.NaN()}} {
		if _, err := p.With([]Price{bad}); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
