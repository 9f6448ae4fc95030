package agentclitest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// price is what a message of the model costs, in dollars: that of 120 tokens in, 40 of them
// read from a cache, and 17 out, at the list price of the model that answers unless another
// is asked for.
const price = 0.000828

// claude is the stand-in of Claude Code.
type claude struct {
	*agent
	flag      map[string]string
	log       *transcript
	cwd       string
	model     string
	mode      string
	asks      bool // over the control protocol
	partial   bool
	replay    bool
	allowed   map[string]bool
	hosts     []string        // MCP servers that the host plays
	greeted   map[string]bool // of hosts
	turnCalls int
	denials   []object
	said      string // the last text of the turn
	busy      atomic.Bool

	mu       sync.Mutex // of mode and model, which the host may change, and of the next
	messages int        // of the model, in this process, those of its subagents among them

	lines    chan []byte // user turns
	replies  chan reply  // answers to the requests of this side
	requests int
}

// reply is an answer of the host.
type reply struct {
	ID       string          `json:"request_id"`
	Subtype  string          `json:"subtype"`
	Response json.RawMessage `json:"response"`
	Error    string          `json:"error"`
}

var claudeFlags = []string{
	"output-format", "input-format", "session-id", "resume", "model", "permission-mode", "permission-prompt-tool", "allowedTools",
	"disallowedTools", "mcp-config", "max-turns", "max-budget-usd", "append-system-prompt", "fallback-model", "add-dir", "settings", "tools",
}

// claude runs the stand-in of Claude Code.
func (a *agent) claude() int {
	flags, plain := a.flags(claudeFlags...)
	c := &claude{
		agent: a, flag: flags, asks: flags["permission-prompt-tool"] == "stdio", partial: flags["include-partial-messages"] != "",
		replay: flags["replay-user-messages"] != "", model: flags["model"], mode: flags["permission-mode"], allowed: map[string]bool{},
		greeted: map[string]bool{}, lines: make(chan []byte, 100), replies: make(chan reply, 64),
	}
	c.stop = make(chan struct{}, 1)
	if c.model == "" {
		c.model = "claude-opus-5-5"
	}
	if c.mode == "" {
		c.mode = "default"
	}
	for name := range strings.SplitSeq(flags["allowedTools"], ",") {
		c.allowed[strings.TrimSpace(name)] = true
	}
	if code, bad := c.usage(); bad {
		return code
	}
	if code, bad := c.open(); bad {
		return code
	}
	onSignals(c.interrupt, c.bye)
	if flags["input-format"] == "stream-json" {
		return c.stream()
	}
	prompt := strings.Join(plain, " ")
	if prompt == "" {
		prompt = strings.TrimSuffix(stdin(), "\n")
	}
	if prompt == "" {
		fmt.Fprintln(os.Stderr, "Error: Input must be provided either through stdin or as a prompt argument when using --print")
		return 1
	}
	defer c.bye()
	return c.turn(newUUID(), prompt)
}

// usage looks at the flags.
func (c *claude) usage() (code int, bad bool) {
	say := func(text string) (int, bool) {
		fmt.Fprintln(os.Stderr, text)
		return 1, true
	}
	known := map[string]bool{
		"p": true, "print": true, "verbose": true, "include-partial-messages": true, "include-hook-events": true, "replay-user-messages": true,
		"continue": true, "fork-session": true, "no-session-persistence": true, "strict-mcp-config": true,
	}
	for _, f := range claudeFlags {
		known[f] = true
	}
	for name := range c.flag {
		if !known[name] {
			return say("error: unknown option '--" + name + "'")
		}
	}
	if c.flag["output-format"] == "stream-json" && c.flag["verbose"] == "" {
		return say("Error: When using --print, --output-format=stream-json requires --verbose")
	}
	if raw := c.flag["mcp-config"]; raw != "" {
		var config struct {
			Servers map[string]struct {
				Type string `json:"type"`
			} `json:"mcpServers"`
		}
		if json.Unmarshal([]byte(raw), &config) != nil {
			return say("Error: Invalid MCP configuration")
		}
		for name, s := range config.Servers {
			if s.Type == "sdk" {
				c.hosts = append(c.hosts, name)
			}
		}
	}
	return 0, false
}

// open begins a session or finds it.
func (c *claude) open() (code int, bad bool) {
	c.cwd, _ = os.Getwd()
	config := os.Getenv("CLAUDE_CONFIG_DIR")
	if config == "" {
		config = c.set.ConfigDir
	}
	id := c.flag["session-id"]
	resume := c.flag["resume"]
	switch {
	case resume != "":
		id = resume
	case id == "":
		id = newUUID()
	}
	c.session = id
	log, there := load(transcriptPath(config, c.cwd, id), id, c.cwd, c.set.Version)
	c.log = log
	switch {
	case resume == "" && there:
		fmt.Fprintf(os.Stderr, "Error: Session ID %s is already in use.\n", id)
		return 1, true
	case resume != "" && !there:
		c.print(object{
			"type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 0, "duration_ms": 0, "duration_api_ms": 0,
			"session_id": newUUID(), "total_cost_usd": 0, "usage": c.usageOf(0), "modelUsage": object{}, "permission_denials": []any{},
			"errors": []string{"No conversation found with session ID: " + id}, "uuid": newUUID(),
		})
		return 1, true
	case c.flag["fork-session"] != "":
		c.session = newUUID()
		c.log.session, c.log.path = c.session, transcriptPath(config, c.cwd, c.session)
	}
	return 0, false
}

// stream runs turns that come over standard input, until it ends.
func (c *claude) stream() int {
	bad := make(chan string, 1)
	go c.read(os.Stdin, bad)
	c.greet()
	code := 0
	for {
		select {
		case text := <-bad:
			fmt.Fprintln(os.Stderr, "Error parsing streaming input line: "+text)
			return 1
		case line, ok := <-c.lines:
			if !ok {
				c.bye()
				return code
			}
			uuid, text := userMessage(line)
			if c.log.uuids[uuid] {
				c.journal("swallowed", Entry{UUID: uuid, Text: text})
				continue
			}
			if c.replay {
				c.print(object{
					"type": "user", "message": object{"role": "user", "content": text}, "session_id": c.session, "parent_tool_use_id": nil,
					"uuid": uuid, "isReplay": true, "timestamp": now(),
				})
			}
			code = c.turn(uuid, text)
		}
	}
}

// userMessage is what a user's line holds.
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

// read sorts the lines of standard input. One that is no JSON ends the process, whatever
// it does.
func (c *claude) read(r io.Reader, bad chan<- string) {
	defer close(c.lines)
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var head struct {
				Type      string          `json:"type"`
				RequestID string          `json:"request_id"`
				Request   json.RawMessage `json:"request"`
				Response  reply           `json:"response"`
			}
			if json.Unmarshal(line, &head) != nil {
				bad <- string(line[:min(len(line), 80)])
				time.Sleep(50 * time.Millisecond) // the turn may not be listening
				os.Exit(1)
			}
			switch head.Type {
			case "user":
				c.lines <- line
			case "control_response":
				c.replies <- head.Response
			case "control_request":
				c.asked(head.RequestID, head.Request)
			}
		}
		if err != nil {
			return
		}
	}
}

// asked answers a request of the host.
func (c *claude) asked(id string, raw json.RawMessage) {
	var q struct {
		Subtype string `json:"subtype"`
		Mode    string `json:"mode"`
		Model   string `json:"model"`
	}
	_ = json.Unmarshal(raw, &q)
	answer := object{}
	switch q.Subtype {
	case "initialize":
		answer = object{"commands": []any{}, "output_style": "default", "models": []any{}, "account": object{}}
	case "interrupt":
		c.interrupt()
	case "set_permission_mode":
		c.mu.Lock()
		c.mode = q.Mode
		c.mu.Unlock()
		answer["mode"] = q.Mode
	case "set_model":
		c.mu.Lock()
		c.model = q.Model
		c.mu.Unlock()
	case "end_session":
		c.respond(id, answer)
		c.journal("end", Entry{})
		c.bye()
		os.Exit(0)
	default:
		c.print(object{"type": "control_response", "response": object{
			"subtype": "error", "request_id": id, "error": "Unsupported control request subtype: " + q.Subtype,
		}})
		return
	}
	c.respond(id, answer)
}

func (c *claude) respond(id string, answer object) {
	c.print(object{"type": "control_response", "response": object{"subtype": "success", "request_id": id, "response": answer}})
}

// interrupt stops the turn, where there is one: at once where it waits, else with its next
// step.
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

// now is the mode and the model.
func (c *claude) now() (mode, model string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mode, c.model
}

// ask sends a request to the host and waits for the answer. It is false when the turn is
// interrupted, or standard input ends, first.
func (c *claude) ask(request object) (json.RawMessage, bool) {
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

// greet makes the acquaintance of the MCP servers that the host plays.
func (c *claude) greet() {
	for _, name := range c.hosts {
		if c.greeted[name] {
			continue
		}
		c.greeted[name] = true
		c.mcp(name, object{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": object{
			"protocolVersion": "2025-06-18", "capabilities": object{}, "clientInfo": object{"name": "claude-code", "version": c.set.Version},
		}})
		c.mcp(name, object{"jsonrpc": "2.0", "method": "notifications/initialized"})
		c.mcp(name, object{"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
	}
}

// mcp sends a message to a server of the host, and is what it answers.
func (c *claude) mcp(server string, message object) (json.RawMessage, bool) {
	raw, ok := c.ask(object{"subtype": "mcp_message", "server_name": server, "message": message})
	var answer struct {
		Response json.RawMessage `json:"mcp_response"`
	}
	_ = json.Unmarshal(raw, &answer)
	return answer.Response, ok
}
