//go:build unix

package agentclitest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// price is the cost of a message of the model in dollars: 120 tokens in, 40 of them read from
// a cache, and 17 out, at the list price of the default model.
const price = 0.000828

// claude is the stand-in of Claude Code.
type claude struct {
	*process
	log      *sessionLog
	hosts    []string // MCP servers that the host implements
	hooks    []string // callbacks of the host before tool calls
	denials  []object // of the turn
	model    string
	mode     string // permission mode
	messages int    // of the model and its subagents, in this process

	waiting  []inputLine // user turns
	ended    bool        // standard input has ended
	busy     bool        // a turn is in progress
	requests int
	replies  map[string]json.RawMessage // answers to control requests
}

func (p *process) claude() int {
	c := &claude{
		process: p, model: cmp.Or(p.flags["model"], "claude-opus-5-5"),
		mode: cmp.Or(p.flags["permission-mode"], "default"), replies: map[string]json.RawMessage{},
	}
	if p.flags["verbose"] == "" {
		return fail("Error: When using --print, --output-format=stream-json requires --verbose")
	}
	if code := c.open(); code != 0 {
		return code
	}
	p.handleSignals(func() { p.interrupted = c.busy }, c.writeCost)
	defer c.writeCost()
	if p.flags["input-format"] == "stream-json" {
		return c.stream()
	}
	text, _ := io.ReadAll(os.Stdin)
	return c.turn(uuid.NewString(), strings.TrimSuffix(string(text), "\n"))
}

// open starts a new session or resumes one.
func (c *claude) open() (code int) {
	var servers struct {
		MCP map[string]struct{ Type string } `json:"mcpServers"`
	}
	if raw := c.flags["mcp-config"]; raw != "" && json.Unmarshal([]byte(raw), &servers) != nil {
		return fail("Error: Invalid MCP configuration")
	}
	for name, s := range servers.MCP {
		if s.Type == "sdk" {
			c.hosts = append(c.hosts, name)
		}
	}
	cwd, err := os.Getwd()
	check(err)
	config := cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(c.dir, configDir))
	resume := c.flags["resume"]
	c.session = cmp.Or(resume, c.flags["session-id"], uuid.NewString())
	log, exists := loadSession(transcriptPath(config, cwd, c.session), c.session, cwd, c.settings.Version)
	c.log = log
	switch {
	case resume == "" && exists:
		return fail("Error: Session ID %s is already in use.", c.session)
	case resume != "" && !exists:
		c.session = uuid.NewString()
		text := "No conversation found with session ID: " + resume
		c.result(failure{Text: text, Subtype: "error_during_execution"}, 0)
		return 1
	}
	return 0
}

type inputLine struct {
	Type    string
	UUID    string
	Message struct{ Content string }
	ID      string `json:"request_id"`
	Request struct {
		Subtype string
		Hooks   map[string][]struct{ HookCallbackIDs []string }
	}
	// Response is an answer of the host.
	Response struct {
		ID       string `json:"request_id"`
		Response json.RawMessage
	}
}

// stream runs the turns that come over standard input.
func (c *claude) stream() (code int) {
	c.input, c.onInput = make(chan []byte), c.take
	go func() {
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadBytes('\n')
			if line = bytes.TrimSpace(line); len(line) > 0 {
				c.input <- line
			}
			if err != nil {
				close(c.input)
				return
			}
		}
	}()
	c.initializeServers()
	for {
		if len(c.waiting) == 0 {
			if c.ended {
				return code
			}
			c.handle(time.Hour)
			continue
		}
		in := c.waiting[0]
		c.waiting = c.waiting[1:]
		if c.log.uuids[in.UUID] {
			c.journal("swallowed", Entry{UUID: in.UUID, Text: in.Message.Content})
			continue
		}
		if c.flags["replay-user-messages"] != "" {
			c.emit("replay", object{"text": in.Message.Content, "uuid": in.UUID})
		}
		code = c.turn(in.UUID, in.Message.Content)
	}
}

// take handles a line of standard input. Invalid JSON ends the process.
func (c *claude) take(line []byte, open bool) {
	if !open {
		c.input, c.ended = nil, true
		return
	}
	var in inputLine
	if json.Unmarshal(line, &in) != nil {
		os.Exit(fail("Error parsing streaming input line: %.80s", line))
	}
	switch in.Type {
	case "user":
		c.waiting = append(c.waiting, in)
	case "control_response":
		c.replies[in.Response.ID] = in.Response.Response
	case "control_request":
		c.emit("control_response", object{"id": in.ID})
		switch in.Request.Subtype {
		case "initialize":
			for _, h := range in.Request.Hooks["PreToolUse"] {
				c.hooks = append(c.hooks, h.HookCallbackIDs...)
			}
		case "interrupt":
			c.interrupted = c.busy
		case "end_session":
			c.journal("end", Entry{})
			c.writeCost()
			os.Exit(0)
		}
	}
}

// request sends a control request and waits for the answer. It returns false if the turn is
// interrupted first.
func (c *claude) request(request object) (json.RawMessage, bool) {
	c.requests++
	id := fmt.Sprintf("cli-%d-%d", os.Getpid(), c.requests)
	c.emit("control_request", object{"id": id, "request": request})
	for !c.interrupted && !c.ended {
		if reply, ok := c.replies[id]; ok {
			return reply, true
		}
		c.handle(time.Hour)
	}
	c.emit("control_cancel", object{"id": id})
	return nil, false
}

// initializeServers performs the MCP handshake with the servers of the host.
func (c *claude) initializeServers() {
	client := object{"name": "claude-code", "version": c.settings.Version}
	for _, name := range c.hosts {
		c.mcp(name, object{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": object{
			"protocolVersion": "2025-06-18", "capabilities": object{}, "clientInfo": client,
		}})
		c.mcp(name, object{"jsonrpc": "2.0", "method": "notifications/initialized"})
		c.mcp(name, object{"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
	}
}

// mcp sends a message to a server of the host and returns its response.
func (c *claude) mcp(server string, message object) (json.RawMessage, bool) {
	raw, ok := c.request(object{"subtype": "mcp_message", "server_name": server, "message": message})
	var answer struct {
		Response json.RawMessage `json:"mcp_response"`
	}
	_ = json.Unmarshal(raw, &answer)
	return answer.Response, ok
}

func (c *claude) turn(entry, text string) int {
	c.busy, c.interrupted, c.denials = true, false, []object{}
	defer func() { c.busy = false }()
	c.journal("turn", Entry{UUID: entry, Text: text})
	c.log.add("user", entry, object{"role": "user", "content": text}, nil)
	c.log.turns++
	c.emit("init", object{
		"cwd": c.log.cwd, "servers": c.hosts, "model": c.model, "mode": c.mode, "version": c.settings.Version,
	})
	before := c.apiCalls
	e := c.steps(c, text, c.log.turns)
	if c.interrupted && e.kind == "" {
		e.kind = "aborted"
	}
	return c.end(e, c.apiCalls-before)
}

// end prints the end of a turn with a number of API calls and returns the exit code.
func (c *claude) end(e ending, calls int) int {
	switch e.kind {
	case "tooold":
		return fail("It looks like your version of Claude Code (%s) needs an update.\n"+
			"A newer version (9.0.0 or higher) is required to continue.", c.settings.Version)
	case "usage":
		return fail("error: unknown option '--no-such-option'")
	case "overloaded":
		c.emit("retries", object{})
		c.apiCall()
		c.apiCall()
	}
	if e.noResult {
		return max(0, e.code)
	}
	f := failures[e.kind]
	if f.Fault != "" {
		c.emit("api_error", object{"failure": f})
	}
	for range e.extra {
		c.result(f, calls)
		c.text("more, from the background")
	}
	c.result(f, calls)
	return max(f.Code, e.code)
}

func (c *claude) result(f failure, calls int) {
	c.emit("result", object{
		"failure": f, "calls": calls, "cost": c.cost().Cost, "usage": usage(calls, 17*calls),
		"denials": c.denials,
	})
}

// usage returns the API's counts for n calls.
func usage(n, output int) object {
	return object{
		"input_tokens": 120 * n, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 40 * n,
		"output_tokens": output,
	}
}

// message prints and logs a message of the model, one event for each block. parent is the tool
// call of a subagent.
func (c *claude) message(parent string, blocks ...object) {
	id := uuid.NewString()
	stop := "end_turn"
	if blocks[len(blocks)-1]["type"] == "tool_use" {
		stop = "tool_use"
	}
	for _, b := range blocks {
		entry, request := uuid.NewString(), "req_"+id
		m := object{
			"id": "msg_" + id, "type": "message", "role": "assistant", "model": c.model,
			"content":     []object{b},
			"stop_reason": nil, "usage": usage(1, 1),
		}
		c.emit("assistant", object{"message": m, "parent": parent, "uuid": entry, "request": request})
		if parent == "" {
			m["stop_reason"], m["usage"] = stop, usage(1, 17)
			c.log.add("assistant", entry, m, object{"requestId": request})
		}
	}
	c.messages++
}

// cost returns the cost of the session, counted from the last cost-state line or from zero.
func (c *claude) cost() costState {
	s := costState{Type: costType, SessionID: c.session, Messages: c.messages}
	if !c.settings.OldCost {
		s.Messages += c.log.cost.Messages
	}
	s.Cost = price * float64(s.Messages)
	return s
}

// writeCost logs the cost of the session for the next process.
func (c *claude) writeCost() {
	if s := c.cost(); s.Messages > 0 && !c.settings.OldCost {
		c.log.write(s)
	}
}

func (c *claude) text(text string) { c.message("", object{"type": "text", "text": text}) }

func (c *claude) delta(text string) {
	if c.flags["include-partial-messages"] != "" {
		c.emit("delta", object{"text": text})
	}
}

func (c *claude) subagent() {
	id := "toolu_" + uuid.NewString()
	input := object{"description": "sub work", "prompt": "do it"}
	c.message("", object{"type": "tool_use", "id": id, "name": "Agent", "input": input})
	c.emit("task", object{"id": id})
	c.message(id, object{"type": "text", "text": "the subagent speaks"})
	c.toolResult(id, toolCall{output: "the subagent is done"})
	c.apiCall()
	c.text("Subagent finished.")
}

func (c *claude) tools(calls ...toolCall) bool {
	ids := make([]string, len(calls))
	blocks := make([]object, len(calls))
	for i, t := range calls {
		ids[i] = "toolu_" + uuid.NewString()
		blocks[i] = object{"type": "tool_use", "id": ids[i], "name": t.name, "input": json.RawMessage(t.args)}
	}
	c.message("", blocks...)
	for i, t := range calls {
		if !c.tool(ids[i], t) {
			return false
		}
	}
	return true
}

// tool asks for permission, calls a tool and prints its result. It returns false if that ends
// the turn.
func (c *claude) tool(id string, t toolCall) bool {
	allowed := slices.Contains(strings.Split(c.flags["allowedTools"], ","), t.name) ||
		c.mode == "bypassPermissions"
	for _, hook := range c.hooks {
		decision, ok := c.runHook(hook, id, &t)
		if !ok {
			return false
		}
		allowed = allowed && decision != "ask"
	}
	if c.flags["permission-prompt-tool"] == "stdio" && !allowed && !t.denied {
		raw, ok := c.request(object{
			"subtype": "can_use_tool", "tool_name": t.name, "input": json.RawMessage(t.args),
			"tool_use_id": id,
		})
		if !ok {
			return false
		}
		var answer struct {
			Behavior     string
			UpdatedInput json.RawMessage
			Message      string
			Interrupt    bool
		}
		check(json.Unmarshal(raw, &answer))
		if answer.Behavior == "allow" {
			t.args = string(answer.UpdatedInput)
		} else {
			t.denied, t.failed, t.output = true, true, answer.Message
			c.interrupted = c.interrupted || answer.Interrupt
		}
	}
	if t.denied {
		c.denials = append(c.denials, object{
			"tool_name": t.name, "tool_use_id": id, "tool_input": json.RawMessage(t.args),
		})
		c.toolResult(id, t)
		return !c.interrupted
	}
	if name := strings.SplitN(t.name, "__", 3); len(name) == 3 && name[0] == "mcp" {
		return c.hostTool(id, t, name[1], name[2])
	}
	c.journal("tool", Entry{Tool: t.name, ToolID: id, Args: json.RawMessage(t.args)})
	c.toolResult(id, t)
	return true
}

// runHook asks a hook of the host about a tool call. It returns false if the turn is interrupted.
func (c *claude) runHook(hook, id string, t *toolCall) (decision string, ok bool) {
	raw, ok := c.request(object{"subtype": "hook_callback", "callback_id": hook, "tool_use_id": id,
		"input": object{
			"hook_event_name": "PreToolUse", "tool_name": t.name, "tool_input": json.RawMessage(t.args),
			"tool_use_id": id,
		}})
	if !ok {
		return "", false
	}
	var answer struct {
		Output struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	check(json.Unmarshal(raw, &answer))
	if answer.Output.Decision == "deny" {
		t.denied, t.failed, t.output = true, true, "PreToolUse:"+t.name+" hook error: "+answer.Output.Reason
	}
	return answer.Output.Decision, true
}

// hostTool calls a tool of the host. It returns false if the turn is interrupted.
func (c *claude) hostTool(id string, t toolCall, server, tool string) bool {
	args := json.RawMessage(t.args)
	c.journal("host_tool", Entry{Tool: t.name, ToolID: id, Args: args})
	raw, ok := c.mcp(server, object{
		"jsonrpc": "2.0", "id": c.requests + 100, "method": "tools/call",
		"params": object{"name": tool, "arguments": args, "_meta": object{"claudecode/toolUseId": id}},
	})
	if !ok {
		return false
	}
	var r struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
		Error struct{ Message string }
	}
	err := json.Unmarshal(raw, &r)
	t.output, t.failed = r.Error.Message, r.Result.IsError || r.Error.Message != "" || err != nil
	for _, part := range r.Result.Content {
		t.output += part.Text
	}
	c.toolResult(id, t)
	return true
}

// toolResult prints and logs the result of a tool call.
func (c *claude) toolResult(id string, t toolCall) {
	entry := uuid.NewString()
	block := object{"tool_use_id": id, "type": "tool_result", "content": t.output, "is_error": t.failed}
	m := object{"role": "user", "content": []object{block}}
	c.emit("tool_result", object{"message": m, "uuid": entry, "id": id, "output": t.output,
		"denied": t.denied})
	c.log.add("user", entry, m, object{"toolUseResult": object{"stdout": t.output}})
}
