package transcript

import (
	"hash/maphash"
	"time"

	"acescope/engine/agents/price"
)

// Bounds of what a fold remembers.
const (
	maxSeen    = 32 << 10 // at least so many of the newest lines, messages and calls
	maxVerdict = 300      // bytes of a result that say whether the call was denied
)

// synthetic is the model of messages that the CLI itself wrote.
const synthetic = "<synthetic>"

// Fold makes a summary of lines, one after the other. It is not safe for concurrent use.
type Fold struct {
	tally
	only func(uuid uint64) bool // selects lines; nil for all

	line   line
	main   bool // the line belongs to the main conversation of the file
	lines  newest[struct{}]
	spoken newest[messageUse]
	called newest[call]

	stops bool // this version records why messages ended
	named bool // the user set the title
	spoke bool // Prompt is a prompt, not a command
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

// NewFold makes a fold. With nil prices all costs are unknown.
func NewFold(prices *price.Prices) *Fold { return &Fold{tally: newTally(prices)} }

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
	uuid := l.bare("uuid")
	id := idHash(uuid)
	if f.only != nil && (len(uuid) == 0 || !f.only(id)) {
		return
	}
	if len(uuid) == 0 {
		f.addLine()
		return
	}
	if _, known := f.lines.get(id); known {
		f.s.Repeated++
	} else if f.addLine() {
		f.lines.put(id, struct{}{})
		f.addSession()
	}
}

// addSession reads the fields that every line repeats.
func (f *Fold) addSession() {
	l, s := &f.line, &f.s
	if s.First == "" {
		s.First = cutName(l.bare("uuid"))
	}
	if l.isTrue("isSidechain") && s.AgentID == "" {
		s.AgentID = cutName(l.bare("agentId"))
	}
	if s.WorkDir == "" {
		set(&s.WorkDir, l.get("cwd"), maxPath) // only the first one
	}
	set(&s.Branch, l.get("gitBranch"), maxPrompt)
	set(&s.Version, l.get("version"), maxName)
	if session := l.bare("sessionId"); len(session) > 0 && string(session) != s.SessionID {
		s.SessionID = cutName(session)
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
	f.main = !l.isTrue("isSidechain") || f.s.AgentID != "" || len(l.bare("agentId")) > 0
	switch string(l.bare("type")) {
	case "user":
		return f.user()
	case "assistant":
		return f.assistant()
	case "system":
		f.system()
	case "summary":
		f.title(l.get("summary"), false)
	case "custom-title":
		f.title(l.get("customTitle"), true)
	case "ai-title":
		f.title(l.get("aiTitle"), false)
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
	case string(l.bare("subtype")) == "compact_boundary":
		f.s.Compactions++
	case l.isError():
		f.s.Errors++
		set(&f.s.LastError, l.get("content"), maxPrompt)
	}
}

func (f *Fold) user() bool {
	l := &f.line
	results, texts := 0, 0
	kind := generated
	any := blocks(l.message.get("content"), func(b object) {
		switch {
		case b.isResult():
			results++
			f.result(b)
		case b.is("text") && texts == 0:
			texts++
			kind = f.userText(b.get("text"))
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
	case l.isGenerated():
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
	if f.line.isGenerated() {
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
	calls, texts, failed := 0, 0, l.isTrue("isApiErrorMessage")
	any := blocks(l.message.get("content"), func(b object) {
		switch {
		case b.isCall():
			calls++
			f.call(b)
		case b.isResult():
			f.result(b)
		case b.is("text"):
			texts++
			if failed {
				f.s.Errors++
				set(&f.s.LastError, b.get("text"), maxPrompt)
			}
		}
	})
	if !any && len(l.message.get("usage")) == 0 {
		f.s.Odd++
		return false
	}
	f.usage()
	stop := string(l.message.bare("stop_reason"))
	f.stops = f.stops || stop != ""
	switch stop {
	case "tool_use", "pause_turn":
		f.unfinished(true)
	case "":
		f.unfinished(!failed && (calls > 0 || texts == 0 || f.stops))
	default:
		f.unfinished(false)
	}
	return true
}

// usage counts the usage of a message once, although each of its lines reports it.
func (f *Fold) usage() {
	l := &f.line
	named, tokens := l.messageID(), tokensOf(l.message.get("usage"))
	id := idHash(named)
	if known, ok := f.spoken.get(id); ok && len(named) > 0 {
		more := known.tokens.Max(tokens)
		usd, _ := f.priced[known.model].Cost(more, f.at)
		f.spend(known.model, more.Sub(known.tokens), usd-known.cost)
		f.spoken.put(id, messageUse{known.model, more, usd})
		return
	}
	f.s.Messages++
	model := f.model(l.message.bare("model"))
	usd, _ := f.priced[model].Cost(tokens, f.at)
	f.spoken.put(id, messageUse{model, tokens, usd})
	if model >= 0 {
		f.s.Models[model].Messages++
	}
	f.spend(model, tokens, usd)
}

func (f *Fold) call(b object) {
	id, name := idHash(b.bare("id")), b.bare("name")
	if _, known := f.called.get(id); known {
		return
	}
	tool := f.tool(name)
	c := call{tool: tool, agent: -1, at: f.at}
	if (string(name) == "Agent" || string(name) == "Task") && len(f.s.Agents) < maxAgentCalls {
		c.agent = len(f.s.Agents)
		f.s.Agents = append(f.s.Agents, agentCall(b))
	}
	f.called.put(id, c)
}

func agentCall(b object) AgentCall {
	var input object
	input.parse(b.get("input"))
	return AgentCall{
		CallID: cutName(b.bare("id")), Type: text(input.get("subagent_type"), maxName),
		Description: text(input.get("description"), maxPrompt),
	}
}

func (f *Fold) result(b object) {
	id, failed := idHash(b.bare("tool_use_id")), b.isTrue("is_error")
	c, ok := f.called.get(id)
	if !ok || c.ended {
		return
	}
	c.ended = true
	f.called.put(id, c)
	u := &f.s.Tools[c.tool]
	u.Ended++
	switch {
	case failed && denied(resultText(b.get("content"), maxVerdict)):
		u.Denied++
		f.s.Denied++
	case failed:
		u.Failed++
		f.s.Failed++
	}
	duration, agent := f.line.resultInfo()
	if duration == 0 && !c.at.IsZero() && !f.at.IsZero() {
		duration = f.at.Sub(c.at)
	}
	if duration > 0 { // the clock may have gone back
		u.Timed++
		ms := float64(duration) / float64(time.Millisecond)
		u.TotalMS += ms
		u.MaxMS = max(u.MaxMS, ms)
	}
	if c.agent >= 0 {
		a := &f.s.Agents[c.agent]
		a.Ended, a.AgentID = true, cutName(agent)
	}
}

// Tokens counts tokens by price category.
type Tokens = price.Tokens

func tokensOf(usage []byte) Tokens {
	var u, writes object
	u.parse(usage)
	writes.parse(u.get("cache_creation"))
	t := Tokens{
		Input: u.count("input_tokens"), Output: u.count("output_tokens"),
		CacheRead:    u.count("cache_read_input_tokens"),
		CacheWrite5m: writes.count("ephemeral_5m_input_tokens"),
		CacheWrite1h: writes.count("ephemeral_1h_input_tokens"),
	}
	// Older versions report only the sum; their writes were for five minutes.
	t.CacheWrite5m += max(0, u.count("cache_creation_input_tokens")-t.CacheWrite())
	return t
}

// seed is shared by all folds of a process, so that their IDs can be compared.
var seed = maphash.MakeSeed()

// idHash hashes an ID to 64 bits; collisions are improbable.
func idHash(id []byte) uint64 { return maphash.Bytes(seed, id) }

// newest remembers the values of the newest IDs in two generations: when the young one is full,
// the old one is forgotten.
type newest[V any] struct{ young, old map[uint64]V }

func (n *newest[V]) get(id uint64) (v V, ok bool) {
	if v, ok = n.young[id]; !ok {
		v, ok = n.old[id]
	}
	return v, ok
}

func (n *newest[V]) put(id uint64, v V) {
	if n.young == nil {
		n.young = map[uint64]V{}
	}
	if len(n.young) >= maxSeen {
		n.old, n.young = n.young, make(map[uint64]V, maxSeen)
	}
	n.young[id] = v
}
