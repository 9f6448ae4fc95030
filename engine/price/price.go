// Package price says what models cost: the list prices that come with the program, with
// their source and date, and those of the user's own in their place. A leaf.
package price

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed prices.json
var shippedPrices []byte

// Tokens counts tokens by how they are priced. The prompt of a request is its input, its
// cache reads and its cache writes.
type Tokens struct {
	Input        int64 `json:"input_tokens"`
	Output       int64 `json:"output_tokens"`
	CacheRead    int64 `json:"cache_read_tokens"`
	CacheWrite5m int64 `json:"cache_write_5m_tokens"`
	CacheWrite1h int64 `json:"cache_write_1h_tokens"`
}

// CacheWrite is all tokens that were written to a cache.
func (t Tokens) CacheWrite() int64 { return t.CacheWrite5m + t.CacheWrite1h }

// Prompt is all tokens that went to the model.
func (t Tokens) Prompt() int64 { return t.Input + t.CacheRead + t.CacheWrite() }

// Total is the tokens of prompts and answers.
func (t Tokens) Total() int64 { return t.Prompt() + t.Output }

// Add is the sum of two.
func (t Tokens) Add(u Tokens) Tokens {
	return Tokens{t.Input + u.Input, t.Output + u.Output, t.CacheRead + u.CacheRead, t.CacheWrite5m + u.CacheWrite5m, t.CacheWrite1h + u.CacheWrite1h}
}

// Sub is the difference of two.
func (t Tokens) Sub(u Tokens) Tokens {
	return Tokens{t.Input - u.Input, t.Output - u.Output, t.CacheRead - u.CacheRead, t.CacheWrite5m - u.CacheWrite5m, t.CacheWrite1h - u.CacheWrite1h}
}

// Max is the larger of two, count by count.
func (t Tokens) Max(u Tokens) Tokens {
	return Tokens{max(t.Input, u.Input), max(t.Output, u.Output), max(t.CacheRead, u.CacheRead), max(t.CacheWrite5m, u.CacheWrite5m), max(t.CacheWrite1h, u.CacheWrite1h)}
}

// Price is what a model costs, in United States dollars per million tokens, from a date on
// (zero: always) and for requests with more than PromptOver tokens of prompt (0: all).
// The latest date and the longest prompt that fit count.
type Price struct {
	Models       []string  `json:"models"`
	From         time.Time `json:"from,omitzero"`
	PromptOver   int64     `json:"prompt_over,omitempty"`
	Input        float64   `json:"input"`
	Output       float64   `json:"output"`
	CacheRead    float64   `json:"cache_read"`
	CacheWrite5m float64   `json:"cache_write_5m"`
	CacheWrite1h float64   `json:"cache_write_1h"`
}

// Prices says what models cost. A model that it does not know has no cost, rather than a
// guessed one.
type Prices struct {
	Source string
	Date   string // when the source said so
	of     map[string][]Price
	digest string
}

// Shipped are the list prices that come with the program. Discounts, batches, taxes and
// subscriptions are not in them.
func Shipped() *Prices {
	p, err := ParsePrices(shippedPrices)
	if err != nil {
		panic(err) // a test reads the file
	}
	return p
}

// ParsePrices reads a price list in the form of prices.json.
func ParsePrices(data []byte) (*Prices, error) {
	var file struct {
		Source string  `json:"source"`
		Date   string  `json:"date"`
		Prices []Price `json:"prices"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	p := &Prices{Source: file.Source, Date: file.Date, of: map[string][]Price{}}
	return p, p.add(file.Prices)
}

// With is the prices with others in place of those of the same models.
func (p *Prices) With(own []Price) (*Prices, error) {
	q := &Prices{Source: p.Source, Date: p.Date, of: map[string][]Price{}}
	for m, list := range p.of {
		q.of[m] = list
	}
	for _, price := range own {
		for _, m := range price.Models {
			delete(q.of, m)
		}
	}
	return q, q.add(own)
}

func (p *Prices) add(list []Price) error {
	for i, price := range list {
		if len(price.Models) == 0 {
			return fmt.Errorf("price %d names no model", i+1)
		}
		for _, f := range []float64{price.Input, price.Output, price.CacheRead, price.CacheWrite5m, price.CacheWrite1h} {
			if !(f >= 0) || math.IsInf(f, 0) {
				return fmt.Errorf("price of %s: %v is no price", price.Models[0], f)
			}
		}
		for _, m := range price.Models {
			p.of[m] = append(slices.Clip(p.of[m]), price)
		}
	}
	data, err := json.Marshal(p.of)
	if err != nil {
		return fmt.Errorf("prices: %w", err)
	}
	sum := sha256.Sum256(data)
	p.digest = hex.EncodeToString(sum[:8])
	return nil
}

// Digest tells two price lists apart: costs that were worked out with one are not those of
// another.
func (p *Prices) Digest() string { return p.digest }

// version ends a model's name without changing what it costs: a date, "latest", a form of
// its context window, or the versions of cloud vendors.
var version = regexp.MustCompile(`(\[[0-9a-z]+\]|-latest|[-@]20[0-9]{6}|-v[0-9]+(:[0-9]+)?)$`)

func modelName(model string) string {
	if at := strings.LastIndex(model, "anthropic."); at >= 0 { // us.anthropic.claude-…
		model = model[at+len("anthropic."):]
	}
	model = strings.TrimPrefix(model, "anthropic/")
	for {
		shorter := version.ReplaceAllString(model, "")
		if shorter == model {
			return model
		}
		model = shorter
	}
}

// List is the prices of one model.
type List []Price

// List is the prices of a model, nil where they are not known.
func (p *Prices) List(model string) List {
	if list := p.of[model]; list != nil {
		return list
	}
	return p.of[modelName(model)]
}

// Of is what one request cost; ok is false where the model's price is not known.
func (p *Prices) Of(model string, t Tokens, at time.Time) (usd float64, ok bool) {
	return p.List(model).Cost(t, at)
}

// Cost is what one request cost. A price that is no list price yet at that time counts as
// not known.
func (list List) Cost(t Tokens, at time.Time) (usd float64, ok bool) {
	var best *Price
	size := t.Prompt()
	for i := range list {
		q := &list[i]
		if !q.From.IsZero() && at.Before(q.From) || q.PromptOver > 0 && size <= q.PromptOver {
			continue
		}
		if best == nil || q.From.After(best.From) || q.From.Equal(best.From) && q.PromptOver >= best.PromptOver {
			best = q
		}
	}
	if best == nil {
		return 0, false
	}
	return (float64(t.Input)*best.Input + float64(t.Output)*best.Output + float64(t.CacheRead)*best.CacheRead +
		float64(t.CacheWrite5m)*best.CacheWrite5m + float64(t.CacheWrite1h)*best.CacheWrite1h) / 1e6, true
}
