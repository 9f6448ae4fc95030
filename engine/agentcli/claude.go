package agentcli

import (
	"strconv"
	"strings"

	"acescope/engine/ace"
)

// claudeLine is what lines of several types have in common, and where the rest stands.
type claudeLine struct {
	Event
	kind, subtype string
	message       value
	inner         value // event, of a stream_event; request or response of the control protocol
	fault         value // error
	meta          value // tool_result_meta

	session, uuid, parent, at, status value
}

// claude reads a line of Claude Code's stream.
func (p *Parser) claude(v value) bool {
	var l claudeLine
	if !v.whole(l.take) {
		return false
	}
	l.SessionID, l.UUID, l.ParentID = p.again(&p.session, l.session), keep(l.uuid), p.know(l.parent)
	l.At, l.Status = stamp(l.at), int(l.status.int())
	l.Name = p.named(l.kind, l.subtype)
	switch l.kind {
	case "assistant":
		p.claudeAssistant(&l)
	case "user":
		p.claudeUser(&l)
	case "system":
		p.claudeSystem(&l, v)
	case "stream_event":
		p.claudeDelta(&l)
	case "result":
		p.claudeResult(&l, v)
	case "control_request", "control_response", "control_cancel_request":
		l.Kind = KindControl
		l.Name = p.named(l.kind, l.inner.get("subtype").view())
		p.add(&l.Event)
	case "rate_limit_event":
		l.Kind = KindStatus
		l.Text = keep(v.get("rate_limit_info.status"))
		p.add(&l.Event)
	default:
		l.Kind = KindOther
		p.add(&l.Event)
	}
	return true
}

// take takes one field of a line. Strings that are only compared are not copied.
func (l *claudeLine) take(key string, field value) bool {
	switch key {
	case "type":
		l.kind = field.view()
	case "subtype":
		l.subtype = field.view()
	case "message":
		l.message = field
	case "event", "request", "response":
		l.inner = field
	case "error":
		l.fault = field
	case "tool_result_meta":
		l.meta = field
	case "session_id":
		l.session = field
	case "uuid":
		l.uuid = field
	case "parent_tool_use_id":
		l.parent = field
	case "timestamp":
		l.at = field
	case "api_error_status":
		l.status = field
	}
	return true
}

// named is a name of one or two parts.
func (p *Parser) named(kind, subtype string) string {
	if subtype == "" {
		return p.intern(kind)
	}
	var b [96]byte
	name := append(append(append(b[:0], kind...), '/'), subtype...)
	if known, ok := p.known[string(name)]; ok {
		return known
	}
	return p.intern(string(name))
}

// claudeAssistant gives an event for each block of a message of the model. What the CLI
// says in its place, when the API failed, is an error.
func (p *Parser) claudeAssistant(l *claudeLine) {
	var content value
	l.message.each(func(key string, field value) bool {
		switch key {
		case "id":
			l.MessageID = p.again(&p.message, field)
		case "model":
			l.Model = p.again(&p.model, field)
		case "content":
			content = field
		case "usage":
			l.Usage = claudeUsage(field)
		}
		return true
	})
	if content.isText() {
		l.Kind, l.Text = KindText, keep(content)
		p.add(&l.Event)
		return
	}
	before := len(p.events)
	content.each(func(_ string, block value) bool {
		p.claudeBlock(l, block)
		l.Usage = nil // once a message
		return true
	})
	if len(p.events) == before {
		l.Kind = KindOther
		p.add(&l.Event)
	}
}

// claudeBlock gives the event of a block of content.
func (p *Parser) claudeBlock(l *claudeLine, block value) {
	var kind, text, id, name, input value
	block.each(func(key string, field value) bool {
		switch key {
		case "type":
			kind = field
		case "text", "thinking":
			text = field
		case "id":
			id = field
		case "name":
			name = field
		case "input":
			input = field
		}
		return true
	})
	e := l.Event
	switch kind := kind.view(); {
	case kind == "text" && l.kind == "user":
		e.Kind, e.Text = KindUser, keep(text)
	case kind == "text" && l.fault.exists():
		e.Kind, e.Name, e.Text = KindError, p.named(l.kind, l.fault.view()), keep(text)
	case kind == "text":
		e.Kind, e.Text = KindText, keep(text)
	case kind == "thinking":
		e.Kind, e.Text = KindThinking, keep(text)
	case kind == "redacted_thinking":
		e.Kind = KindThinking
	case kind == "tool_use", kind == "server_tool_use", kind == "mcp_tool_use":
		e.Kind = KindToolUse
		e.Tool = &Tool{ID: keep(id), Name: p.know(name), Args: raw(input)}
	case strings.HasSuffix(kind, "tool_result"):
		e.Kind, e.Tool = KindToolResult, claudeToolResult(l, block)
	default:
		e.Kind, e.Name = KindOther, p.named(l.kind, kind)
	}
	p.add(&e)
}

// claudeToolResult is what came of a tool call.
func claudeToolResult(l *claudeLine, block value) *Tool {
	t := &Tool{}
	failed := false
	block.each(func(key string, field value) bool {
		switch key {
		case "tool_use_id":
			t.ID = keep(field)
		case "content":
			t.Result = raw(field)
		case "is_error":
			failed = field.isTrue()
		}
		return true
	})
	t.OK = !failed
	l.meta.each(func(_ string, meta value) bool {
		decision := meta.get("permission_decision.decision").view()
		if decision != "" && decision != "accept" && decision != "allow" && meta.get("id").view() == t.ID {
			t.Denied, t.OK = true, false
		}
		return true
	})
	return t
}

// claudeUser gives the events of a message to the model: tool results, and what was said.
func (p *Parser) claudeUser(l *claudeLine) {
	content := l.message.get("content")
	if content.isText() {
		l.Kind, l.Text = KindUser, keep(content)
		p.add(&l.Event)
		return
	}
	before := len(p.events)
	content.each(func(_ string, block value) bool {
		p.claudeBlock(l, block)
		return true
	})
	if len(p.events) == before {
		l.Kind = KindOther
		p.add(&l.Event)
	}
}

// claudeSystem gives the event of a line of the CLI's own.
func (p *Parser) claudeSystem(l *claudeLine, v value) {
	l.Kind = KindStatus
	switch {
	case l.subtype == "init":
		l.Kind = KindInit
		p.claudeInit(l, v)
	case l.subtype == "api_retry":
		l.Status = int(v.get("error_status").int())
		l.Text = "attempt " + number(v.get("attempt")) + " of " + number(v.get("max_retries")) + " after " + keep(l.fault) +
			", in " + number(v.get("retry_delay_ms")) + " ms"
	case l.subtype == "status":
		l.Text = keep(v.get("status"))
	case l.subtype == "permission_denied":
		l.Tool = &Tool{ID: keep(v.get("tool_use_id")), Name: p.know(v.get("tool_name")), Denied: true}
		l.Text = keep(v.get("message"))
	case l.subtype == "compact_boundary":
		l.Text = keep(v.get("compact_metadata.trigger"))
	case strings.HasPrefix(l.subtype, "hook_"):
		l.Text = p.know(v.get("hook_name"))
	case strings.HasPrefix(l.subtype, "task_"):
		l.ParentID = p.know(v.get("tool_use_id"))
		l.Text = firstText(v, "summary", "description", "patch.status", "status")
	default:
		l.Kind = KindOther
	}
	p.add(&l.Event)
}

// claudeInit reads what the CLI says of itself.
func (p *Parser) claudeInit(l *claudeLine, v value) {
	l.Init = &Init{}
	v.each(func(key string, field value) bool {
		switch key {
		case "model":
			l.Model = p.know(field)
		case "cwd":
			l.Init.WorkingDir = p.know(field)
		case "claude_code_version":
			l.Init.Version = p.know(field)
		case "permissionMode":
			l.Init.PermissionMode = p.know(field)
		case "tools":
			l.Init.Tools = strs(field)
		case "mcp_servers":
			l.Init.MCPServers = p.servers(field)
		}
		return true
	})
}

// servers is the names of MCP servers, with the state of those that are not connected.
func (p *Parser) servers(v value) (list []string) {
	v.each(func(_ string, server value) bool {
		name := server.get("name").view()
		if status := server.get("status").view(); status != "" && status != "connected" {
			name += " (" + status + ")"
		}
		list = append(list, p.intern(name))
		return true
	})
	return list
}

// claudeDelta gives the event of a part of a message that is being made.
func (p *Parser) claudeDelta(l *claudeLine) {
	kind := l.inner.get("type").view()
	l.Kind, l.Name = KindOther, p.named(l.kind, kind)
	switch kind {
	case "content_block_delta":
		delta := l.inner.get("delta")
		switch delta.get("type").view() {
		case "text_delta":
			l.Kind, l.Name, l.Text = KindDelta, "text_delta", keep(delta.get("text"))
		case "thinking_delta":
			l.Kind, l.Name, l.Text = KindDelta, "thinking_delta", keep(delta.get("thinking"))
		}
	case "message_start":
		l.MessageID = p.know(l.inner.get("message.id"))
		l.Model = p.know(l.inner.get("message.model"))
	case "message_delta":
		l.Usage = claudeUsage(l.inner.get("usage"))
	}
	p.add(&l.Event)
}

// claudeResult gives the event of a turn's end. Its tokens are those of the turn, its cost
// is summed up, over the process or the session.
func (p *Parser) claudeResult(l *claudeLine, v value) {
	r := &Result{Subtype: p.intern(l.subtype), CostCumulative: true, Status: l.Status}
	var cost value
	v.each(func(key string, field value) bool {
		switch key {
		case "is_error":
			r.IsError = field.isTrue()
		case "result":
			r.Text = keep(field)
		case "errors":
			r.Errors = claudeErrors(field)
		case "num_turns":
			r.Turns = int(field.int())
		case "duration_ms":
			r.Duration = length(field.int())
		case "usage":
			r.Usage = *claudeUsage(field)
		case "total_cost_usd":
			cost = field
		case "permission_denials":
			r.Denials = int(field.count())
		case "stop_reason":
			r.StopReason = p.know(field)
		case "terminal_reason":
			r.TerminalReason = p.know(field)
		}
		return true
	})
	r.Usage.CostUSD = cost.float()
	l.Kind, l.Result = KindResult, r
	p.add(&l.Event)
}

// claudeErrors is the list of a result's errors.
func claudeErrors(v value) (list []string) {
	v.each(func(_ string, e value) bool {
		if e.isObject() && e.get("message").exists() {
			e = e.get("message")
		}
		list = append(list, keep(e))
		return true
	})
	return list
}

// claudeUsage reads the API's counts.
func claudeUsage(v value) *ace.Usage {
	u := &ace.Usage{}
	v.each(func(key string, field value) bool {
		switch key {
		case "input_tokens", "cache_creation_input_tokens":
			u.InputTokens += field.int()
		case "output_tokens":
			u.OutputTokens = field.int()
		case "cache_read_input_tokens":
			u.CacheReadTokens = field.int()
		}
		return true
	})
	return u
}

func number(v value) string { return strconv.FormatInt(v.int(), 10) }

// firstText is the first of the fields that has text.
func firstText(v value, paths ...string) string {
	for _, path := range paths {
		if s := v.get(path); s.isText() && len(s) > 2 {
			return keep(s)
		}
	}
	return ""
}
