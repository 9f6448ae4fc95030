package transcript

import (
	"acescope/engine/agents/price"
)

// maxVerdict bounds the bytes of a result that say whether the call was denied.
const maxVerdict = 300

// synthetic is the model of messages that the CLI itself wrote.
const synthetic = "<synthetic>"

// Fold is the [Folder] of Claude Code's transcripts.
type Fold struct {
	tally
	only func(uuid uint64) bool // selects lines; nil for all

	line  line
	main  bool // the line belongs to the main conversation of the file
	lines newest[struct{}]

	stops bool // this version records why messages ended
	named bool // the user set the title
	spoke bool // Prompt is a prompt, not a command
}

// NewFold makes a fold. With nil prices all costs are unknown.
func NewFold(prices *price.Prices) *Fold { return &Fold{tally: newTally(prices)} }

// Ended reports whether the last turn has certainly ended: nothing is unfinished, and the CLI
// is new enough to record why messages ended.
func (f *Fold) Ended() bool { return f.stops && !f.s.Unfinished }

// Add implements [Folder].
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
	f.touch()
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
	f.use(l.messageID(), l.message.bare("model"), tokensOf(l.message.get("usage")), 0)
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

func (f *Fold) call(b object) {
	var agent *AgentCall
	if name := string(b.bare("name")); name == "Agent" || name == "Task" {
		var input object
		input.parse(b.get("input"))
		agent = &AgentCall{
			CallID: cutName(b.bare("id")), Type: text(input.get("subagent_type"), maxName),
			Description: text(input.get("description"), maxPrompt),
		}
	}
	f.begin(b.bare("id"), b.bare("name"), agent)
}

func (f *Fold) result(b object) {
	how := succeeded
	if b.isTrue("is_error") {
		how = failed
		if denied(contentText(b.get("content"), maxVerdict)) {
			how = refused
		}
	}
	duration, agent := f.line.resultInfo()
	f.end(b.bare("tool_use_id"), how, duration, agent)
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
