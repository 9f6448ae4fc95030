//go:build unix

package agentclitest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

var claudeFlags = strings.Fields(`
	p verbose output-format input-format replay-user-messages include-partial-messages model session-id resume fork-session permission-mode permission-prompt-tool allowedTools disallowedTools
	mcp-config strict-mcp-config max-turns max-budget-usd append-system-prompt`)

func (p *process) claude() int {
	flags, _ := p.flags()
	p.stop = make(chan struct{}, 1)
	c := &claude{
		process: p, flag: flags, model: cmp.Or(flags["model"], "claude-opus-5-5"),
		mode:  cmp.Or(flags["permission-mode"], "default"),
		lines: make(chan []byte, 100), replies: make(chan reply, 64),
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
	return c.turn(newUUID(), strings.TrimSuffix(stdin(), "\n"))
}

func (c *claude) checkFlags() (code int) {
	for name := range c.flag {
		if !slices.Contains(claudeFlags, name) {
			return fail(1, "error: unknown option '--%s'", name)
		}
	}
	if c.flag["verbose"] == "" {
		return fail(1, "Error: When using --print, --output-format=stream-json requires --verbose")
	}
	var config struct {
		Servers map[string]struct {
			Type string `json:"type"`
		} `json:"mcpServers"`
	}
	if raw := c.flag["mcp-config"]; raw != "" && json.Unmarshal([]byte(raw), &config) != nil {
		return fail(1, "Error: Invalid MCP configuration")
	}
	for name, s := range config.Servers {
		if s.Type == "sdk" {
			c.hosts = append(c.hosts, name)
		}
	}
	return 0
}

// open starts a new session or resumes one.
func (c *claude) open() (code int) {
	cwd, err := os.Getwd()
	check(err)
	config := cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(c.dir, configDir))
	resume := c.flag["resume"]
	c.session = cmp.Or(resume, c.flag["session-id"], newUUID())
	log, exists := loadSession(transcriptPath(config, cwd, c.session), c.session, cwd, c.settings.Version)
	c.log = log
	switch {
	case resume == "" && exists:
		return fail(1, "Error: Session ID %s is already in use.", c.session)
	case resume != "" && !exists:
		c.session = newUUID()
		f := errorFailure("error_during_execution", "", "No conversation found with session ID: "+resume, 1)
		c.printResult(f.fields, 0, 0)
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
			var in struct {
				UUID    string `json:"uuid"`
				Message struct {
					Content string `json:"content"`
				} `json:"message"`
			}
			check(json.Unmarshal(line, &in))
			text := in.Message.Content
			if c.log.uuids[in.UUID] {
				c.journal("swallowed", Entry{UUID: in.UUID, Text: text})
				continue
			}
			if c.flag["replay-user-messages"] != "" {
				c.emit("replay", object{"text": text, "uuid": in.UUID})
			}
			code = c.turn(in.UUID, text)
		}
	}
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
	switch subtype {
	case "initialize", "end_session":
	case "interrupt":
		c.interrupt()
	default:
		c.emit("control_error", object{"id": id, "text": "Unsupported control request subtype: " + subtype})
		return
	}
	c.emit("control_response", object{"id": id})
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
			if r.ID == id {
				return r.Response, true
			}
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
	c.denials = []object{}
	c.busy.Store(true)
	defer c.endTurn()
	c.journal("turn", Entry{UUID: uuid, Text: text})
	c.log.add("user", uuid, object{"role": "user", "content": text}, nil)
	c.log.turns++
	c.initializeServers()
	servers := []object{}
	for _, name := range c.hosts {
		servers = append(servers, object{"name": name, "status": "connected"})
	}
	c.emit("init", object{
		"cwd": c.log.cwd, "servers": servers, "model": c.model, "mode": c.mode, "version": c.settings.Version,
	})
	began, before := time.Now(), c.apiCalls
	e := c.steps(c, text, c.log.turns)
	calls := c.apiCalls - before
	if c.stopped.Load() && e.kind == "" {
		e.kind = "aborted"
	}
	return c.result(e, calls, time.Since(began))
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
	id := newUUID()
	stop := "end_turn"
	if blocks[len(blocks)-1]["type"] == "tool_use" {
		stop = "tool_use"
	}
	for _, b := range blocks {
		uuid, request := newUUID(), "req_"+id
		m := object{
			"id": "msg_" + id, "type": "message", "role": "assistant", "model": c.model, "content": []object{b},
			"stop_reason": nil, "usage": usage(1, 1),
		}
		event := object{"message": m, "parent": nil, "uuid": uuid, "request": request}
		if parent != "" {
			event["parent"] = parent
		}
		c.emit("assistant", event)
		if parent == "" {
			m["stop_reason"], m["usage"] = stop, usage(1, 17)
			c.log.add("assistant", uuid, m, object{"requestId": request})
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
	if c.flag["include-partial-messages"] != "" {
		c.emit("delta", object{"text": text})
	}
}

func (c *claude) subagent() {
	id := "toolu_" + newUUID()
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
		ids[i] = "toolu_" + newUUID()
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
	if name := strings.SplitN(t.name, "__", 3); len(name) == 3 && name[0] == "mcp" {
		return c.hostTool(id, t, name[1], name[2])
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
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	err := json.Unmarshal(raw, &r)
	t.output, t.failed = r.Error.Message, r.Result.IsError || r.Error.Message != "" || err != nil
	for _, part := range r.Result.Content {
		t.output += part.Text
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
	uuid, decision := newUUID(), "accept"
	if t.denied {
		decision = "reject"
	}
	block := object{"tool_use_id": id, "type": "tool_result", "content": t.output, "is_error": t.failed}
	m := object{"role": "user", "content": []object{block}}
	c.emit("tool_result", object{
		"message": m, "uuid": uuid, "id": id, "output": t.output, "decision": decision,
	})
	c.log.add("user", uuid, m, object{"toolUseResult": object{"stdout": t.output}})
}

// result prints the end of a turn with a number of API calls and returns the exit code.
func (c *claude) result(e ending, calls int, duration time.Duration) int {
	switch e.kind {
	case "tooold":
		return fail(1, "It looks like your version of Claude Code (%s) needs an update.\n"+
			"A newer version (9.0.0 or higher) is required to continue.", c.settings.Version)
	case "usage":
		return fail(1, "error: unknown option '--no-such-option'")
	case "overloaded":
		c.emit("retries", object{})
		c.apiCall()
		c.apiCall()
	}
	if e.noResult {
		return max(0, e.code)
	}
	f, failed := failures[e.kind]
	if f.text != "" {
		c.emit("api_error", object{"text": f.text, "fault": f.fault})
	}
	if failed && e.code < 0 {
		e.code = f.code
	}
	for range e.extra {
		c.printResult(f.fields, calls, duration)
		c.text("more, from the background")
	}
	c.printResult(f.fields, calls, duration)
	return max(0, e.code)
}

// printResult prints a result with some fields changed.
func (c *claude) printResult(fields object, calls int, duration time.Duration) {
	cost := c.cost().Cost
	r := object{
		"type": "result", "subtype": "success", "is_error": false, "duration_ms": duration.Milliseconds(),
		"num_turns": calls, "result": "", "session_id": c.session, "total_cost_usd": cost,
		"usage": usage(calls, 17*calls), "permission_denials": c.denials,
		"stop_reason": "end_turn", "terminal_reason": "completed", "uuid": newUUID(),
	}
	maps.Copy(r, fields)
	c.print(r)
}

// failure is how a failing turn ends.
type failure struct {
	text   string // of the CLI
	fault  string
	code   int
	fields object // of the result
}

func apiFailure(status int, fault, text string) failure {
	text = fmt.Sprintf("API Error: %d %s", status, text)
	return failure{text, fault, 1, object{
		"is_error": true, "result": text, "api_error_status": status, "terminal_reason": "api_error",
		"stop_reason": "stop_sequence",
	}}
}

func stopFailure(text, fault, stopReason string, code int) failure {
	return failure{text, fault, code, object{"is_error": true, "result": text, "stop_reason": stopReason}}
}

func errorFailure(subtype, reason, text string, code int) failure {
	return failure{code: code, fields: object{
		"is_error": true, "subtype": subtype, "terminal_reason": reason, "errors": []string{text},
	}}
}

var failures = map[string]failure{
	"error":       stopFailure("Something went wrong inside", "unknown", "end_turn", 0),
	"tooold":      {},
	"usage":       {},
	"overloaded":  apiFailure(529, "server_error", "Overloaded"),
	"ratelimit":   apiFailure(429, "rate_limit", "This request would exceed your rate limit"),
	"apierror":    apiFailure(400, "invalid_request", "messages: at least one message is required"),
	"servererror": apiFailure(500, "server_error", "Internal server error"),
	"notloggedin": stopFailure("Not logged in · Please run /login", "authentication_failed", "stop_sequence", 1),
	"refusal": stopFailure("API Error: Claude Code is unable to respond to this request", "invalid_request",
		"refusal", 1),
	"maxtokens": stopFailure("API Error: Claude's response exceeded the output token maximum",
		"max_output_tokens", "max_tokens", 1),
	"maxturns": errorFailure("error_max_turns", "max_turns", "Reached maximum number of turns (1)", 1),
	"budget":   errorFailure("error_max_budget_usd", "max_budget", "Reached maximum budget ($0.01)", 1),
	"aborted":  errorFailure("error_during_execution", "aborted_streaming", "Request was aborted.", 0),
}
