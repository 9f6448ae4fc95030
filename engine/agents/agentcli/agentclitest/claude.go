package agentclitest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// price is the cost of a message of the model in dollars: 120 tokens in, 40 of them read from
// a cache, and 17 out, at the list price of the default model.
const price = 0.000828

// claude is the stand-in of Claude Code.
type claude struct {
	*process
	flag        map[string]string
	log         *sessionLog
	hosts       []string // MCP servers that the host implements
	initialized bool     // those servers are
	turnCalls   int      // API calls of the turn
	denials     []object // of the turn
	model       string
	mode        string // permission mode
	busy        atomic.Bool

	mu       sync.Mutex // guards messages
	messages int        // of the model and its subagents, in this process

	lines    chan []byte // user turns
	replies  chan reply  // answers to control requests
	requests int
}

// reply is an answer of the host.
type reply struct {
	ID       string          `json:"request_id"`
	Subtype  string          `json:"subtype"`
	Response json.RawMessage `json:"response"`
}

var (
	claudeValueFlags = []string{
		"output-format", "input-format", "session-id", "resume", "model", "permission-mode",
		"permission-prompt-tool",
		"allowedTools", "disallowedTools", "mcp-config", "max-turns", "max-budget-usd", "append-system-prompt",
		"fallback-model", "add-dir", "settings", "tools",
	}
	claudeBoolFlags = []string{
		"p", "print", "verbose", "include-partial-messages", "include-hook-events",
		"replay-user-messages", "continue",
		"fork-session", "no-session-persistence", "strict-mcp-config",
	}
)

func (p *process) claude() int {
	flags, plain := p.flags(claudeValueFlags...)
	p.stop = make(chan struct{}, 1)
	c := &claude{
		process: p, flag: flags, model: flags["model"], mode: flags["permission-mode"],
		lines: make(chan []byte, 100), replies: make(chan reply, 64),
	}
	if c.model == "" {
		c.model = "claude-opus-5-5"
	}
	if c.mode == "" {
		c.mode = "default"
	}
	if code := c.checkFlags(); code != 0 {
		return code
	}
	if code := c.open(); code != 0 {
		return code
	}
	onSignals(c.interrupt, c.writeCost)
	defer c.writeCost()
	if flags["input-format"] == "stream-json" {
		return c.stream()
	}
	prompt := strings.Join(plain, " ")
	if prompt == "" {
		prompt = strings.TrimSuffix(stdin(), "\n")
	}
	if prompt == "" {
		return fail(1, "Error: Input must be provided either through stdin or as a prompt argument "+
			"when using --print")
	}
	return c.turn(newUUID(), prompt)
}

func (c *claude) checkFlags() (code int) {
	for name := range c.flag {
		if !slices.Contains(claudeValueFlags, name) && !slices.Contains(claudeBoolFlags, name) {
			return fail(1, "error: unknown option '--%s'", name)
		}
	}
	if c.flag["output-format"] == "stream-json" && c.flag["verbose"] == "" {
		return fail(1, "Error: When using --print, --output-format=stream-json requires --verbose")
	}
	if raw := c.flag["mcp-config"]; raw != "" {
		var config struct {
			Servers map[string]struct {
				Type string `json:"type"`
			} `json:"mcpServers"`
		}
		if json.Unmarshal([]byte(raw), &config) != nil {
			return fail(1, "Error: Invalid MCP configuration")
		}
		for name, s := range config.Servers {
			if s.Type == "sdk" {
				c.hosts = append(c.hosts, name)
			}
		}
	}
	return 0
}

// open starts a new session or resumes one.
func (c *claude) open() (code int) {
	cwd, err := os.Getwd()
	check(err)
	config := os.Getenv("CLAUDE_CONFIG_DIR")
	if config == "" {
		config = c.settings.ConfigDir
	}
	resume := c.flag["resume"]
	for _, id := range []string{resume, c.flag["session-id"], newUUID()} {
		if c.session == "" {
			c.session = id
		}
	}
	log, exists := loadSession(transcriptPath(config, cwd, c.session), c.session, cwd, c.settings.Version)
	c.log = log
	switch {
	case resume == "" && exists:
		return fail(1, "Error: Session ID %s is already in use.", c.session)
	case resume != "" && !exists:
		c.print(object{
			"type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 0, "duration_ms": 0,
			"duration_api_ms": 0, "session_id": newUUID(), "total_cost_usd": 0, "usage": usage(0),
			"modelUsage":         object{},
			"permission_denials": []any{}, "errors": []string{"No conversation found with session ID: " + resume},
			"uuid": newUUID(),
		})
		return 1
	case c.flag["fork-session"] != "":
		c.session = newUUID()
		c.log.session, c.log.path = c.session, transcriptPath(config, cwd, c.session)
	}
	return 0
}

// stream runs the turns that come over standard input.
func (c *claude) stream() (code int) {
	invalid := make(chan string, 1)
	go c.readInput(invalid)
	c.initializeServers()
	for {
		select {
		case text := <-invalid:
			fail(1, "Error parsing streaming input line: %s", text)
			os.Exit(1)
		case line, ok := <-c.lines:
			if !ok {
				return code
			}
			uuid, text := userMessage(line)
			if c.log.uuids[uuid] {
				c.journal("swallowed", Entry{UUID: uuid, Text: text})
				continue
			}
			if c.flag["replay-user-messages"] != "" {
				c.print(object{
					"type": "user", "message": object{"role": "user", "content": text}, "session_id": c.session,
					"parent_tool_use_id": nil, "uuid": uuid, "isReplay": true, "timestamp": now(),
				})
			}
			code = c.turn(uuid, text)
		}
	}
}

func userMessage(line []byte) (uuid, text string) {
	var in struct {
		UUID    string `json:"uuid"`
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	_ = json.Unmarshal(line, &in)
	if json.Unmarshal(in.Message.Content, &text) != nil {
		var blocks []struct {
			Text string `json:"text"`
		}
		_ = json.Unmarshal(in.Message.Content, &blocks)
		for _, b := range blocks {
			text += b.Text
		}
	}
	if in.UUID == "" {
		in.UUID = newUUID()
	}
	return in.UUID, text
}

// readInput dispatches the lines of standard input. Invalid JSON ends the process.
func (c *claude) readInput(invalid chan<- string) {
	defer close(c.lines)
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var head struct {
				Type      string `json:"type"`
				RequestID string `json:"request_id"`
				Request   struct {
					Subtype string `json:"subtype"`
				} `json:"request"`
				Response reply `json:"response"`
			}
			if json.Unmarshal(line, &head) != nil {
				invalid <- string(line[:min(len(line), 80)])
				time.Sleep(50 * time.Millisecond) // a turn may not be listening
				os.Exit(1)
			}
			switch head.Type {
			case "user":
				c.lines <- line
			case "control_response":
				c.replies <- head.Response
			case "control_request":
				c.answerHost(head.RequestID, head.Request.Subtype)
			}
		}
		if err != nil {
			return
		}
	}
}

// answerHost answers a control request of the host.
func (c *claude) answerHost(id, subtype string) {
	response := object{"subtype": "success", "request_id": id, "response": object{}}
	switch subtype {
	case "initialize":
		response["response"] = object{
			"commands": []any{}, "output_style": "default", "models": []any{}, "account": object{},
		}
	case "interrupt":
		c.interrupt()
	case "end_session":
	default:
		message := "Unsupported control request subtype: " + subtype
		response = object{"subtype": "error", "request_id": id, "error": message}
	}
	c.print(object{"type": "control_response", "response": response})
	if subtype == "end_session" {
		c.journal("end", Entry{})
		c.writeCost()
		os.Exit(0)
	}
}

// interrupt stops the turn, if there is one: at once if it waits, otherwise at its next step.
func (c *claude) interrupt() {
	if !c.busy.Load() {
		return
	}
	c.stopped.Store(true)
	select {
	case c.stop <- struct{}{}:
	default:
	}
}

// request sends a control request and waits for the answer. It returns false if the turn is
// interrupted first.
func (c *claude) request(request object) (json.RawMessage, bool) {
	c.requests++
	id := fmt.Sprintf("cli-%d-%d", os.Getpid(), c.requests)
	c.print(object{"type": "control_request", "request_id": id, "request": request})
	for {
		select {
		case r := <-c.replies:
			if r.ID != id {
				continue
			}
			if r.Subtype != "success" {
				return nil, true
			}
			return r.Response, true
		case <-c.stop:
			c.print(object{"type": "control_cancel_request", "request_id": id})
			return nil, false
		}
	}
}

// initializeServers performs the MCP handshake with the servers of the host, once.
func (c *claude) initializeServers() {
	if c.initialized {
		return
	}
	c.initialized = true
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

// turn runs a turn and returns its exit code.
func (c *claude) turn(uuid, text string) int {
	began := time.Now()
	c.denials = []object{}
	c.busy.Store(true)
	defer c.endTurn()
	c.journal("turn", Entry{UUID: uuid, Text: text})
	c.log.add("user", uuid, object{"role": "user", "content": text}, nil)
	c.log.turns++
	c.initializeServers()
	c.printInit()
	before := c.apiCalls
	e := c.steps(c, text, c.log.turns)
	c.turnCalls = c.apiCalls - before
	if c.stopped.Load() && e.kind == "" {
		e.kind = "aborted"
	}
	return c.result(e, began)
}

// endTurn clears an interruption, so that it does not affect the next turn.
func (c *claude) endTurn() {
	c.busy.Store(false)
	c.stopped.Store(false)
	select {
	case <-c.stop:
	default:
	}
}

func (c *claude) printInit() {
	servers := []object{}
	for _, name := range c.hosts {
		servers = append(servers, object{"name": name, "status": "connected"})
	}
	c.print(object{
		"type": "system", "subtype": "init", "cwd": c.log.cwd, "session_id": c.session,
		"tools": []string{"Task", "Bash", "Edit", "Read", "Write"}, "mcp_servers": servers, "model": c.model,
		"permissionMode": c.mode, "slash_commands": []string{"compact"}, "apiKeySource": "ANTHROPIC_API_KEY",
		"claude_code_version": c.settings.Version, "output_style": "default", "uuid": newUUID(),
	})
}

// usage returns the API's counts for n calls.
func usage(n int) object {
	return object{
		"input_tokens": 120 * n, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 40 * n,
		"output_tokens": 17 * n,
		"service_tier":  "standard",
	}
}

// message prints and logs a message of the model, one event for each block. parent is the tool
// call of a subagent.
func (c *claude) message(parent string, blocks ...object) {
	id := shortID()
	stop := "end_turn"
	for _, b := range blocks {
		if b["type"] == "tool_use" {
			stop = "tool_use"
		}
	}
	for _, b := range blocks {
		uuid := newUUID()
		m := object{
			"id": "msg_" + id, "type": "message", "role": "assistant", "model": c.model, "content": []object{b},
			"stop_reason": nil, "stop_sequence": nil,
			"usage": object{
				"input_tokens": 120, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 40, "output_tokens": 1,
			},
		}
		event := object{
			"type": "assistant", "message": m, "parent_tool_use_id": nil, "session_id": c.session, "uuid": uuid,
			"timestamp": now(), "request_id": "req_" + id,
		}
		if parent != "" {
			event["parent_tool_use_id"] = parent
		}
		c.print(event)
		if parent == "" {
			m["stop_reason"], m["usage"] = stop, usage(1)
			c.log.add("assistant", uuid, m, object{"requestId": "req_" + id})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.messages++
}

// cost returns the cost of the session, counted from the last cost-state line or from zero.
func (c *claude) cost() costState {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	if c.flag["include-partial-messages"] == "" {
		return
	}
	delta := object{"type": "text_delta", "text": text}
	c.print(object{
		"type": "stream_event", "event": object{"type": "content_block_delta", "index": 0, "delta": delta},
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
	input := object{"description": "sub work", "prompt": "do it"}
	c.message("", object{"type": "tool_use", "id": id, "name": "Agent", "input": input})
	c.print(object{
		"type": "system", "subtype": "task_started", "task_id": "t1", "tool_use_id": id, "description": "sub work",
		"session_id": c.session, "uuid": newUUID(),
	})
	c.message(id, object{"type": "text", "text": "the subagent speaks"})
	c.toolResult(id, toolCall{output: "the subagent is done"})
	c.apiCall()
	c.text("Subagent finished.")
}

func (c *claude) tools(calls ...toolCall) bool {
	ids := make([]string, len(calls))
	blocks := make([]object, len(calls))
	for i, t := range calls {
		ids[i] = "toolu_" + shortID()
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
	if t.denied {
		c.deny(id, t)
		return true
	}
	allowed := slices.Contains(strings.Split(c.flag["allowedTools"], ","), t.name)
	if c.flag["permission-prompt-tool"] == "stdio" && !allowed && c.mode != "bypassPermissions" {
		answer, ok := c.request(object{
			"subtype": "can_use_tool", "tool_name": t.name, "input": json.RawMessage(t.args), "tool_use_id": id,
			"permission_suggestions": []any{},
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
		if json.Unmarshal(answer, &v) != nil || v.Behavior != "allow" {
			t.output = v.Message
			c.deny(id, t)
			c.stopped.Store(c.stopped.Load() || v.Interrupt)
			return !v.Interrupt
		}
		t.args = string(v.Input)
	}
	if rest, ok := strings.CutPrefix(t.name, "mcp__"); ok {
		if server, tool, ok := strings.Cut(rest, "__"); ok {
			return c.hostTool(id, t, server, tool)
		}
	}
	c.journal("tool", Entry{Tool: t.name, ToolID: id, Args: json.RawMessage(t.args)})
	c.toolResult(id, t)
	return true
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
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			IsError bool `json:"isError"`
		} `json:"result"`
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	t.output, t.failed = "", true
	switch err := json.Unmarshal(raw, &r); {
	case err != nil:
		t.output = "MCP server did not answer"
	case r.Error != nil:
		t.output = r.Error.Message
	default:
		t.failed = r.Result.IsError
		for _, part := range r.Result.Content {
			t.output += part.Text
		}
	}
	c.toolResult(id, t)
	return true
}

func (c *claude) deny(id string, t toolCall) {
	c.denials = append(c.denials, object{
		"tool_name": t.name, "tool_use_id": id, "tool_input": json.RawMessage(t.args),
	})
	t.denied, t.failed = true, true
	c.toolResult(id, t)
}

// toolResult prints and logs the result of a tool call.
func (c *claude) toolResult(id string, t toolCall) {
	uuid := newUUID()
	block := object{"tool_use_id": id, "type": "tool_result", "content": t.output, "is_error": t.failed}
	m := object{"role": "user", "content": []object{block}}
	permission := object{"decision": "accept", "source": "config"}
	if t.denied {
		permission["decision"] = "reject"
	}
	c.print(object{
		"type": "user", "message": m, "parent_tool_use_id": nil, "session_id": c.session, "uuid": uuid,
		"timestamp":        now(),
		"tool_use_result":  object{"stdout": t.output, "stderr": "", "interrupted": false},
		"tool_result_meta": []object{{"id": id, "permission_decision": permission}},
	})
	c.log.add("user", uuid, m, object{"toolUseResult": object{"stdout": t.output}})
}

// result prints the end of a turn and returns the exit code.
func (c *claude) result(e ending, began time.Time) int {
	switch e.kind {
	case "tooold":
		return fail(1, "It looks like your version of Claude Code (%s) needs an update.\n"+
			"A newer version (9.0.0 or higher) is required to continue.", c.settings.Version)
	case "usage":
		return fail(1, "error: unknown option '--no-such-option'")
	case "overloaded":
		for i := range 2 {
			c.print(object{
				"type": "system", "subtype": "api_retry", "attempt": i + 1, "max_retries": 2, "retry_delay_ms": 5,
				"error_status": 529, "error": "overloaded", "session_id": c.session, "uuid": newUUID(),
			})
			c.apiCall()
		}
	}
	if e.noResult {
		return max(0, e.code)
	}
	cost := c.cost()
	models := object{c.model: object{
		"inputTokens": 120 * cost.Messages, "outputTokens": 17 * cost.Messages, "costUSD": cost.Cost,
	}}
	r := object{
		"type": "result", "subtype": "success", "is_error": false, "duration_ms": time.Since(began).Milliseconds(),
		"duration_api_ms": 1, "num_turns": max(1, c.turnCalls), "result": "", "session_id": c.session,
		"total_cost_usd": cost.Cost, "usage": usage(c.turnCalls), "modelUsage": models,
		"permission_denials": c.denials,
		"stop_reason":        "end_turn", "terminal_reason": "completed", "uuid": newUUID(),
	}
	if f, failed := failures[e.kind]; failed {
		r["result"] = f.text
		maps.Copy(r, f.fields)
		if f.text != "" {
			c.apiErrorMessage(f)
		}
		if e.code < 0 {
			e.code = f.code
		}
	}
	for i := range e.extra {
		first := maps.Clone(r)
		first["uuid"], first["result_index"] = newUUID(), i
		c.print(first)
		c.text("more, from the background")
	}
	c.print(r)
	return max(0, e.code)
}

// apiErrorMessage prints the CLI's own text after the API failed.
func (c *claude) apiErrorMessage(f failure) {
	c.print(object{
		"type": "assistant", "message": object{
			"id": newUUID(), "type": "message", "role": "assistant", "model": "<synthetic>",
			"stop_reason": "stop_sequence",
			"content":     []object{{"type": "text", "text": f.text}}, "usage": usage(0),
		},
		"parent_tool_use_id": nil, "session_id": c.session, "uuid": newUUID(), "timestamp": now(), "error": f.fault,
		"is_api_error_message": true,
	})
}

// failure is how a failing turn ends.
type failure struct {
	text   string
	fault  string
	code   int
	fields object // of the result
}

func apiFailure(status int, fault, kind, text string) failure {
	return failure{text: fmt.Sprintf("API Error: %d %s", status, text), fault: fault, code: 1, fields: object{
		"is_error": true, "api_error_status": status, "api_error_type": kind, "terminal_reason": "api_error",
		"stop_reason": "stop_sequence",
	}}
}

func stopFailure(text, fault, stopReason string) failure {
	return failure{text: text, fault: fault, code: 1, fields: object{"is_error": true, "stop_reason": stopReason}}
}

func errorFailure(subtype, reason, text string, code int) failure {
	return failure{code: code, fields: object{
		"is_error": true, "subtype": subtype, "terminal_reason": reason, "errors": []string{text},
	}}
}

var failures = map[string]failure{
	"error":       {text: "Something went wrong inside", fault: "unknown", fields: object{"is_error": true}},
	"tooold":      {},
	"usage":       {},
	"overloaded":  apiFailure(529, "server_error", "overloaded_error", "Overloaded"),
	"ratelimit":   apiFailure(429, "rate_limit", "rate_limit_error", "This request would exceed your rate limit"),
	"apierror":    apiFailure(400, "invalid_request", "invalid_request_error", "messages: at least one message is required"),
	"servererror": apiFailure(500, "server_error", "api_error", "Internal server error"),
	"notloggedin": stopFailure("Not logged in · Please run /login", "authentication_failed", "stop_sequence"),
	"refusal":     stopFailure("API Error: Claude Code is unable to respond to this request", "invalid_request", "refusal"),
	"maxtokens": stopFailure("API Error: Claude's response exceeded the output token maximum", "max_output_tokens",
		"max_tokens"),
	"maxturns": errorFailure("error_max_turns", "max_turns", "Reached maximum number of turns (1)", 1),
	"budget":   errorFailure("error_max_budget_usd", "max_budget", "Reached maximum budget ($0.01)", 1),
	"aborted":  errorFailure("error_during_execution", "aborted_streaming", "Request was aborted.", 0),
}
