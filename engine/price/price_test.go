package price

import (
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
		got, ok := list.Of(c.model, c.of, c.at)
		if d := got - c.want; d > 1e-12 || d < -1e-12 || ok != c.ok {
			t.Errorf("%s %+v costs %v, %t; want %v, %t", c.model, c.of, got, ok, c.want, c.ok)
		}
	}
	own, err := list.With([]Price{{Models: []string{"m-2"}, Input: 3}})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := own.Of("m-2", Tokens{Input: 1_000_000}, now); got != 3 || !ok {
		t.Errorf("an own price: %v, %t", got, ok)
	}
}

func TestShipped(t *testing.T) {
	p := Shipped()
	if p.Source == "" || p.Date == "" {
		t.Errorf("the prices name no source or date: %q, %q", p.Source, p.Date)
	}
	if _, ok := p.Of("claude-sonnet-4-5-20250929", Tokens{Input: 1}, time.Now()); !ok {
		t.Error("a model of the list has no price")
	}
}
