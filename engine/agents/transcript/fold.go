package transcript

import (
	"hash/maphash"
	"slices"
	"time"

	"acescope/engine/agents/price"
)

// Bounds of what a fold remembers.
const (
	maxRecent  = 64       // messages that later lines may still add to
	maxOpen    = 512      // calls without a result
	maxSeen    = 32 << 10 // at least so many of the newest IDs of a set
	maxVerdict = 300      // bytes of a result that say whether the call was denied
)

// synthetic is the model of messages that the CLI itself wrote.
const synthetic = "<synthetic>"

// Fold makes a summary of lines, one after the other. It is not safe for concurrent use.
type Fold struct {
	prices *price.Prices
	skip   func(uuid uint64) bool // excludes lines; nil for none

	s      Summary
	line   line
	at     time.Time // of the line
	main   bool      // the line belongs to the main conversation of the file
	lines  idSet     // uuids
	spoken idSet     // message IDs
	called idSet     // call IDs

	recent [maxRecent]messageUse
	next   int // index of recent to write
	open   map[uint64]openCall
	order  []uint64 // keys of open, oldest first, and some closed calls
	models map[string]int
	tools  map[string]int
	priced map[int]price.ModelPrices // by index of Models
	stops  bool                      // this version records why messages ended
	named  bool                      // the user set the title
	spoke  bool                      // Prompt is a prompt, not a command
}

// messageUse is the known usage of a message.
type messageUse struct {
	id     uint64
	model  int
	tokens Tokens
	cost   float64
}

// openCall is a tool call without a result. tool and agent are indexes of Tools and Agents;
// agent is -1 for other tools.
type openCall struct {
	tool, agent int
	at          time.Time
}

// NewFold makes a fold. With nil prices all costs are unknown.
func NewFold(prices *price.Prices) *Fold {
	if prices == nil {
		prices = &price.Prices{}
	}
	return &Fold{
		prices: prices, open: map[uint64]openCall{}, models: map[string]int{}, tools: map[string]int{},
		priced: map[int]price.ModelPrices{},
	}
}

// Summary returns the summary of the lines so far.
func (f *Fold) Summary() Summary {
	s := f.s
	s.Models, s.Tools, s.Agents = slices.Clone(s.Models), slices.Clone(s.Tools), slices.Clone(s.Agents)
	return s
}

// Ended reports whether the last turn has certainly ended: nothing is unfinished, and the CLI
// is new enough to record why messages ended.
func (f *Fold) Ended() bool { return f.stops && !f.s.Unfinished }

// Oversize counts n lines that were too long to read.
func (f *Fold) Oversize(n int) {
	f.s.Oversized += n
	f.s.Lines += n
}

// Add adds the next line. It does not keep raw.
func (f *Fold) Add(raw []byte) {
	l := &f.line
	f.s.Lines++
	if !l.parse(raw) {
		f.s.Unreadable++
		return
	}
	if len(l.uuid) == 0 {
		f.addLine()
		return
	}
	id := idHash(l.uuid)
	switch {
	case f.skip != nil && f.skip(id):
	case f.lines.has(id):
		f.s.Repeated++
	case f.addLine():
		f.lines.add(id)
		f.addSession()
	}
}

// addSession reads the fields that every line repeats.
func (f *Fold) addSession() {
	l, s := &f.line, &f.s
	if s.First == "" {
		s.First = cutName(l.uuid)
	}
	if l.sidechain && s.AgentID == "" {
		s.AgentID = cutName(l.agent)
	}
	if s.WorkDir == "" {
		set(&s.WorkDir, l.cwd, maxPath) // only the first one
	}
	set(&s.Branch, l.branch, maxPrompt)
	set(&s.Version, l.version, maxName)
	if len(l.session) > 0 && string(l.session) != s.SessionID {
		s.SessionID = cutName(l.session)
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

func cutName(name []byte) string { return string(name[:min(len(name), maxName)]) }

// set sets a text unless the value is empty. It does not allocate if the text is the same.
func set(to *string, v []byte, limit int) {
	if in := bare(v); len(in) > 0 && string(in) != *to {
		*to = text(v, limit)
	}
}

// addLine reports whether the line was well-formed.
func (f *Fold) addLine() bool {
	l := &f.line
	f.at = l.time()
	f.main = !l.sidechain || f.s.AgentID != "" || len(l.agent) > 0
	switch string(l.kind) {
	case "user":
		return f.user()
	case "assistant":
		return f.assistant()
	case "system":
		f.system()
	case "summary":
		f.title(l.summary, false)
	case "custom-title":
		f.title(l.title, true)
	case "ai-title":
		f.title(l.title, false)
	default:
		f.s.Unknown++
	}
	return true
}

func (f *Fold) title(v []byte, byUser bool) {
	if t := text(v, maxPrompt); t != "" && (byUser || !f.named) {
		f.s.Title, f.named = t, byUser
	}
}

func (f *Fold) system() {
	l := &f.line
	switch {
	case string(l.subtype) == "compact_boundary":
		f.s.Compactions++
	case string(l.level) == "error", string(l.subtype) == "api_error":
		f.s.Errors++
		set(&f.s.LastError, l.note, maxPrompt)
	}
}

func (f *Fold) user() bool {
	l := &f.line
	results, texts := 0, 0
	kind := generated
	any := blocks(l.content, func(b *block) {
		switch {
		case b.isResult():
			results++
			f.result(b)
		case b.is("text") && texts == 0:
			texts++
			kind = f.userText(b.text)
		case (b.is("image") || b.is("document")) && texts == 0:
			kind = prompt
		}
	})
	if !any {
		f.s.Odd++
		return false
	}
	switch {
	case results > 0:
		f.unfinished(kind != interrupted)
	case l.meta || l.compact:
	case kind == interrupted:
		f.unfinished(false)
	case kind == prompt && f.main:
		f.s.Turns++
		f.s.Messages++
		f.unfinished(true)
	}
	return true
}

// unfinished sets whether the main conversation waits for an answer of the model.
func (f *Fold) unfinished(unfinished bool) {
	if f.main {
		f.s.Unfinished = unfinished
	}
}

// userText classifies the text of a user message and notes the first prompt.
func (f *Fold) userText(v []byte) userText {
	if f.line.meta || f.line.compact {
		return generated
	}
	t := text(v, maxPrompt)
	kind := classify(t)
	switch {
	case !f.main:
	case kind == prompt && !f.spoke:
		f.s.Prompt, f.spoke = t, true
	case kind == command && f.s.Prompt == "":
		f.s.Prompt = typedCommand(t)
	}
	return kind
}

func (f *Fold) assistant() bool {
	l := &f.line
	calls, texts := 0, 0
	any := blocks(l.content, func(b *block) {
		switch {
		case b.isCall():
			calls++
			f.call(b)
		case b.isResult():
			f.result(b)
		case b.is("text"):
			texts++
			if l.failed {
				f.s.Errors++
				set(&f.s.LastError, b.text, maxPrompt)
			}
		}
	})
	if !any && len(l.usage) == 0 {
		f.s.Odd++
		return false
	}
	f.usage()
	f.stops = f.stops || len(l.stop) > 0
	switch string(l.stop) {
	case "tool_use", "pause_turn":
		f.unfinished(true)
	case "":
		f.unfinished(!l.failed && (calls > 0 || texts == 0 || f.stops))
	default:
		f.unfinished(false)
	}
	return true
}

// usage counts the usage of a message once, although each of its lines reports it.
func (f *Fold) usage() {
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
	f.recent[f.next%maxRecent] = messageUse{id: id, model: model, tokens: tokens, cost: usd}
	f.next++
	if model >= 0 {
		f.s.Models[model].Messages++
	}
	f.spend(model, tokens, usd)
}

func (f *Fold) spend(model int, t Tokens, usd float64) {
	f.s.Tokens = f.s.Tokens.Add(t)
	f.s.CostUSD += usd
	if model < 0 {
		f.s.Unpriced += t.Total()
		return
	}
	m := &f.s.Models[model]
	m.Tokens = m.Tokens.Add(t)
	m.CostUSD += usd
	if m.Priced {
		f.s.Priced += t.Total()
	} else {
		f.s.Unpriced += t.Total()
	}
}

// model returns the index of a model in Models, or -1 without a model.
func (f *Fold) model(name []byte) int {
	if len(name) == 0 || string(name) == synthetic {
		return -1
	}
	name = name[:min(len(name), maxName)]
	if string(name) != f.s.Model {
		f.s.Model = string(name)
	}
	i, isNew := index(f.models, name, maxModels)
	if isNew {
		m := ModelUse{Name: Others}
		if i < maxModels {
			m.Name = string(name)
			f.priced[i] = f.prices.ForModel(m.Name)
		}
		m.Priced = f.priced[i] != nil
		f.s.Models = append(f.s.Models, m)
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

func (f *Fold) call(b *block) {
	id := idHash(b.id)
	if !f.called.add(id) {
		return
	}
	tool, isNew := index(f.tools, b.name[:min(len(b.name), maxName)], maxTools)
	if isNew {
		name := Others
		if tool < maxTools {
			name = cutName(b.name)
		}
		f.s.Tools = append(f.s.Tools, ToolUse{Name: name})
	}
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
	f.addOpen(id, c)
}

func agentCall(b *block) AgentCall {
	a := AgentCall{CallID: cutName(b.id)}
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

// addOpen adds an open call and forgets the oldest ones over the limit.
func (f *Fold) addOpen(id uint64, c openCall) {
	f.open[id] = c
	f.order = append(f.order, id)
	if len(f.order) >= 2*maxOpen { // most are closed
		f.order = slices.DeleteFunc(f.order, func(o uint64) bool {
			_, open := f.open[o]
			return !open
		})
	}
	for len(f.open) > maxOpen {
		delete(f.open, f.order[0])
		f.order = f.order[1:]
	}
}

func (f *Fold) result(b *block) {
	id := idHash(b.callID)
	c, ok := f.open[id]
	if !ok {
		return
	}
	delete(f.open, id)
	u := &f.s.Tools[c.tool]
	u.Ended++
	switch {
	case b.failed && denied(resultText(b.content, maxVerdict)):
		u.Denied++
		f.s.Denied++
	case b.failed:
		u.Failed++
		f.s.Failed++
	}
	duration, agent := f.line.resultInfo()
	if duration == 0 && !c.at.IsZero() && !f.at.IsZero() {
		duration = f.at.Sub(c.at)
	}
	if duration > 0 { // the clock may have gone back
		u.Timed++
		u.Total += duration
		u.Max = max(u.Max, duration)
	}
	if c.agent >= 0 {
		a := &f.s.Agents[c.agent]
		a.Ended, a.AgentID = true, cutName(agent)
	}
}

// Tokens counts tokens by price category.
type Tokens = price.Tokens

func tokensOf(usage []byte) (t Tokens) {
	var writes int64
	members(usage, func(key, v []byte) bool {
		switch string(key) {
		case "input_tokens":
			t.Input = count(v)
		case "output_tokens":
			t.Output = count(v)
		case "cache_read_input_tokens":
			t.CacheRead = count(v)
		case "cache_creation_input_tokens":
			writes = count(v)
		case "cache_creation":
			members(v, func(key, v []byte) bool {
				switch string(key) {
				case "ephemeral_5m_input_tokens":
					t.CacheWrite5m = count(v)
				case "ephemeral_1h_input_tokens":
					t.CacheWrite1h = count(v)
				}
				return true
			})
		}
		return true
	})
	// Older versions report only the sum; their writes were for five minutes.
	t.CacheWrite5m += max(0, writes-t.CacheWrite())
	return t
}

// seed is shared by all folds of a process, so that their IDs can be compared.
var seed = maphash.MakeSeed()

// idHash hashes an ID to 64 bits; collisions are improbable.
func idHash(id []byte) uint64 { return maphash.Bytes(seed, id) }

// idSet remembers the newest IDs in two generations: when the young one is full, the old one
// is forgotten.
type idSet struct{ young, old map[uint64]struct{} }

// add reports whether the ID is new.
func (s *idSet) add(id uint64) bool {
	if s.has(id) {
		return false
	}
	if s.young == nil {
		s.young = map[uint64]struct{}{}
	}
	if len(s.young) >= maxSeen {
		s.old, s.young = s.young, make(map[uint64]struct{}, maxSeen)
	}
	s.young[id] = struct{}{}
	return true
}

func (s *idSet) has(id uint64) bool {
	_, young := s.young[id]
	_, old := s.old[id]
	return young || old
}
