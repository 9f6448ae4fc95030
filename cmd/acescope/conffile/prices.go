package conffile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxPrices bounds the prices that a configuration file may give.
const MaxPrices = 200

// Price is what a model costs, in United States dollars per million tokens. What is not
// said is nought.
type Price struct {
	Model        string
	Input        float64
	Output       float64
	CacheRead    float64
	CacheWrite5m float64
	CacheWrite1h float64
}

// readPrices takes the tables [[prices]].
func (p *parser) readPrices(v any) {
	list, ok := v.([]any)
	if !ok {
		p.mistake("prices", "prices are tables: [[prices]] and below it model, input and output")
		return
	}
	for i, e := range list {
		at := "prices[" + strconv.Itoa(i) + "]"
		price, why := p.price(at, e)
		if why == "" && len(p.Prices) == MaxPrices {
			why = fmt.Sprintf("more than %d prices", MaxPrices)
		}
		if why != "" {
			p.mistake(at, "price: %s", why)
			continue
		}
		p.Prices = append(p.Prices, price)
	}
}

// price reads one price; why says what makes it unusable.
func (p *parser) price(at string, e any) (price Price, why string) {
	table, _ := e.(map[string]any)
	numbers := map[string]*float64{"input": &price.Input, "output": &price.Output, "cache_read": &price.CacheRead,
		"cache_write_5m": &price.CacheWrite5m, "cache_write_1h": &price.CacheWrite1h}
	for _, k := range sorted(table) {
		to := numbers[k]
		switch {
		case k == "model":
			price.Model, _ = table[k].(string)
		case to == nil:
			p.mistake(at+"."+k, "a price has no %q: it has model, input, output, cache_read, cache_write_5m and cache_write_1h", k)
		default:
			if *to, why = dollars(table[k]); why != "" {
				return price, k + " " + why
			}
		}
	}
	if strings.TrimSpace(price.Model) == "" {
		return price, "it needs a model, as a text"
	}
	return price, ""
}

func dollars(v any) (usd float64, why string) {
	switch n := v.(type) {
	case int64:
		usd = float64(n)
	case float64:
		usd = n
	default:
		return 0, "is no number of dollars per million tokens"
	}
	if !(usd >= 0) || math.IsInf(usd, 0) {
		return 0, "must be nought or more"
	}
	return usd, ""
}
