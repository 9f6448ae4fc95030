package transcript

import (
	"time"

	"acescope/engine/price"
)

// Bounds of what a fold remembers of the lines that it has seen.
const (
	maxRecent = 64  // messages whose later parts are still taken for theirs
	maxOpen   = 512 // calls that wait for a result
)

// Fold makes a summary out of lines, one after the other. It is for one goroutine.
type Fold struct {
	prices *price.Prices
	skip   func(uuid uint64) bool // lines that are not counted; nil for none

	s      Summary
	line   line
	at     time.Time // of the line
	main   bool      // it belongs to the conversation with the person
	lines  seen      // uuids
	spoken seen      // ids of messages
	called seen      // ids of tool calls

	recent [maxRecent]messageUse
	next   int // of recent, to be written
	open   map[uint64]openCall
	order  []uint64 // ids of open, oldest first, closed ones among them
	models map[string]int
	tools  map[string]int
	priced map[int]price.List // by place in Models
	stops  bool               // this version tells why messages ended
	named  bool               // a person gave the title
	spoke  bool               // Prompt is what a person wrote
}

// messageUse is what a message is known to have used.
type messageUse struct {
	id     uint64
	model  int
	tokens Tokens
	cost   float64
}

// openCall is a tool call without a result; agent is its place in Agents, -1 for none.
type openCall struct {
	tool, agent int
	at          time.Time
}

// NewFold begins a fold; nil prices let all costs be unknown.
func NewFold(prices *price.Prices) *Fold {
	if prices == nil {
		prices = &price.Prices{}
	}
	return &Fold{prices: prices, open: map[uint64]openCall{}, models: map[string]int{}, tools: map[string]int{}, priced: map[int]price.List{}}
}

// Summary is what the lines so far tell.
func (f *Fold) Summary() Summary { return f.s.clone() }

// Ended tells whether the last turn has come to its end for certain: nothing is unfinished,
// and it is told of messages why they ended, as old versions do not.
func (f *Fold) Ended() bool { return f.stops && !f.s.Unfinished }

// Oversize counts lines that were too long to be read.
func (f *Fold) Oversize(n int) { f.s.Oversized += n; f.s.Lines += n }

// Add takes the next line. It keeps nothing of raw.
func (f *Fold) Add(raw []byte) {
	l := &f.line
	f.s.Lines++
	if !l.parse(raw) {
		f.s.Unreadable++
		return
	}
	if len(l.uuid) > 0 {
		id := idHash(l.uuid)
		if f.skip != nil && f.skip(id) {
			return
		}
		if f.lines.has(id) {
			f.s.Repeated++
			return
		}
		if f.take() {
			f.lines.add(id)
			f.about()
		}
		return
	}
	f.take()
}

// about takes what every line tells of its session.
func (f *Fold) about() {
	l, s := &f.line, &f.s
	if s.First == "" {
		s.First = string(l.uuid[:min(len(l.uuid), maxName)])
	}
	if l.sidechain && s.AgentID == "" && len(l.agent) > 0 {
		s.AgentID = string(l.agent[:min(len(l.agent), maxName)])
	}
	keep(&s.WorkDir, l.cwd, maxPath, s.WorkDir == "") // where it began
	keep(&s.Branch, l.branch, maxPrompt, true)
	keep(&s.Version, l.version, maxName, true)
	if len(l.session) > 0 && string(l.session) != s.SessionID {
		s.SessionID = string(l.session[:min(len(l.session), maxName)])
	}
	if f.at.IsZero() {
		return
	}
	if s.Started.IsZero() || f.at.Before(s.Started) {
		s.Started = f.at
	}
	if f.at.After(s.Last) {
		s.Last = f.at
	}
}

// keep sets a text where it is there, wanted and another than before.
func keep(to *string, v []byte, limit int, wanted bool) {
	if in := bare(v); wanted && len(in) > 0 && string(in) != *to {
		*to = text(v, limit)
	}
}

// take tells whether the line was understood.
func (f *Fold) take() bool {
	l := &f.line
	f.at = l.time()
	f.main = !l.sidechain || f.s.AgentID != "" || len(l.agent) > 0
	switch string(l.kind) {
	case "user":
		return f.user()
	case "assistant":
		return f.assistant()
	case "system":
		return f.system()
	case "summary":
		f.titled(l.summary, false)
	case "custom-title":
		f.titled(l.title, true)
	case "ai-title":
		f.titled(l.title, false)
	default:
		f.s.Unknown++
	}
	return true
}

func (f *Fold) titled(v []byte, byPerson bool) {
	if t := text(v, maxPrompt); t != "" && (byPerson || !f.named) {
		f.s.Title, f.named = t, byPerson
	}
}

func (f *Fold) system() bool {
	l := &f.line
	switch {
	case string(l.subtype) == "compact_boundary":
		f.s.Compactions++
	case string(l.level) == "error", string(l.subtype) == "api_error":
		f.s.Errors++
		keep(&f.s.LastError, l.note, maxPrompt, true)
	}
	return true
}

func (f *Fold) user() bool {
	l := &f.line
	results, said := 0, false
	kind := machine
	any := blocks(l.content, func(b *block) {
		switch {
		case b.resultOf():
			results++
			f.result(b)
		case string(b.kind) == "text" && !said:
			said = true
			kind = f.said(b.text)
		case string(b.kind) == "image", string(b.kind) == "document":
			if !said {
				kind = prompt
			}
		}
	})
	if !any {
		f.s.Odd++
		return false
	}
	switch {
	case results > 0:
		f.wait(true)
		if kind == interrupted {
			f.wait(false)
		}
	case l.meta || l.compact:
	case kind == interrupted:
		f.wait(false)
	case kind == prompt && f.main:
		f.s.Turns++
		f.s.Messages++
		f.wait(true)
	}
	return true
}

// wait notes whether somebody waits for an answer of the model.
func (f *Fold) wait(unfinished bool) {
	if f.main {
		f.s.Unfinished = unfinished
	}
}

// said looks at a text in the person's name.
func (f *Fold) said(v []byte) speech {
	if f.line.meta || f.line.compact {
		return machine
	}
	begin := text(v, maxPrompt)
	kind := speechOf(begin)
	if !f.main {
		return kind
	}
	switch {
	case kind == prompt && !f.spoke:
		f.s.Prompt, f.spoke = begin, true
	case kind == command && f.s.Prompt == "":
		f.s.Prompt = commandOf(begin)
	}
	return kind
}

func (f *Fold) assistant() bool {
	l := &f.line
	calls, texts := 0, 0
	any := blocks(l.content, func(b *block) {
		switch {
		case b.use():
			calls++
			f.call(b)
		case b.resultOf():
			f.result(b)
		case string(b.kind) == "text":
			texts++
			if l.failed {
				f.s.Errors++
				keep(&f.s.LastError, b.text, maxPrompt, true)
			}
		}
	})
	if !any && len(l.usage) == 0 {
		f.s.Odd++
		return false
	}
	f.used()
	f.stops = f.stops || len(l.stop) > 0
	switch string(l.stop) {
	case "tool_use", "pause_turn":
		f.wait(true)
	case "":
		f.wait(!l.failed && (calls > 0 || texts == 0 || f.stops))
	default:
		f.wait(false)
	}
	return true
}

// used counts what the message has used, once however many lines tell of it.
func (f *Fold) used() {
	l := &f.line
	named, tokens := l.messageID(), tokensOf(l.usage)
	id := idHash(named)
	for i := range f.recent {
		if r := &f.recent[i]; r.id == id && len(named) > 0 {
			more := r.tokens.Max(tokens)
			usd, _ := f.priced[r.model].Cost(more, f.at)
			f.spend(r.model, more.Sub(r.tokens), usd-r.cost)
			r.tokens, r.cost = more, usd
			return
		}
	}
	if len(named) > 0 && !f.spoken.add(id) {
		return
	}
	f.s.Messages++
	model := f.model(l.model)
	usd, _ := f.priced[model].Cost(tokens, f.at)
	r := messageUse{id: id, model: model, tokens: tokens, cost: usd}
	f.recent[f.next%maxRecent] = r
	f.next++
	if model >= 0 {
		f.s.Models[model].Messages++
	}
	f.spend(model, tokens, r.cost)
}

func (f *Fold) spend(model int, t Tokens, usd float64) {
	f.s.Tokens = f.s.Tokens.Add(t)
	f.s.CostUSD += usd
	if model < 0 {
		f.s.Unpriced += t.Total()
		return
	}
	m := &f.s.Models[model]
	m.Tokens, m.CostUSD = m.Tokens.Add(t), m.CostUSD+usd
	if m.Priced {
		f.s.Priced += t.Total()
	} else {
		f.s.Unpriced += t.Total()
	}
}

// synthetic is the model of messages that the CLI made itself.
const synthetic = "<synthetic>"

// model is the place of a model in Models, -1 for none.
func (f *Fold) model(name []byte) int {
	if len(name) == 0 || string(name) == synthetic {
		return -1
	}
	name = name[:min(len(name), maxName)]
	if string(name) != f.s.Model {
		f.s.Model = string(name)
	}
	if i, ok := f.models[string(name)]; ok {
		return i
	}
	list := f.prices.List(string(name))
	if len(f.s.Models) >= maxModels {
		if i, ok := f.models[Others]; ok {
			return i
		}
		name, list = []byte(Others), nil
	}
	i := len(f.s.Models)
	f.models[string(name)], f.priced[i] = i, list
	f.s.Models = append(f.s.Models, ModelUse{Name: string(name), Priced: list != nil})
	return i
}

func (f *Fold) call(b *block) {
	id := idHash(b.id)
	if !f.called.add(id) {
		return
	}
	tool := f.tool(b.name)
	u := &f.s.Tools[tool]
	u.Calls++
	f.s.Calls++
	if f.at.After(u.Last) {
		u.Last = f.at
	}
	c := openCall{tool: tool, agent: -1, at: f.at}
	if (string(b.name) == "Agent" || string(b.name) == "Task") && len(f.s.Agents) < maxAgentCalls {
		c.agent = len(f.s.Agents)
		f.s.Agents = append(f.s.Agents, agentCall(b))
	}
	f.remember(id, c)
}

func agentCall(b *block) AgentCall {
	a := AgentCall{CallID: string(b.id[:min(len(b.id), maxName)])}
	members(b.input, func(key, v []byte) bool {
		switch string(key) {
		case "subagent_type":
			a.Type = text(v, maxName)
		case "description":
			a.Description = text(v, maxPrompt)
		}
		return true
	})
	return a
}

// remember notes an open call and forgets the oldest where there are too many.
func (f *Fold) remember(id uint64, c openCall) {
	f.open[id] = c
	f.order = append(f.order, id)
	if len(f.order) >= 2*maxOpen { // most are closed
		kept := f.order[:0]
		for _, o := range f.order {
			if _, ok := f.open[o]; ok {
				kept = append(kept, o)
			}
		}
		f.order = kept
	}
	for len(f.open) > maxOpen {
		delete(f.open, f.order[0])
		f.order = f.order[1:]
	}
}

func (f *Fold) tool(name []byte) int {
	name = name[:min(len(name), maxName)]
	if i, ok := f.tools[string(name)]; ok {
		return i
	}
	if len(f.s.Tools) >= maxTools {
		if i, ok := f.tools[Others]; ok {
			return i
		}
		name = []byte(Others)
	}
	i := len(f.s.Tools)
	f.tools[string(name)] = i
	f.s.Tools = append(f.s.Tools, ToolUse{Name: string(name)})
	return i
}

// maxVerdict is how much of a result is looked at to tell whether the call was denied.
const maxVerdict = 300

func (f *Fold) result(b *block) {
	id := idHash(b.of)
	c, ok := f.open[id]
	if !ok {
		return
	}
	delete(f.open, id)
	u := &f.s.Tools[c.tool]
	u.Ended++
	switch {
	case b.failed && denied(said(b.content, maxVerdict)):
		u.Denied++
		f.s.Denied++
	case b.failed:
		u.Failed++
		f.s.Failed++
	}
	took, agent := f.line.told()
	if took == 0 && !c.at.IsZero() && !f.at.IsZero() {
		took = f.at.Sub(c.at)
	}
	if took > 0 { // a clock that went back tells nothing
		u.Timed++
		u.Took += took
		u.Max = max(u.Max, took)
	}
	if c.agent >= 0 {
		a := &f.s.Agents[c.agent]
		a.Ended, a.AgentID = true, string(agent[:min(len(agent), maxName)])
	}
}
