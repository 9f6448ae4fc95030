// Package price computes the cost of requests to models from the list prices that ship with the program, with
// their source and date, and from the user's own prices. It imports nothing of the project.
package price

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed prices.json
var shipped []byte

// Tokens counts tokens by price category. The prompt of a request is its input, its cache reads
// and its cache writes.
type Tokens struct {
	Input        int64 `json:"input_tokens"`
	Output       int64 `json:"output_tokens"`
	CacheRead    int64 `json:"cache_read_tokens"`
	CacheWrite5m int64 `json:"cache_write_5m_tokens"`
	CacheWrite1h int64 `json:"cache_write_1h_tokens"`
}

// CacheWrite returns all tokens written to a cache.
func (t Tokens) CacheWrite() int64 { return t.CacheWrite5m + t.CacheWrite1h }

// Prompt returns all tokens sent to the model.
func (t Tokens) Prompt() int64 { return t.Input + t.CacheRead + t.CacheWrite() }

// Total returns the tokens of prompts and answers.
func (t Tokens) Total() int64 { return t.Prompt() + t.Output }

// Add returns the sum of t and u.
func (t Tokens) Add(u Tokens) Tokens {
	return t.combine(u, func(a, b int64) int64 { return a + b })
}

// Sub returns the difference of t and u.
func (t Tokens) Sub(u Tokens) Tokens {
	return t.combine(u, func(a, b int64) int64 { return a - b })
}

// Max returns the maximum of each category.
func (t Tokens) Max(u Tokens) Tokens {
	return t.combine(u, func(a, b int64) int64 { return max(a, b) })
}

func (t Tokens) combine(u Tokens, f func(a, b int64) int64) Tokens {
	return Tokens{
		f(t.Input, u.Input), f(t.Output, u.Output), f(t.CacheRead, u.CacheRead),
		f(t.CacheWrite5m, u.CacheWrite5m), f(t.CacheWrite1h, u.CacheWrite1h),
	}
}

// Price is the price of some models in US dollars per million tokens. It applies to requests from
// the date From on (zero: all dates) with a prompt of more than PromptOver tokens (0: all). Of
// several prices that apply, the one with the latest From counts, then the one with the largest
// PromptOver.
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

// Prices is a price list. The cost of a model that is not listed is unknown, never guessed.
type Prices struct {
	Source string
	Date   string // of the source
	models map[string][]Price
	digest string
}

// Shipped returns the list prices that ship with the program, without discounts, batch prices,
// taxes and subscriptions.
func Shipped() *Prices {
	p, err := ParsePrices(shipped)
	if err != nil {
		panic(err) // prices.json is covered by a test
	}
	return p
}

// ParsePrices parses a price list in the format of prices.json.
func ParsePrices(data []byte) (*Prices, error) {
	var file struct {
		Source string  `json:"source"`
		Date   string  `json:"date"`
		Prices []Price `json:"prices"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	p := &Prices{Source: file.Source, Date: file.Date, models: map[string][]Price{}}
	return p, p.add(file.Prices)
}

// With returns p with other prices for the models that own names.
func (p *Prices) With(own []Price) (*Prices, error) {
	q := &Prices{Source: p.Source, Date: p.Date, models: map[string][]Price{}}
	maps.Copy(q.models, p.models)
	for _, price := range own {
		for _, m := range price.Models {
			delete(q.models, m)
		}
	}
	return q, q.add(own)
}

func (p *Prices) add(list []Price) error {
	for i, price := range list {
		if len(price.Models) == 0 {
			return fmt.Errorf("price %d: models is empty", i+1)
		}
		figures := []float64{price.Input, price.Output, price.CacheRead, price.CacheWrite5m,
			price.CacheWrite1h}
		for _, f := range figures {
			if !(f >= 0) || math.IsInf(f, 0) {
				return fmt.Errorf("price of %s: invalid price %v", price.Models[0], f)
			}
		}
		for _, m := range price.Models {
			p.models[m] = append(slices.Clip(p.models[m]), price)
		}
	}
	data, err := json.Marshal(p.models)
	if err != nil {
		return fmt.Errorf("prices: %w", err)
	}
	sum := sha256.Sum256(data)
	p.digest = hex.EncodeToString(sum[:8])
	return nil
}

// Digest identifies the price list. Costs with different digests are not comparable.
func (p *Prices) Digest() string { return p.digest }

// suffix matches endings of a model's name that do not change its price: a date, "latest", a
// context window, or the version of a cloud vendor.
var suffix = regexp.MustCompile(
	`(\[[0-9a-z]+\]|-latest|[-@]20[0-9]{2}-?[0-9]{2}-?[0-9]{2}|-v[0-9]+(:[0-9]+)?)+$`)

func modelName(model string) string {
	if at := strings.LastIndex(model, "anthropic."); at >= 0 { // us.anthropic.claude-…
		model = model[at+len("anthropic."):]
	}
	for _, provider := range []string{"anthropic/", "openai/", "google/", "models/"} {
		model = strings.TrimPrefix(model, provider)
	}
	return suffix.ReplaceAllString(model, "")
}

// ModelPrices are the prices of one model.
type ModelPrices []Price

// ForModel returns the prices of a model, or nil if they are unknown.
func (p *Prices) ForModel(model string) ModelPrices {
	if list := p.models[model]; list != nil {
		return list
	}
	return p.models[modelName(model)]
}

// Cost returns the cost of one request. ok is false if the price of the model is unknown.
func (p *Prices) Cost(model string, t Tokens, at time.Time) (usd float64, ok bool) {
	return p.ForModel(model).Cost(t, at)
}

// Cost returns the cost of one request. ok is false if no price applies at that time.
func (list ModelPrices) Cost(t Tokens, at time.Time) (usd float64, ok bool) {
	var best *Price
	for i := range list {
		q := &list[i]
		if at.Before(q.From) || q.PromptOver > 0 && t.Prompt() <= q.PromptOver {
			continue
		}
		if best == nil || q.From.After(best.From) || q.From.Equal(best.From) &&
			q.PromptOver >= best.PromptOver {
			best = q
		}
	}
	if best == nil {
		return 0, false
	}
	usd = float64(t.Input)*best.Input + float64(t.Output)*best.Output + float64(t.CacheRead)*best.CacheRead +
		float64(t.CacheWrite5m)*best.CacheWrite5m + float64(t.CacheWrite1h)*best.CacheWrite1h
	return usd / 1e6, true
}
