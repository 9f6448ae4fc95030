package agentclitest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// turn runs a turn and is the exit code that goes with it.
func (c *claude) turn(uuid, text string) int {
	began := time.Now()
	c.turnCalls, c.denials, c.said = 0, nil, ""
	c.busy.Store(true)
	defer c.rest()
	c.journal("turn", Entry{UUID: uuid, Text: text})
	c.log.add("user", uuid, object{"role": "user", "content": text}, nil)
	c.log.turns++
	c.greet()
	c.init()
	before := c.calls
	e := c.perform(c, text, c.log.turns)
	c.turnCalls = c.calls - before
	if c.stopped.Load() && e.kind == "" {
		e.kind = "aborted"
	}
	return c.result(e, began)
}

// rest leaves nothing of an interruption to the next turn.
func (c *claude) rest() {
	c.busy.Store(false)
	c.stopped.Store(false)
	select {
	case <-c.stop:
	default:
	}
}

func (c *claude) init() {
	mode, model := c.now()
	servers := []object{}
	for _, name := range c.hosts {
		servers = append(servers, object{"name": name, "status": "connected"})
	}
	c.print(object{
		"type": "system", "subtype": "init", "cwd": c.cwd, "session_id": c.session, "tools": []string{"Task", "Bash", "Edit", "Read", "Write"},
		"mcp_servers": servers, "model": model, "permissionMode": mode, "slash_commands": []string{"compact"}, "apiKeySource": "ANTHROPIC_API_KEY",
		"claude_code_version": c.set.Version, "output_style": "default", "uuid": newUUID(),
	})
}

// usageOf is what the API counts for so many calls.
func (c *claude) usageOf(calls int) object {
	return object{
		"input_tokens": 120 * calls, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 40 * calls, "output_tokens": 17 * calls,
		"service_tier": "standard",
	}
}

// message prints a message of the model, an event for each block, and writes it down.
func (c *claude) message(parent string, blocks ...object) {
	_, model := c.now()
	id := "msg_" + strings.ReplaceAll(newUUID(), "-", "")[:16]
	for _, b := range blocks {
		uuid := newUUID()
		m := object{
			"id": id, "type": "message", "role": "assistant", "model": model, "content": []object{b}, "stop_reason": nil, "stop_sequence": nil,
			"usage": object{"input_tokens": 120, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 40, "output_tokens": 1},
		}
		c.print(object{
			"type": "assistant", "message": m, "parent_tool_use_id": orNull(parent), "session_id": c.session, "uuid": uuid, "timestamp": now(),
			"request_id": "req_" + id[4:],
		})
		if parent == "" {
			m["stop_reason"], m["usage"] = stopOf(blocks), c.usageOf(1)
			c.log.add("assistant", uuid, m, func(r *record) { r.RequestID = "req_" + id[4:] })
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.messages++
}

// stopOf is why the model ended a message.
func stopOf(blocks []object) string {
	for _, b := range blocks {
		if b["type"] == "tool_use" {
			return "tool_use"
		}
	}
	return "end_turn"
}

// sum is what the process counts: from the cost-state on that it found, or from nothing.
func (c *claude) sum() costState {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := costState{Type: costType, SessionID: c.session, Messages: c.messages}
	if !c.set.OldCost {
		s.Messages += c.log.told.Messages
	}
	s.Cost = price * float64(s.Messages)
	return s
}

// bye tells the next process what the session has cost.
func (c *claude) bye() {
	if s := c.sum(); s.Messages > 0 && !c.set.OldCost {
		c.log.write(s)
	}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (c *claude) say(text string) { c.message("", object{"type": "text", "text": text}) }
func (c *claude) think(text string) {
	c.message("", object{"type": "thinking", "thinking": text, "signature": "sig"})
}

func (c *claude) delta(text string) {
	if !c.partial {
		return
	}
	c.print(object{
		"type": "stream_event", "event": object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": text}},
		"session_id": c.session, "parent_tool_use_id": nil, "uuid": newUUID(),
	})
}

func (c *claude) unknown() {
	c.print(object{"type": "not_yet_invented", "session_id": c.session, "payload": []int{1, 2, 3}})
	c.print(object{"type": "system", "subtype": "not_yet_invented", "session_id": c.session})
	c.print(object{"type": "keep_alive"})
}

func (c *claude) subagent() {
	id := "toolu_" + newUUID()[:8]
	c.message("", object{"type": "tool_use", "id": id, "name": "Agent", "input": object{"description": "sub work", "prompt": "do it"}})
	task := object{"type": "system", "subtype": "task_started", "task_id": "t1", "tool_use_id": id, "description": "sub work", "session_id": c.session, "uuid": newUUID()}
	c.print(task)
	c.message(id, object{"type": "text", "text": "the subagent speaks"})
	c.answer(id, "the subagent is done", false, false)
	c.apiCall()
	c.say("Subagent finished.")
}

// use calls tools.
func (c *claude) use(calls ...call) bool {
	ids := make([]string, len(calls))
	blocks := make([]object, len(calls))
	for i, t := range calls {
		ids[i] = "toolu_" + strings.ReplaceAll(newUUID(), "-", "")[:16]
		blocks[i] = object{"type": "tool_use", "id": ids[i], "name": t.name, "input": json.RawMessage(t.args)}
	}
	c.message("", blocks...)
	for i, t := range calls {
		if !c.useOne(ids[i], t) {
			return false
		}
	}
	return true
}

// useOne asks for a tool, calls it, and gives its result. It is false where the turn is over.
func (c *claude) useOne(id string, t call) bool {
	if t.denied {
		c.deny(id, t)
		return true
	}
	args := json.RawMessage(t.args)
	if mode, _ := c.now(); c.asks && !c.allowed[t.name] && mode != "bypassPermissions" {
		verdict, ok := c.ask(object{
			"subtype": "can_use_tool", "tool_name": t.name, "input": args, "tool_use_id": id, "permission_suggestions": []any{},
		})
		if !ok {
			return false
		}
		var v struct {
			Behavior  string          `json:"behavior"`
			Input     json.RawMessage `json:"updatedInput"`
			Message   string          `json:"message"`
			Interrupt bool            `json:"interrupt"`
		}
		if json.Unmarshal(verdict, &v) != nil || v.Behavior != "allow" {
			t.output = v.Message
			c.deny(id, t)
			c.stopped.Store(c.stopped.Load() || v.Interrupt)
			return !v.Interrupt
		}
		args = v.Input
	}
	if server, tool, ok := hostTool(t.name); ok {
		return c.useHost(id, t.name, server, tool, args)
	}
	c.journal("tool", Entry{Tool: t.name, ToolID: id, Args: args})
	c.answer(id, t.output, t.failed, false)
	return true
}

// hostTool is the server and the tool that a name tells.
func hostTool(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "__")
}

// useHost calls a tool of the host's.
func (c *claude) useHost(id, name, server, tool string, args json.RawMessage) bool {
	c.journal("host_tool", Entry{Tool: name, ToolID: id, Args: args})
	c.requests++
	raw, ok := c.mcp(server, object{
		"jsonrpc": "2.0", "id": c.requests + 100, "method": "tools/call",
		"params": object{"name": tool, "arguments": args, "_meta": object{"claudecode/toolUseId": id}},
	})
	if !ok {
		return false
	}
	var r struct {
		Result struct {
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			IsError bool `json:"isError"`
		} `json:"result"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	text, failed := "", true
	switch err := json.Unmarshal(raw, &r); {
	case err != nil:
		text = "MCP server did not answer"
	case r.Error != nil:
		text = r.Error.Message
	default:
		failed = r.Result.IsError
		for _, part := range r.Result.Content {
			text += part.Text
		}
	}
	c.answer(id, text, failed, false)
	return true
}

// deny tells that a tool was not allowed.
func (c *claude) deny(id string, t call) {
	c.denials = append(c.denials, object{"tool_name": t.name, "tool_use_id": id, "tool_input": json.RawMessage(t.args)})
	c.answer(id, t.output, true, true)
}

// answer gives a tool's result to the model.
func (c *claude) answer(id, output string, failed, denied bool) {
	uuid := newUUID()
	m := object{"role": "user", "content": []object{{"tool_use_id": id, "type": "tool_result", "content": output, "is_error": failed}}}
	decision := "accept"
	if denied {
		decision = "reject"
	}
	c.print(object{
		"type": "user", "message": m, "parent_tool_use_id": nil, "session_id": c.session, "uuid": uuid, "timestamp": now(),
		"tool_use_result":  object{"stdout": output, "stderr": "", "interrupted": false},
		"tool_result_meta": []object{{"id": id, "permission_decision": object{"decision": decision, "source": "config"}}},
	})
	c.log.add("user", uuid, m, func(r *record) { r.ToolResult = object{"stdout": output} })
}

// result ends the turn.
func (c *claude) result(e end, began time.Time) int {
	code := e.code
	switch e.kind {
	case "tooold":
		fmt.Fprintf(os.Stderr, "It looks like your version of Claude Code (%s) needs an update.\nA newer version (9.0.0 or higher) is required to continue.\n", c.set.Version)
		return 1
	case "usage":
		fmt.Fprintln(os.Stderr, "error: unknown option '--no-such-option'")
		return 1
	case "overloaded":
		for i := range 2 {
			c.print(object{
				"type": "system", "subtype": "api_retry", "attempt": i + 1, "max_retries": 2, "retry_delay_ms": 5, "error_status": 529,
				"error": "overloaded", "session_id": c.session, "uuid": newUUID(),
			})
			c.apiCall()
		}
	}
	if e.mute {
		return max(0, code)
	}
	_, model := c.now()
	sum := c.sum()
	r := object{
		"type": "result", "subtype": "success", "is_error": false, "duration_ms": time.Since(began).Milliseconds(), "duration_api_ms": 1,
		"num_turns": max(1, c.turnCalls), "result": "", "session_id": c.session, "total_cost_usd": sum.Cost, "usage": c.usageOf(c.turnCalls),
		"modelUsage":         object{model: object{"inputTokens": 120 * sum.Messages, "outputTokens": 17 * sum.Messages, "costUSD": sum.Cost}},
		"permission_denials": c.denials, "stop_reason": "end_turn", "terminal_reason": "completed", "uuid": newUUID(),
	}
	if c.denials == nil {
		r["permission_denials"] = []any{}
	}
	if f, failed := failures[e.kind]; failed {
		for k, v := range f.fields {
			r[k] = v
		}
		if f.said != "" {
			c.synthetic(f)
			r["result"] = f.said
		}
		if code < 0 {
			code = f.code
		}
	} else {
		r["result"] = c.said
	}
	for i := range e.also {
		first := object{}
		for k, v := range r {
			first[k] = v
		}
		first["uuid"], first["result_index"] = newUUID(), i
		c.print(first)
		c.say("more, from the background")
	}
	c.print(r)
	return max(0, code)
}

// synthetic prints what the CLI says in the model's place.
func (c *claude) synthetic(f failure) {
	c.print(object{
		"type": "assistant", "message": object{
			"id": newUUID(), "type": "message", "role": "assistant", "model": "<synthetic>", "stop_reason": "stop_sequence",
			"content": []object{{"type": "text", "text": f.said}}, "usage": c.usageOf(0),
		}, "parent_tool_use_id": nil, "session_id": c.session, "uuid": newUUID(), "timestamp": now(), "error": f.fault,
		"is_api_error_message": true,
	})
}

// failure is how a turn that fails ends.
type failure struct {
	fields object
	said   string
	fault  string
	code   int
}

func apiFailure(status int, fault, kind, text string) failure {
	return failure{said: fmt.Sprintf("API Error: %d %s", status, text), fault: fault, code: 1, fields: object{
		"is_error": true, "api_error_status": status, "api_error_type": kind, "terminal_reason": "api_error", "stop_reason": "stop_sequence",
	}}
}

func errorFailure(subtype, reason, text string, code int) failure {
	return failure{code: code, fields: object{
		"is_error": true, "subtype": subtype, "terminal_reason": reason, "errors": []string{text},
	}}
}

var failures = map[string]failure{
	"error":       {said: "Something went wrong inside", fault: "unknown", code: 0, fields: object{"is_error": true}},
	"notloggedin": {said: "Not logged in · Please run /login", fault: "authentication_failed", code: 1, fields: object{"is_error": true, "stop_reason": "stop_sequence"}},
	"overloaded":  apiFailure(529, "server_error", "overloaded_error", "Overloaded"),
	"ratelimit":   apiFailure(429, "rate_limit", "rate_limit_error", "This request would exceed your rate limit"),
	"apierror":    apiFailure(400, "invalid_request", "invalid_request_error", "messages: at least one message is required"),
	"servererror": apiFailure(500, "server_error", "api_error", "Internal server error"),
	"refusal": {said: "API Error: Claude Code is unable to respond to this request", fault: "invalid_request", code: 1, fields: object{
		"is_error": true, "stop_reason": "refusal",
	}},
	"maxtokens": {said: "API Error: Claude's response exceeded the output token maximum", fault: "max_output_tokens", code: 1, fields: object{
		"is_error": true, "stop_reason": "max_tokens",
	}},
	"maxturns": errorFailure("error_max_turns", "max_turns", "Reached maximum number of turns (1)", 1),
	"budget":   errorFailure("error_max_budget_usd", "max_budget", "Reached maximum budget ($0.01)", 1),
	"aborted":  errorFailure("error_during_execution", "aborted_streaming", "Request was aborted.", 0),
}
