package transcript

import (
	"encoding/json"

	"acescope/engine/agents/agentcli"
)

// codexEvents converts the lines of a rollout.
type codexEvents struct {
	copying codexCopy
	prompt  codexPrompts
	model   string
	eventList
}

func (c *codexEvents) events(raw []byte) []agentcli.Event {
	var line object
	if !line.parse(raw) {
		return []agentcli.Event{garbage(raw)}
	}
	p, kind := line.child("payload"), string(line.bare("type"))
	c.out, c.base = nil, agentcli.Event{At: line.time()}
	if c.copying.add(line, p, c.base.At) {
		c.base.At = p.time() // the time of the line is that of the copy
	}
	c.base.SessionID = c.copying.id
	switch kind {
	case "turn_context":
		if model := string(p.bare("model")); model != "" {
			c.model = model
		}
	case "response_item":
		c.item(p)
	case "event_msg":
		c.event(p)
	case "compacted":
		c.add(agentcli.KindStatus, "compact_boundary", text(p.get("message"), MaxLine))
	}
	if len(c.out) == 0 {
		c.add(agentcli.KindOther, kind, "")
	}
	return c.out
}

func (c *codexEvents) event(p object) {
	if prompt, ok := c.prompt.add(p); ok {
		c.add(agentcli.KindUser, "", prompt)
		return
	}
	switch kind := string(p.bare("type")); kind {
	case "error", "stream_error":
		c.add(agentcli.KindError, "", text(p.get("message"), MaxLine))
	case "turn_aborted":
		c.add(agentcli.KindStatus, "interrupted", text(p.get("reason"), MaxLine))
	}
}

func (c *codexEvents) item(p object) {
	switch string(p.bare("type")) {
	case "message":
		if string(p.bare("role")) == "assistant" {
			c.prompt.last = ""
			c.add(agentcli.KindText, "", contentText(p.get("content"), MaxLine)).Model = c.model
		}
	case "reasoning":
		if t := contentText(p.get("summary"), MaxLine); t != "" {
			c.add(agentcli.KindThinking, "", t).Model = c.model
		}
	case "function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "web_search_call":
		e := c.add(agentcli.KindToolUse, "", "")
		e.Model = c.model
		e.Tool = &agentcli.Tool{ID: string(p.bare("call_id")), Name: string(codexTool(p)), Args: codexArgs(p)}
	case "function_call_output", "custom_tool_call_output", "tool_search_output":
		how, _ := codexResult(p.get("output"))
		c.add(agentcli.KindToolResult, "", "").Tool = &agentcli.Tool{
			ID: string(p.bare("call_id")), OK: how == succeeded, Denied: how == refused,
			Result: codexOutput(p.get("output")),
		}
	}
}

// codexArgs returns the arguments of a call as JSON: Codex records them as a text that contains JSON, as a
// text that is a patch, or as an action.
func codexArgs(p object) json.RawMessage {
	for _, key := range []string{"arguments", "input", "action"} {
		v := p.get(key)
		if t := text(v, MaxLine); t != "" && json.Valid([]byte(t)) {
			return json.RawMessage(t)
		}
		if out := cloneJSON(v); out != nil {
			return out
		}
	}
	return nil
}

// codexOutput returns the output of a call without the object around it that older versions record.
func codexOutput(v []byte) json.RawMessage {
	var o object
	if o.parse([]byte(text(v, MaxLine))) || o.parse(v) {
		for _, key := range []string{"output", "content"} {
			if out := cloneJSON(o.get(key)); out != nil {
				return out
			}
		}
	}
	return cloneJSON(v)
}
