package agentclitest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The stand-ins of Codex, Gemini and OpenCode run one turn per process.

// history counts the earlier turns and calls of a session.
type history struct {
	Turns int `json:"turns"`
	Calls int `json:"calls"`
}

func (p *process) historyPath() string {
	return filepath.Join(p.dir, "sessions-"+p.cli+"-"+filepath.Base(p.session)+".json")
}

// open starts a new session or resumes one. It returns false if the session does not exist.
func (p *process) open(resume, id string) (h history, ok bool) {
	p.session = id
	if resume == "" {
		return h, true
	}
	p.session = resume
	data, err := os.ReadFile(p.historyPath())
	return h, err == nil && json.Unmarshal(data, &h) == nil
}

func (p *process) save(h history) {
	data, err := json.Marshal(h)
	check(err)
	check(os.WriteFile(p.historyPath(), data, 0o600))
}

// turn runs the only turn.
func (p *process) turn(out printer, h *history, instruction string) ending {
	onSignals(func() { os.Exit(130) }, func() {})
	p.journal("turn", Entry{Text: instruction})
	h.Turns++
	p.save(*h)
	e := p.steps(out, instruction, h.Turns)
	h.Calls += p.apiCalls
	p.save(*h)
	return e
}

// failureText returns the message of a CLI without its own one.
func failureText(kind string) string {
	if f := failures[kind]; f.text != "" {
		return f.text
	}
	return "it failed: " + kind
}

// codex prints the stream of Codex.
type codex struct {
	*process
	items int
}

func (p *process) codex() int {
	flags, plain := p.flags("model", "sandbox", "color", "cd")
	if len(plain) == 0 || plain[0] != "exec" || flags["json"] == "" {
		return fail(2, "error: unexpected argument")
	}
	plain = plain[1:]
	resume := ""
	if len(plain) > 1 && plain[0] == "resume" {
		resume, plain = plain[1], plain[2:]
	}
	text := strings.Join(plain, " ")
	if text == "-" {
		text = stdin()
	}
	h, ok := p.open(resume, newUUID())
	if !ok {
		return fail(1, "Error: thread/resume: thread/resume failed: no rollout found for thread id %s", resume)
	}
	p.print(object{"type": "thread.started", "thread_id": p.session})
	p.print(object{"type": "turn.started"})
	e := p.turn(&codex{process: p}, &h, text)
	switch {
	case e.kind == "tooold":
		return fail(1, "Error: this version of codex is no longer supported, please upgrade to the latest version")
	case e.kind == "usage":
		return fail(2, "error: unexpected argument '--no-such-option' found")
	case e.kind != "":
		message := failureText(e.kind)
		p.print(object{"type": "error", "message": message})
		p.print(object{"type": "turn.failed", "error": object{"message": message}})
		return 1
	case e.noResult:
		return max(0, e.code)
	}
	for range e.extra + 1 {
		p.print(object{"type": "turn.completed", "usage": object{
			"input_tokens": 20 * h.Calls, "cached_input_tokens": 4 * h.Calls, "output_tokens": 10 * h.Calls,
			"reasoning_output_tokens": 0,
		}})
	}
	return max(0, e.code)
}

func (c *codex) item(event, kind string, fields object) {
	fields["type"], fields["id"] = kind, fmt.Sprintf("item_%d", c.items)
	c.print(object{"type": event, "item": fields})
	if event == "item.completed" {
		c.items++
	}
}

func (c *codex) text(text string) { c.item("item.completed", "agent_message", object{"text": text}) }
func (c *codex) delta(string)     {}
func (c *codex) subagent()        { c.text("there are no subagents") }

func (c *codex) unknown() {
	c.print(object{"type": "not.yet.invented"})
	c.item("item.completed", "not_yet_invented", object{})
	c.item("item.completed", "error", object{"message": "a warning that is not fatal"})
}

func (c *codex) tools(calls ...toolCall) bool {
	for _, t := range calls {
		c.journal("tool", Entry{Tool: t.name, Args: json.RawMessage(t.args)})
		command := "/bin/bash -lc " + t.name
		c.item("item.started", "command_execution", object{
			"command": command, "aggregated_output": "", "exit_code": nil, "status": "in_progress",
		})
		code, status := 0, "completed"
		if t.failed {
			code, status = 3, "failed"
		}
		if t.denied {
			status = "declined"
		}
		c.item("item.completed", "command_execution", object{
			"command": command, "aggregated_output": t.output, "exit_code": code, "status": status,
		})
	}
	return true
}

// gemini prints the stream of Gemini.
type gemini struct {
	*process
	calls int
}

func (p *process) gemini() int {
	flags, plain := p.flags("model", "prompt", "p", "output-format", "approval-mode", "resume", "allowed-tools")
	text := flags["prompt"] + flags["p"] + strings.Join(plain, " ")
	if piped := stdin(); piped != "" {
		text = strings.TrimSpace(piped + "\n\n" + text)
	}
	if text == "" {
		return fail(42, "No input provided via stdin. "+
			"Input can be provided by piping data into gemini or using the --prompt option.")
	}
	h, ok := p.open(flags["resume"], newUUID())
	if !ok {
		return fail(42, "Error resuming session: Invalid session identifier %q.", flags["resume"])
	}
	g := &gemini{process: p}
	g.event("init", object{"session_id": p.session, "model": "gemini-2.5-pro"})
	g.event("message", object{"role": "user", "content": text})
	began := time.Now()
	e := p.turn(g, &h, text)
	result := object{"status": "success", "stats": object{
		"total_tokens": 30 * p.apiCalls, "input_tokens": 20 * p.apiCalls,
		"output_tokens": 10 * p.apiCalls, "cached": 0,
		"input": 20 * p.apiCalls, "duration_ms": time.Since(began).Milliseconds(), "tool_calls": g.calls,
	}}
	switch {
	case e.kind == "notloggedin":
		return fail(41, "Please set an Auth method in your settings.json or specify one of the following "+
			"environment variables before running: GEMINI_API_KEY")
	case e.kind == "usage":
		return fail(1, "Unknown argument: no-such-option")
	case e.kind == "maxturns":
		return fail(53, "Reached max session turns for this session. "+
			"Increase the number of turns by specifying maxSessionTurns in settings.json.")
	case e.kind != "":
		result["status"] = "error"
		result["error"] = object{"type": "unknown", "message": "[" + failureText(e.kind) + "]"}
		g.event("result", result)
		return 144
	case e.noResult:
		return max(0, e.code)
	}
	for range e.extra + 1 {
		g.event("result", result)
	}
	return max(0, e.code)
}

func (g *gemini) event(kind string, fields object) {
	fields["type"], fields["timestamp"] = kind, now()
	g.print(fields)
}

func (g *gemini) text(text string) { g.delta(text) }
func (g *gemini) unknown()         { g.event("not_yet_invented", object{}) }
func (g *gemini) subagent()        { g.text("there are no subagents") }

func (g *gemini) delta(text string) {
	g.event("message", object{"role": "assistant", "content": text, "delta": true})
}

func (g *gemini) tools(calls ...toolCall) bool {
	for _, t := range calls {
		g.calls++
		id := fmt.Sprintf("%s_%d", t.name, g.calls)
		g.journal("tool", Entry{Tool: t.name, ToolID: id, Args: json.RawMessage(t.args)})
		g.event("tool_use", object{"tool_name": t.name, "tool_id": id, "parameters": json.RawMessage(t.args)})
		result := object{"tool_id": id, "status": "success", "output": t.output}
		if t.failed {
			fault := object{"type": "TOOL_FAILED", "message": t.output}
			result = object{"tool_id": id, "status": "error", "error": fault}
		}
		g.event("tool_result", result)
	}
	return true
}

// openCode prints the stream of OpenCode.
type openCode struct {
	*process
	inStep bool
}

func (p *process) openCode() int {
	flags, plain := p.flags("model", "session", "format", "agent")
	if len(plain) == 0 || plain[0] != "run" || flags["format"] != "json" {
		return fail(1, "Unknown argument")
	}
	text := strings.Join(plain[1:], " ") + strings.TrimSuffix(stdin(), "\n")
	if strings.TrimSpace(text) == "" {
		return fail(1, "You must provide a message or a command")
	}
	h, ok := p.open(flags["session"], "ses_"+strings.ReplaceAll(newUUID(), "-", ""))
	if !ok {
		return fail(1, "Session not found")
	}
	o := &openCode{process: p}
	e := p.turn(o, &h, text)
	switch {
	case e.kind == "usage":
		return fail(1, "Unknown argument: no-such-option")
	case e.kind != "":
		data := object{"message": failureText(e.kind), "isRetryable": false}
		if status, ok := failures[e.kind].fields["api_error_status"]; ok {
			data["statusCode"] = status
		}
		o.event("error", object{"error": object{"name": "APIError", "data": data}})
		return 0 // like OpenCode
	case e.noResult:
		return max(0, e.code)
	}
	for range e.extra + 1 {
		o.finish("stop")
	}
	return max(0, e.code)
}

func (o *openCode) event(kind string, fields object) {
	fields["type"], fields["timestamp"], fields["sessionID"] = kind, time.Now().UnixMilli(), o.session
	o.print(fields)
}

func (o *openCode) part(kind string, fields object) {
	if !o.inStep {
		o.inStep = true
		o.part("step_start", object{"type": "step-start"})
	}
	fields["id"], fields["messageID"], fields["sessionID"] = "prt_"+newUUID()[:8], "msg_1", o.session
	o.event(kind, object{"part": fields})
}

func (o *openCode) finish(reason string) {
	o.part("step_finish", object{"type": "step-finish", "reason": reason, "cost": 0.001, "tokens": object{
		"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": object{"write": 0, "read": 0},
	}})
	o.inStep = false
}

func (o *openCode) text(text string) { o.part("text", object{"type": "text", "text": text}) }
func (o *openCode) delta(string)     {}
func (o *openCode) unknown()         { o.part("not_yet_invented", object{}) }
func (o *openCode) subagent()        { o.text("there are no subagents") }

func (o *openCode) tools(calls ...toolCall) bool {
	for _, t := range calls {
		id := "call_" + newUUID()[:8]
		o.journal("tool", Entry{Tool: t.name, ToolID: id, Args: json.RawMessage(t.args)})
		at := time.Now().UnixMilli()
		state := object{
			"status": "completed", "input": json.RawMessage(t.args), "output": t.output,
			"time": object{"start": at, "end": at + 1},
		}
		if t.failed {
			state["status"], state["error"] = "error", t.output
		}
		o.part("tool_use", object{"type": "tool", "tool": t.name, "callID": id, "state": state})
	}
	o.finish("tool-calls")
	return true
}
