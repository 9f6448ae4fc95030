package transcript

import (
	"cmp"
	"slices"
	"time"

	"acescope/engine/agents/price"
	"acescope/engine/internal/redact"
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
	spoken newest[messageUse]
	called newest[call]
}

// messageUse is the known usage of a message.
type messageUse struct {
	model  int
	tokens Tokens
	cost   float64
}

// call is a tool call. tool and agent are indexes of Tools and Agents; agent is -1 for other
// tools.
type call struct {
	tool, agent int
	at          time.Time
	ended       bool // it has a result
}

// outcome is how a tool call ended.
type outcome int

const (
	succeeded outcome = iota
	failed
	refused // by a user, a rule or a hook
)

type dayModel struct{ day, model string }

func newTally(prices *price.Prices) tally {
	prices = cmp.Or(prices, &price.Prices{})
	return tally{
		prices: prices, models: map[string]int{}, tools: map[string]int{},
		priced: map[int]price.ModelPrices{}, days: map[dayModel]int{},
	}
}

// Oversize implements [Folder].
func (t *tally) Oversize(n int) {
	t.s.Oversized += n
	t.s.Lines += n
}

// Summary implements [Folder].
func (t *tally) Summary() Summary {
	s := t.s
	s.Models, s.Tools, s.Agents = slices.Clone(s.Models), slices.Clone(s.Tools), slices.Clone(s.Agents)
	s.Days = slices.Clone(s.Days)
	secrets := redact.OfProcess()
	clean := func(text string) string { return string(secrets.Truncated([]byte(text))) }
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

// quarter is a quarter of an hour in seconds. In every time zone, a day begins at a multiple of it.
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

// ask counts a prompt of the user, and notes the first one.
func (t *tally) ask(prompt string) {
	t.s.Turns++
	t.s.Messages++
	t.s.Unfinished = true
	if t.s.Prompt == "" {
		t.s.Prompt = cutText(prompt, maxPrompt)
	}
}

// fail notes an error of the API, which ends the turn.
func (t *tally) fail(message string) {
	t.s.Errors++
	t.s.LastError = cutText(message, maxPrompt)
	t.s.Unfinished = false
}

// touch extends the time of the session to that of the line.
func (t *tally) touch() {
	s := &t.s
	if t.at.IsZero() {
		return
	}
	if s.Started.IsZero() || t.at.Before(s.Started) {
		s.Started = t.at
	}
	if t.at.After(s.Last) {
		s.Last = t.at
	}
}

func cutName(name []byte) string { return string(name[:min(len(name), maxName)]) }

// set sets a text unless the value is empty. It does not allocate if the text is the same.
func set(to *string, v []byte, limit int) {
	if in := bare(v); len(in) > 0 && string(in) != *to {
		*to = text(v, limit)
	}
}

// use counts the usage of a message once, although several lines may report it. reported is the cost that the
// agent recorded, 0 if it recorded no cost.
func (t *tally) use(named, modelName []byte, tokens Tokens, reported float64) {
	id := idHash(named)
	if known, ok := t.spoken.get(id); ok && len(named) > 0 {
		more := known.tokens.Max(tokens)
		usd := t.costOf(known.model, more, reported)
		t.spend(known.model, more.Sub(known.tokens), usd-known.cost)
		t.spoken.put(id, messageUse{known.model, more, usd})
		return
	}
	t.s.Messages++
	model := t.model(modelName)
	usd := t.costOf(model, tokens, reported)
	t.spoken.put(id, messageUse{model, tokens, usd})
	if model >= 0 {
		t.s.Models[model].Messages++
	}
	t.spend(model, tokens, usd)
}

// costOf returns the cost of a message. A model whose cost the agent records counts as priced.
func (t *tally) costOf(model int, tokens Tokens, reported float64) float64 {
	if reported > 0 {
		if model >= 0 {
			t.s.Models[model].Priced = true
		}
		return reported
	}
	usd, _ := t.priced[model].Cost(tokens, t.at)
	return usd
}

// begin counts a tool call once. agent describes the subagent that it starts, or is nil.
func (t *tally) begin(callID, name []byte, agent *AgentCall) {
	id := idHash(callID)
	if _, known := t.called.get(id); known {
		return
	}
	c := call{tool: t.tool(name), agent: -1, at: t.at}
	if agent != nil && len(t.s.Agents) < maxAgentCalls {
		c.agent = len(t.s.Agents)
		t.s.Agents = append(t.s.Agents, *agent)
	}
	t.called.put(id, c)
}

// end counts the end of a tool call once. If took is 0, the call took the time since it began.
func (t *tally) end(callID []byte, how outcome, took time.Duration, agentID []byte) {
	id := idHash(callID)
	c, ok := t.called.get(id)
	if !ok || c.ended {
		return
	}
	c.ended = true
	t.called.put(id, c)
	u := &t.s.Tools[c.tool]
	u.Ended++
	switch how {
	case refused:
		u.Denied++
		t.s.Denied++
	case failed:
		u.Failed++
		t.s.Failed++
	}
	if took == 0 && !c.at.IsZero() && !t.at.IsZero() {
		took = t.at.Sub(c.at)
	}
	if took > 0 { // the clock may have gone back
		u.Timed++
		ms := float64(took) / float64(time.Millisecond)
		u.TotalMS += ms
		u.MaxMS = max(u.MaxMS, ms)
	}
	if c.agent >= 0 {
		a := &t.s.Agents[c.agent]
		a.Ended, a.AgentID = true, cutName(agentID)
	}
}
