package agentclitest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// past is what came in a session before, for the CLIs whose sessions are their own matter.
type past struct {
	Turns int `json:"turns"`
	Calls int `json:"calls"`
}

func (a *agent) pastPath(id string) string {
	return filepath.Join(a.dir, "sessions-"+a.cli+"-"+filepath.Base(id)+".json")
}

// recall begins a session, or finds one that is to be resumed.
func (a *agent) recall(resume, fresh string) (past, bool) {
	var p past
	a.session = fresh
	if resume == "" {
		return p, true
	}
	data, err := os.ReadFile(a.pastPath(resume))
	if err != nil || json.Unmarshal(data, &p) != nil {
		return p, false
	}
	a.session = resume
	return p, true
}

func (a *agent) keep(p past) {
	data, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(a.pastPath(a.session), data, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stand-in:", err)
		os.Exit(70)
	}
}

// once runs a turn of a CLI that has one turn per process.
func (a *agent) once(v voice, p *past, instruction string) end {
	onSignals(func() { os.Exit(130) }, func() {})
	a.journal("turn", Entry{Text: instruction})
	p.Turns++
	a.keep(*p)
	e := a.perform(v, instruction, p.Turns)
	p.Calls += a.calls
	a.keep(*p)
	return e
}

// complain says on standard error why nothing is done.
func complain(text string, code int) int {
	fmt.Fprintln(os.Stderr, text)
	return code
}

// codexVoice speaks Codex's stream.
type codexVoice struct {
	*agent
	items int
}

func (a *agent) codex() int {
	flags, plain := a.flags("model", "sandbox", "color", "cd")
	if len(plain) == 0 || plain[0] != "exec" || flags["json"] == "" {
		return complain("error: unexpected argument", 2)
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
	p, ok := a.recall(resume, newUUID())
	if !ok {
		return complain("Error: thread/resume: thread/resume failed: no rollout found for thread id "+resume, 1)
	}
	v := &codexVoice{agent: a}
	a.print(object{"type": "thread.started", "thread_id": a.session})
	a.print(object{"type": "turn.started"})
	e := a.once(v, &p, text)
	switch {
	case e.kind == "tooold":
		return complain("Error: this version of codex is no longer supported, please upgrade to the latest version", 1)
	case e.kind == "usage":
		return complain("error: unexpected argument '--no-such-option' found", 2)
	case e.kind != "":
		message := plainFault(e.kind)
		a.print(object{"type": "error", "message": message})
		a.print(object{"type": "turn.failed", "error": object{"message": message}})
		return 1
	case e.mute:
		return max(0, e.code)
	}
	for range e.also + 1 {
		a.print(object{"type": "turn.completed", "usage": object{
			"input_tokens": 20 * p.Calls, "cached_input_tokens": 4 * p.Calls, "output_tokens": 10 * p.Calls, "reasoning_output_tokens": 0,
		}})
	}
	return max(0, e.code)
}

// plainFault is what a CLI says that has no words of its own for it.
func plainFault(kind string) string {
	if f := failures[kind]; f.said != "" {
		return f.said
	}
	return "it failed: " + kind
}

func (v *codexVoice) item(kind string, fields object) {
	fields["type"], fields["id"] = kind, fmt.Sprintf("item_%d", v.items)
	v.print(object{"type": "item.completed", "item": fields})
	v.items++
}

func (v *codexVoice) say(text string)   { v.item("agent_message", object{"text": text}) }
func (v *codexVoice) think(text string) { v.item("reasoning", object{"text": text}) }
func (v *codexVoice) delta(string)      {}
func (v *codexVoice) unknown() {
	v.print(object{"type": "not.yet.invented"})
	v.item("not_yet_invented", object{})
	v.item("error", object{"message": "a warning that is not fatal"})
}
func (v *codexVoice) subagent() { v.say("there are no subagents") }

func (v *codexVoice) use(calls ...call) bool {
	for _, t := range calls {
		v.journal("tool", Entry{Tool: t.name, Args: json.RawMessage(t.args)})
		id := fmt.Sprintf("item_%d", v.items)
		begun := object{"id": id, "type": "command_execution", "command": "/bin/bash -lc " + t.name, "aggregated_output": "", "exit_code": nil, "status": "in_progress"}
		v.print(object{"type": "item.started", "item": begun})
		done := object{"command": begun["command"], "aggregated_output": t.output, "exit_code": 0, "status": "completed"}
		if t.failed {
			done["exit_code"], done["status"] = 3, "failed"
		}
		if t.denied {
			done["status"] = "declined"
		}
		v.item("command_execution", done)
	}
	return true
}

// geminiVoice speaks Gemini's stream.
type geminiVoice struct {
	*agent
	tools int
}

func (v *geminiVoice) event(kind string, fields object) {
	fields["type"], fields["timestamp"] = kind, now()
	v.print(fields)
}

func (a *agent) gemini() int {
	flags, plain := a.flags("model", "prompt", "p", "output-format", "approval-mode", "resume", "allowed-tools")
	text := flags["prompt"] + flags["p"] + strings.Join(plain, " ")
	if piped := stdin(); piped != "" {
		text = strings.TrimSpace(piped + "\n\n" + text)
	}
	if text == "" {
		return complain("No input provided via stdin. Input can be provided by piping data into gemini or using the --prompt option.", 42)
	}
	v := &geminiVoice{agent: a}
	p, ok := a.recall(flags["resume"], newUUID())
	if !ok {
		return complain(fmt.Sprintf("Error resuming session: Invalid session identifier %q.", flags["resume"]), 42)
	}
	v.event("init", object{"session_id": a.session, "model": "gemini-2.5-pro"})
	v.event("message", object{"role": "user", "content": text})
	began := time.Now()
	e := a.once(v, &p, text)
	result := object{"status": "success", "stats": object{
		"total_tokens": 30 * a.calls, "input_tokens": 20 * a.calls, "output_tokens": 10 * a.calls, "cached": 0, "input": 20 * a.calls,
		"duration_ms": time.Since(began).Milliseconds(), "tool_calls": v.tools,
	}}
	switch {
	case e.kind == "notloggedin":
		return complain("Please set an Auth method in your settings.json or specify one of the following environment variables before running: GEMINI_API_KEY", 41)
	case e.kind == "usage":
		return complain("Unknown argument: no-such-option", 1)
	case e.kind == "maxturns":
		return complain("Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in settings.json.", 53)
	case e.kind != "":
		result["status"] = "error"
		result["error"] = object{"type": "unknown", "message": "[" + plainFault(e.kind) + "]"}
		v.event("result", result)
		return 144
	case e.mute:
		return max(0, e.code)
	}
	for range e.also + 1 {
		v.event("result", result)
	}
	return max(0, e.code)
}

func (v *geminiVoice) say(text string) { v.delta(text) }
func (v *geminiVoice) think(string)    {}
func (v *geminiVoice) delta(text string) {
	v.event("message", object{"role": "assistant", "content": text, "delta": true})
}
func (v *geminiVoice) unknown()  { v.event("not_yet_invented", object{}) }
func (v *geminiVoice) subagent() { v.say("there are no subagents") }

func (v *geminiVoice) use(calls ...call) bool {
	for _, t := range calls {
		v.tools++
		id := fmt.Sprintf("%s_%d", t.name, v.tools)
		v.journal("tool", Entry{Tool: t.name, ToolID: id, Args: json.RawMessage(t.args)})
		v.event("tool_use", object{"tool_name": t.name, "tool_id": id, "parameters": json.RawMessage(t.args)})
		done := object{"tool_id": id, "status": "success", "output": t.output}
		if t.failed {
			done = object{"tool_id": id, "status": "error", "error": object{"type": "TOOL_FAILED", "message": t.output}}
		}
		v.event("tool_result", done)
	}
	return true
}

// openCodeVoice speaks OpenCode's stream.
type openCodeVoice struct {
	*agent
	open bool // a step is
}

func (v *openCodeVoice) event(kind string, fields object) {
	fields["type"], fields["timestamp"], fields["sessionID"] = kind, time.Now().UnixMilli(), v.session
	v.print(fields)
}

func (v *openCodeVoice) part(kind string, fields object) {
	if !v.open && kind != "error" {
		v.open = true
		v.part("step_start", object{"type": "step-start"})
	}
	fields["id"], fields["messageID"], fields["sessionID"] = "prt_"+newUUID()[:8], "msg_1", v.session
	v.event(kind, object{"part": fields})
}

func (v *openCodeVoice) finish(reason string) {
	v.part("step_finish", object{"type": "step-finish", "reason": reason, "cost": 0.001, "tokens": object{
		"total": 15, "input": 10, "output": 5, "reasoning": 0, "cache": object{"write": 0, "read": 0},
	}})
	v.open = false
}

func (a *agent) openCode() int {
	flags, plain := a.flags("model", "session", "format", "agent")
	if len(plain) == 0 || plain[0] != "run" || flags["format"] != "json" {
		return complain("Unknown argument", 1)
	}
	text := strings.Join(plain[1:], " ") + strings.TrimSuffix(stdin(), "\n")
	if strings.TrimSpace(text) == "" {
		return complain("You must provide a message or a command", 1)
	}
	v := &openCodeVoice{agent: a}
	p, ok := a.recall(flags["session"], "ses_"+strings.ReplaceAll(newUUID(), "-", ""))
	if !ok {
		return complain("Session not found", 1)
	}
	e := a.once(v, &p, text)
	switch {
	case e.kind == "usage":
		return complain("Unknown argument: no-such-option", 1)
	case e.kind != "":
		fault := object{"name": "APIError", "data": object{"message": plainFault(e.kind), "isRetryable": false}}
		if status, ok := failures[e.kind].fields["api_error_status"]; ok {
			fault["data"].(object)["statusCode"] = status
		}
		v.event("error", object{"error": fault})
		return 0 // as it does
	case e.mute:
		return max(0, e.code)
	}
	for range e.also + 1 {
		v.finish("stop")
	}
	return max(0, e.code)
}

func (v *openCodeVoice) say(text string) { v.part("text", object{"type": "text", "text": text}) }
func (v *openCodeVoice) think(text string) {
	v.part("reasoning", object{"type": "reasoning", "text": text})
}
func (v *openCodeVoice) delta(string) {}
func (v *openCodeVoice) unknown()     { v.part("not_yet_invented", object{}) }
func (v *openCodeVoice) subagent()    { v.say("there are no subagents") }

func (v *openCodeVoice) use(calls ...call) bool {
	for _, t := range calls {
		id := "call_" + newUUID()[:8]
		v.journal("tool", Entry{Tool: t.name, ToolID: id, Args: json.RawMessage(t.args)})
		at := time.Now().UnixMilli()
		state := object{"status": "completed", "input": json.RawMessage(t.args), "output": t.output, "time": object{"start": at, "end": at + 1}}
		if t.failed {
			state["status"], state["error"] = "error", t.output
		}
		v.part("tool_use", object{"type": "tool", "tool": t.name, "callID": id, "state": state})
	}
	v.finish("tool-calls")
	return true
}
