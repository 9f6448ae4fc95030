package agentcli

import (
	"fmt"
	"strings"

	"acescope/engine/ace"

	"github.com/tidwall/gjson"
)

// claude parses a line of Claude Code.
func (p *Parser) claude(line object) {
	kind, subtype := text(line["type"]), text(line["subtype"])
	e := Event{
		Kind: KindOther, Name: eventName(kind, subtype), At: timestamp(line["timestamp"]),
		SessionID: text(line["session_id"]), UUID: text(line["uuid"]),
		ParentID: text(line["parent_tool_use_id"]),
		Status:   int(line["api_error_status"].Int()),
	}
	switch kind {
	case "assistant", "user":
		p.claudeMessage(e, kind, line)
		return
	case "system":
		claudeSystem(&e, subtype, line)
	case "stream_event":
		claudeDelta(&e, line["event"])
	case "result":
		e.Kind, e.Result = KindResult, claudeResult(line)
		e.Result.Subtype, e.Result.Status = subtype, e.Status
	case "control_request":
		e.Kind, e.Name = KindControl, eventName(kind, line["request"].Get("subtype").String())
	case "control_response":
		e.Kind, e.Name = KindControl, eventName(kind, line["response"].Get("subtype").String())
	case "control_cancel_request":
		e.Kind, e.Name = KindControl, kind
	case "rate_limit_event":
		e.Kind, e.Text = KindStatus, text(line["rate_limit_info"].Get("status"))
	}
	p.add(e)
}

func eventName(kind, subtype string) string {
	if subtype == "" {
		return kind
	}
	return kind + "/" + subtype
}

// claudeMessage adds an event for each block of a message. An assistant message with an error
// is the CLI's own text after the API failed.
func (p *Parser) claudeMessage(e Event, kind string, line object) {
	message := line["message"].Map()
	textKind := KindUser
	if kind == "assistant" {
		textKind = KindText
		e.MessageID, e.Model = text(message["id"]), text(message["model"])
		if usage, ok := message["usage"]; ok {
			e.Usage = claudeUsage(usage)
		}
	}
	content := message["content"]
	if content.Type == gjson.String {
		e.Kind, e.Text = textKind, text(content)
		p.add(e)
		return
	}
	blocks := elements(content)
	for _, block := range blocks {
		p.claudeBlock(e, textKind, line, block.Map())
		e.Usage = nil // count it once per message
	}
	if len(blocks) == 0 {
		p.add(e)
	}
}

// claudeBlock adds the event of one block. textKind is the kind of its texts.
func (p *Parser) claudeBlock(e Event, textKind Kind, line, block object) {
	role, fault := text(line["type"]), line["error"]
	switch kind := block["type"].String(); {
	case kind == "text" && textKind == KindText && fault.Type != gjson.Null:
		e.Kind, e.Name, e.Text = KindError, eventName(role, fault.String()), text(block["text"])
	case kind == "text":
		e.Kind, e.Text = textKind, text(block["text"])
	case kind == "thinking":
		e.Kind, e.Text = KindThinking, text(block["thinking"])
	case kind == "redacted_thinking":
		e.Kind = KindThinking
	case kind == "tool_use", kind == "server_tool_use", kind == "mcp_tool_use":
		e.Kind = KindToolUse
		e.Tool = &Tool{ID: text(block["id"]), Name: text(block["name"]), Args: raw(block["input"])}
	case strings.HasSuffix(kind, "tool_result"):
		e.Kind, e.Tool = KindToolResult, claudeToolResult(line, block)
	default:
		e.Kind, e.Name = KindOther, eventName(role, kind)
	}
	p.add(e)
}

func claudeToolResult(line, block object) *Tool {
	t := &Tool{ID: text(block["tool_use_id"]), Result: raw(block["content"]), OK: !isTrue(block["is_error"])}
	for _, meta := range elements(line["tool_result_meta"]) {
		switch meta.Get("permission_decision.decision").String() {
		case "", "accept", "allow":
		default:
			if meta.Get("id").String() == t.ID {
				t.Denied, t.OK = true, false
			}
		}
	}
	return t
}

func claudeSystem(e *Event, subtype string, line object) {
	e.Kind = KindStatus
	switch {
	case subtype == "init":
		e.Kind, e.Model = KindInit, text(line["model"])
		e.Init = &Init{
			Version: text(line["claude_code_version"]), WorkingDir: text(line["cwd"]),
			PermissionMode: text(line["permissionMode"]), MCPServers: claudeServerNames(line["mcp_servers"]),
		}
		for _, tool := range elements(line["tools"]) {
			e.Init.Tools = append(e.Init.Tools, text(tool))
		}
	case subtype == "api_retry":
		e.Status = int(line["error_status"].Int())
		e.Text = fmt.Sprintf("attempt %d of %d after %s, in %d ms", line["attempt"].Int(),
			line["max_retries"].Int(),
			line["error"].String(), line["retry_delay_ms"].Int())
	case subtype == "status":
		e.Text = text(line["status"])
	case subtype == "permission_denied":
		e.Tool = &Tool{ID: text(line["tool_use_id"]), Name: text(line["tool_name"]), Denied: true}
		e.Text = text(line["message"])
	case subtype == "compact_boundary":
		e.Text = text(line["compact_metadata"].Get("trigger"))
	case strings.HasPrefix(subtype, "hook_"):
		e.Text = text(line["hook_name"])
	case strings.HasPrefix(subtype, "task_"):
		e.ParentID = text(line["tool_use_id"])
		e.Text = firstText(line["summary"], line["description"], line["patch"].Get("status"), line["status"])
	default:
		e.Kind = KindOther
	}
}

// claudeServerNames lists MCP servers, with the status of those that are not connected.
func claudeServerNames(v gjson.Result) (names []string) {
	for _, server := range elements(v) {
		name := text(server.Get("name"))
		if status := server.Get("status").String(); status != "" && status != "connected" {
			name += " (" + status + ")"
		}
		names = append(names, name)
	}
	return names
}

// claudeDelta reads a part of a message that is being generated.
func claudeDelta(e *Event, event gjson.Result) {
	kind := event.Get("type").String()
	e.Name = eventName("stream_event", kind)
	switch kind {
	case "content_block_delta":
		delta := event.Get("delta")
		switch delta.Get("type").String() {
		case "text_delta":
			e.Kind, e.Name, e.Text = KindDelta, "text_delta", text(delta.Get("text"))
		case "thinking_delta":
			e.Kind, e.Name, e.Text = KindDelta, "thinking_delta", text(delta.Get("thinking"))
		}
	case "message_start":
		e.MessageID, e.Model = text(event.Get("message.id")), text(event.Get("message.model"))
	case "message_delta":
		e.Usage = claudeUsage(event.Get("usage"))
	}
}

// claudeResult reads the end of a turn. Its tokens are those of the turn; its cost is the sum
// over the process or the session.
func claudeResult(line object) *Result {
	r := &Result{
		IsError: isTrue(line["is_error"]), Text: text(line["result"]), Turns: int(line["num_turns"].Int()),
		Duration: duration(line["duration_ms"].Int()), Usage: *claudeUsage(line["usage"]),
		CostCumulative: true,
		Denials:        len(elements(line["permission_denials"])),
		StopReason:     text(line["stop_reason"]), TerminalReason: text(line["terminal_reason"]),
	}
	r.Usage.CostUSD = dollars(line["total_cost_usd"])
	for _, e := range elements(line["errors"]) {
		if message := e.Get("message"); message.Type != gjson.Null {
			e = message
		}
		r.Errors = append(r.Errors, text(e))
	}
	return r
}

func claudeUsage(v gjson.Result) *ace.Usage {
	return &ace.Usage{
		InputTokens:     v.Get("input_tokens").Int() + v.Get("cache_creation_input_tokens").Int(),
		OutputTokens:    v.Get("output_tokens").Int(),
		CacheReadTokens: v.Get("cache_read_input_tokens").Int(),
	}
}
