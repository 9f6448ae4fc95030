package transcript

import (
	"slices"
	"time"

	"acescope/engine/agents/price"
)

// tally counts the usage of the lines of a transcript: by model, by tool and by day. It is the part that
// the folds of all formats share.
type tally struct {
	s      Summary
	at     time.Time // of the line
	prices *price.Prices
	models map[string]int
	tools  map[string]int
	priced map[int]price.ModelPrices // by index of Models
	days   map[dayModel]int          // indexes of Days
	day    string                    // the local day of a quarter of an hour
	slot   int64                     // the quarter of an hour
}

type dayModel struct{ day, model string }

func newTally(prices *price.Prices) tally {
	if prices == nil {
		prices = &price.Prices{}
	}
	return tally{
		prices: prices, models: map[string]int{}, tools: map[string]int{},
		priced: map[int]price.ModelPrices{}, days: map[dayModel]int{},
	}
}

// Summary returns the summary of the lines so far, without secrets.
func (t *tally) Summary() Summary {
	s := t.s
	s.Models, s.Tools, s.Agents = slices.Clone(s.Models), slices.Clone(s.Tools), slices.Clone(s.Agents)
	s.Days = slices.Clone(s.Days)
	clean := func(text string) string { return string(secrets().Truncated([]byte(text))) }
	s.Prompt, s.Title, s.LastError = clean(s.Prompt), clean(s.Title), clean(s.LastError)
	for i := range s.Agents {
		s.Agents[i].Description = clean(s.Agents[i].Description)
	}
	return s
}

// spend counts tokens of the model with an index in Models, or -1, and their cost.
func (t *tally) spend(model int, tokens Tokens, usd float64) {
	t.s.Tokens = t.s.Tokens.Add(tokens)
	t.s.CostUSD += usd
	if model < 0 {
		t.s.Unpriced += tokens.Total()
		t.spendDay("", false, tokens, usd)
		return
	}
	m := &t.s.Models[model]
	m.Tokens = m.Tokens.Add(tokens)
	m.CostUSD += usd
	if m.Priced {
		t.s.Priced += tokens.Total()
	} else {
		t.s.Unpriced += tokens.Total()
	}
	t.spendDay(m.Name, m.Priced, tokens, usd)
}

func (t *tally) spendDay(model string, priced bool, tokens Tokens, usd float64) {
	if tokens == (Tokens{}) && usd == 0 {
		return
	}
	key := dayModel{t.localDay(), model}
	i, known := t.days[key]
	if !known && len(t.days) >= maxDays {
		key.day = ""
		i, known = t.days[key]
	}
	if !known {
		i = len(t.s.Days)
		t.days[key] = i
		t.s.Days = append(t.s.Days, DayUse{Day: key.day, Model: model, Priced: priced})
	}
	d := &t.s.Days[i]
	d.Tokens = d.Tokens.Add(tokens)
	d.CostUSD += usd
}

// quarter is a quarter of an hour in seconds. Every day of every time zone begins with one.
const quarter = 15 * 60

// localDay returns the day of the line in the local time zone, or "".
func (t *tally) localDay() string {
	if t.at.IsZero() {
		return ""
	}
	if slot := t.at.Unix() / quarter; t.day == "" || slot != t.slot {
		t.day, t.slot = t.at.Local().Format(time.DateOnly), slot
	}
	return t.day
}

// model returns the index of a model in Models, or -1 without a model.
func (t *tally) model(name []byte) int {
	if len(name) == 0 || string(name) == synthetic {
		return -1
	}
	name = name[:min(len(name), maxName)]
	if string(name) != t.s.Model {
		t.s.Model = string(name)
	}
	i, isNew := index(t.models, name, maxModels)
	if isNew {
		m := ModelUse{Name: Others}
		if i < maxModels {
			m.Name = string(name)
			t.priced[i] = t.prices.ForModel(m.Name)
		}
		m.Priced = t.priced[i] != nil
		t.s.Models = append(t.s.Models, m)
	}
	return i
}

// index returns the index of a name, a new one if the name is new. New names over the limit
// share the index of [Others].
func index(names map[string]int, name []byte, limit int) (i int, isNew bool) {
	if i, ok := names[string(name)]; ok {
		return i, false
	}
	key := string(name)
	if len(names) >= limit {
		key = Others
		if i, ok := names[key]; ok {
			return i, false
		}
	}
	names[key] = len(names)
	return names[key], true
}

// tool counts a call of a tool and returns its index in Tools.
func (t *tally) tool(name []byte) int {
	i, isNew := index(t.tools, name[:min(len(name), maxName)], maxTools)
	if isNew {
		u := ToolUse{Name: Others}
		if i < maxTools {
			u.Name = cutName(name)
		}
		t.s.Tools = append(t.s.Tools, u)
	}
	u := &t.s.Tools[i]
	u.Calls++
	t.s.Calls++
	if t.at.After(u.Last) {
		u.Last = t.at
	}
	return i
}
