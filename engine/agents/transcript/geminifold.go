package transcript

import (
	"cmp"
	"strings"
)

// geminiFold is the [Folder] of Gemini CLI's chats.
//
// A line is the metadata of the chat, a message, a change of the metadata ($set) that may contain all
// messages again, or a rewind ($rewindTo). A message is written again, with the same id, when it has changed.
// The tokens of a message are the usageMetadata of the API: input includes cached; output does not include
// thoughts, which are priced as output.
type geminiFold struct {
	tally
	line     object
	prompted newest[struct{}]
}

// Add implements [Folder].
func (f *geminiFold) Add(raw []byte) {
	f.s.Lines++
	if !f.line.parse(raw) {
		f.s.Unreadable++
		return
	}
	l := f.line
	switch {
	case len(l.bare("id")) > 0:
		f.message(l)
	case len(l.get("$set")) > 0:
		f.metadata(l.child("$set"))
	case len(l.bare("sessionId")) > 0:
		f.metadata(l)
	case len(l.get("$rewindTo")) > 0:
	default:
		f.s.Unknown++
	}
}

func (f *geminiFold) metadata(o object) {
	s := &f.s
	if id := o.bare("sessionId"); len(id) > 0 {
		s.SessionID = cutName(id)
	}
	set(&s.Title, o.get("summary"), maxPrompt)
	if s.WorkDir == "" {
		scan(o.get("directories"), '[', func(_, v []byte) {
			if s.WorkDir == "" {
				s.WorkDir = text(v, maxPath)
			}
		})
	}
	f.at = parseTime(o.bare("startTime"))
	f.touch()
	var message object
	scan(o.get("messages"), '[', func(_, v []byte) {
		if message.parse(v) {
			f.message(message)
		}
	})
}

func (f *geminiFold) message(m object) {
	f.at = m.time()
	f.touch()
	switch string(m.bare("type")) {
	case "user":
		f.user(m)
	case "gemini":
		f.answer(m)
	case "error":
		if f.isNew(m) {
			f.fail(contentText(m.get("content"), maxPrompt))
		}
	case "info", "warning":
	default:
		f.s.Unknown++
	}
}

// isNew reports whether the message is written for the first time.
func (f *geminiFold) isNew(m object) bool {
	id := idHash(m.bare("id"))
	if _, known := f.prompted.get(id); known {
		return false
	}
	f.prompted.put(id, struct{}{})
	return true
}

func (f *geminiFold) user(m object) {
	prompt := contentText(m.get("content"), maxPrompt)
	if !isGeminiPrompt(prompt) {
		f.s.Unfinished = f.s.Unfinished || prompt == "" // results of tool calls
		return
	}
	if f.isNew(m) {
		f.ask(prompt)
	}
}

// isGeminiPrompt reports whether the text of a user's message was typed by the user for the model: Gemini CLI
// adds messages of its own, and handles commands itself.
func isGeminiPrompt(t string) bool {
	t = strings.TrimSpace(t)
	return t != "" && !hasAnyPrefix(t, "/", "?", "<session_context>", "<hook_context>")
}

func (f *geminiFold) answer(m object) {
	f.use(m.bare("id"), m.bare("model"), geminiTokens(m.child("tokens")), 0)
	calls := 0
	geminiCalls(m, func(call object) {
		calls++
		id := call.bare("id")
		f.begin(id, call.bare("name"), geminiAgentCall(call))
		if how, ended := geminiOutcome(call); ended {
			at := f.at
			if t := call.time(); !t.IsZero() {
				f.at = t
			}
			f.end(id, how, 0, call.bare("agentId"))
			f.touch()
			f.at = at
		}
	})
	f.s.Unfinished = calls > 0
}

// geminiTokens sorts the tokens of a message into price categories.
func geminiTokens(o object) Tokens {
	input, cached := o.count("input"), o.count("cached")
	cached = min(cached, input)
	return Tokens{
		Input: input - cached + o.count("tool"), Output: o.count("output") + o.count("thoughts"),
		CacheRead: cached,
	}
}

func geminiCalls(m object, fn func(call object)) {
	var call object
	scan(m.get("toolCalls"), '[', func(_, v []byte) {
		if call.parse(v) && len(call.bare("name")) > 0 {
			fn(call)
		}
	})
}

// geminiOutcome returns the outcome of a call. ended is false while it runs or waits for approval. A command
// that fails is a success to the CLI, which adds its exit code to the output.
func geminiOutcome(call object) (how outcome, ended bool) {
	switch string(call.bare("status")) {
	case "success":
		output := geminiOutput(call)
		const says = "\nExit Code: "
		if at := strings.LastIndex(output, says); at >= 0 &&
			string(call.bare("name")) == "run_shell_command" &&
			!hasAnyPrefix(output[at+len(says):], "0", "(none)") {
			return failed, true
		}
		return succeeded, true
	case "error":
		return failed, true
	case "cancelled":
		return refused, true
	}
	return succeeded, false
}

// geminiOutput returns the text of a call's result.
func geminiOutput(call object) (output string) {
	var part object
	scan(call.get("result"), '[', func(_, v []byte) {
		if !part.parse(v) {
			return
		}
		response := part.child("functionResponse").child("response")
		for _, key := range []string{"output", "error"} {
			if t := text(response.get(key), MaxLine); t != "" {
				output = t
			}
		}
	})
	return output
}

// geminiAgentCall describes the subagent that a call starts, or returns nil. Its transcript has the same ID.
func geminiAgentCall(call object) *AgentCall {
	id := cutName(call.bare("agentId"))
	if id == "" {
		return nil
	}
	args := call.child("args")
	return &AgentCall{CallID: cutName(call.bare("id")), AgentID: id, Type: cutName(call.bare("name")),
		Description: cmp.Or(text(args.get("objective"), maxPrompt), text(args.get("query"), maxPrompt))}
}
