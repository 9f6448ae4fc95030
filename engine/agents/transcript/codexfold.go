package transcript

import (
	"strconv"
	"strings"
	"time"
)

// codexFold is the [Folder] of Codex's rollouts.
//
// A token_count event has the usage of the last response and the sum of the session. Codex repeats it
// unchanged when only its rate limits have changed. Input includes the tokens that a cache read or wrote,
// output includes reasoning.
type codexFold struct {
	tally
	copying codexCopy
	line    object
	payload object

	model  []byte
	totals codexUsage // of the last token_count
	prompt codexPrompts
}

// codexUsage is a TokenUsage of Codex.
type codexUsage struct{ input, cached, written, output, reasoning, total int64 }

func codexUsageOf(o object) codexUsage {
	return codexUsage{
		o.count("input_tokens"), o.count("cached_input_tokens"), o.count("cache_write_input_tokens"),
		o.count("output_tokens"), o.count("reasoning_output_tokens"), o.count("total_tokens"),
	}
}

// since returns the usage after an earlier sum.
func (u codexUsage) since(v codexUsage) codexUsage {
	return codexUsage{
		input: max(0, u.input-v.input), cached: max(0, u.cached-v.cached),
		written: max(0, u.written-v.written),
		output:  max(0, u.output-v.output),
	}
}

// tokens sorts the usage into price categories.
func (u codexUsage) tokens() Tokens {
	read := min(u.cached, u.input)
	written := min(u.written, u.input-read)
	return Tokens{Input: u.input - read - written, Output: u.output, CacheRead: read, CacheWrite5m: written}
}

// codexCopy recognizes the lines that Codex copies into the rollout of a fork. Up to version 0.98 they begin
// with the session_meta of the original and are written at once, so that their timestamps say nothing about
// their age. Newer versions copy nothing.
type codexCopy struct {
	id   string // of the rollout's own session
	on   bool
	last time.Time
}

// copyPause is the longest time between two copied lines. A model takes longer to answer.
const copyPause = 500 * time.Millisecond

// add reports whether the line is copied.
func (c *codexCopy) add(line, payload object, at time.Time) bool {
	if string(line.bare("type")) == "session_meta" {
		id := cutName(payload.bare("id"))
		if c.id == "" {
			c.id = id
		} else if id != c.id {
			c.on, c.last = true, at
			return true
		}
	}
	c.on = c.on && at.Sub(c.last) < copyPause
	c.last = at
	return c.on
}

// codexPrompts recognizes the prompts of the user, which versions with paginated history record as completed
// items and older ones as events.
type codexPrompts struct {
	last string // not answered yet
}

// add returns the text of a new prompt. ok is false for another event, and for a prompt that was recorded
// before.
func (p *codexPrompts) add(payload object) (prompt string, ok bool) {
	switch string(payload.bare("type")) {
	case "user_message":
		prompt = text(payload.get("message"), MaxLine)
	case "item_completed":
		item := payload.child("item")
		if !item.is("UserMessage") {
			return "", false
		}
		prompt = contentText(item.get("content"), MaxLine)
	default:
		return "", false
	}
	if prompt != "" && prompt == p.last {
		return "", false
	}
	p.last = prompt
	return prompt, true
}

// Add implements [Folder].
func (f *codexFold) Add(raw []byte) {
	f.s.Lines++
	if !f.line.parse(raw) {
		f.s.Unreadable++
		return
	}
	f.payload.parse(f.line.get("payload"))
	f.at = f.line.time()
	kind := string(f.line.bare("type"))
	if f.copying.add(f.line, f.payload, f.at) {
		f.s.Repeated++
		f.copied(kind)
		return
	}
	f.touch()
	switch kind {
	case "session_meta":
		f.meta()
	case "turn_context":
		f.turnContext()
	case "response_item":
		f.item()
	case "event_msg":
		f.event()
	case "compacted":
		f.s.Compactions++
	case "world_state", "token_usage_record", "inter_agent_communication":
	default:
		f.s.Unknown++
	}
}

// copied reads from a line of the original the state that the fork's own lines continue: the model, the token
// sums and the prompt.
func (f *codexFold) copied(kind string) {
	switch kind {
	case "turn_context":
		f.turnContext()
	case "event_msg":
		if total := f.payload.child("info").child("total_token_usage"); len(total) > 0 {
			f.totals = codexUsageOf(total)
		}
		if prompt, ok := f.prompt.add(f.payload); ok && f.s.Prompt == "" {
			f.s.Prompt = cutText(prompt, maxPrompt)
		}
	}
}

func (f *codexFold) meta() {
	p, s := f.payload, &f.s
	s.SessionID = f.copying.id
	set(&s.Version, p.get("cli_version"), maxName)
	set(&s.WorkDir, p.get("cwd"), maxPath)
	set(&s.Branch, p.child("git").get("branch"), maxPrompt)
	set(&s.Origin, p.get("forked_from_id"), maxName)
	spawn := p.child("source").child("subagent").child("thread_spawn")
	if parent := spawn.bare("parent_thread_id"); len(parent) > 0 {
		s.AgentID, s.SessionID = s.SessionID, cutName(parent)
		s.Parent = s.SessionID
		s.Origin = ""
		if root := cutName(p.bare("session_id")); root != "" && root != s.AgentID {
			s.Parent, s.SessionID = root, root
		}
	}
}

func (f *codexFold) turnContext() {
	if model := f.payload.bare("model"); len(model) > 0 {
		f.model = append(f.model[:0], model...)
		set(&f.s.Model, f.payload.get("model"), maxName)
	}
	if f.s.WorkDir == "" {
		set(&f.s.WorkDir, f.payload.get("cwd"), maxPath)
	}
}

func (f *codexFold) event() {
	p := f.payload
	switch string(p.bare("type")) {
	case "token_count":
		f.usage()
	case "user_message":
		f.userPrompt()
	case "item_completed":
		f.userPrompt()
		item := p.child("item")
		if how := codexOutcome(item); how != succeeded {
			f.end(item.bare("id"), how, 0, nil)
		}
	case "exec_command_end":
		f.end(p.bare("call_id"), codexOutcome(p), 0, nil)
	case "patch_apply_end":
		if string(p.get("success")) == "false" {
			f.end(p.bare("call_id"), failed, 0, nil)
		}
	case "thread_name_updated":
		set(&f.s.Title, p.get("thread_name"), maxPrompt)
	case "error":
		f.s.Errors++
		set(&f.s.LastError, p.get("message"), maxPrompt)
		f.s.Unfinished = false
	case "task_complete", "turn_complete", "turn_aborted":
		f.s.Unfinished = false
	}
}

func (f *codexFold) usage() {
	info := f.payload.child("info")
	last, total := info.child("last_token_usage"), info.child("total_token_usage")
	spent, now := codexUsageOf(last), codexUsageOf(total)
	switch {
	case len(total) > 0 && now == f.totals:
		return
	case len(last) == 0:
		spent = now.since(f.totals)
	}
	if len(total) > 0 {
		f.totals = now
	}
	if tokens := spent.tokens(); tokens != (Tokens{}) {
		f.use(nil, f.model, tokens, 0)
	}
}

func (f *codexFold) userPrompt() {
	if prompt, ok := f.prompt.add(f.payload); ok {
		f.ask(prompt)
	}
}

// codexOutcome returns the outcome that an item or event states.
func codexOutcome(o object) outcome {
	switch code := string(o.get("exit_code")); {
	case string(o.bare("status")) == "declined":
		return refused
	case string(o.bare("status")) == "failed", code != "" && code != "0" && code != "null":
		return failed
	}
	return succeeded
}

func (f *codexFold) item() {
	p := f.payload
	id := p.bare("call_id")
	switch kind := string(p.bare("type")); kind {
	case "message":
		if string(p.bare("role")) == "assistant" {
			f.prompt.last = ""
			f.s.Unfinished = false
		}
	case "function_call", "custom_tool_call", "local_shell_call", "tool_search_call":
		f.begin(id, codexTool(p), codexAgentCall(p))
		f.s.Unfinished = true
	case "function_call_output", "custom_tool_call_output", "tool_search_output":
		how, agent := codexResult(p.get("output"))
		f.end(id, how, 0, agent)
		f.s.Unfinished = true
	case "web_search_call", "image_generation_call":
		id = []byte(strconv.Itoa(f.s.Lines)) // older versions give it no id
		f.begin(id, codexTool(p), nil)
		f.end(id, codexOutcome(p), 0, nil)
	}
}

// codexTool returns the name of a tool call. Calls of the model's own tools have no name.
func codexTool(p object) []byte {
	name := p.bare("name")
	if server := p.bare("namespace"); len(server) > 0 && len(name) > 0 {
		return []byte(string(server) + "__" + string(name))
	}
	if len(name) == 0 {
		name = []byte(strings.TrimSuffix(string(p.bare("type")), "_call"))
	}
	return name
}

func codexAgentCall(p object) *AgentCall {
	if string(p.bare("name")) != "spawn_agent" {
		return nil
	}
	var args object
	args.parse([]byte(text(p.get("arguments"), MaxLine)))
	return &AgentCall{
		CallID: cutName(p.bare("call_id")), Type: text(args.get("agent_type"), maxName),
		Description: text(args.get("message"), maxPrompt),
	}
}

// codexResult returns the outcome of a tool call as its output states it, and the subagent that the call
// started. The output is a text, which in older versions is a JSON object, a list of contents, or an object
// with them.
func codexResult(output []byte) (how outcome, agent []byte) {
	var o object
	if o.parse(output) { // {"content": …, "success": false}
		if string(o.get("success")) == "false" {
			return failed, nil
		}
		output = o.get("content")
	}
	if in := bare(output); len(in) > 0 && in[0] == '{' && o.parse([]byte(text(output, MaxLine))) {
		return codexOutcome(o.child("metadata")), o.bare("agent_id")
	}
	head := contentText(output, maxVerdict)
	if strings.Contains(head, "rejected by user") || strings.Contains(head, "rejected by the user") {
		return refused, nil
	}
	for _, says := range []string{"Process exited with code ", "Exit code: "} {
		if _, code, ok := strings.Cut(head, says); ok && !strings.HasPrefix(code, "0") {
			return failed, nil
		}
	}
	if hasAnyPrefix(head, "failed in sandbox", "execution error", "apply_patch verification failed",
		"exec_command failed", "unsupported call", "failed to parse function arguments") {
		return failed, nil
	}
	return succeeded, nil
}
