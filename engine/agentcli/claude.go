package agentcli

import (
	"strconv"
	"strings"

	"acescope/engine/ace"
	"github.com/tidwall/gjson"
)

// claudeLine is what lines of several types have in common, and where the rest stands.
type claudeLine struct {
	Event
	kind, subtype string
	message       gjson.Result
	inner         gjson.Result // event, of a stream_event; request or response of the control protocol
	fault         gjson.Result // error
	meta          gjson.Result // tool_result_meta
}

// claude reads a line of Claude Code's stream.
func (p *Parser) claude(v gjson.Result) {
	var l claudeLine
	v.ForEach(func(key, value gjson.Result) bool {
		p.claudeField(&l, key.Str, value)
		return true
	})
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
		l.Name = p.named(l.kind, l.inner.Get("subtype").String())
		p.add(l.Event)
	case "rate_limit_event":
		l.Kind = KindStatus
		l.Text = keep(v.Get("rate_limit_info.status"))
		p.add(l.Event)
	default:
		l.Kind = KindOther
		p.add(l.Event)
	}
}

// claudeField takes one field of a line. Strings that are only compared are not copied.
func (p *Parser) claudeField(l *claudeLine, key string, value gjson.Result) {
	switch key {
	case "type":
		l.kind = value.String()
	case "subtype":
		l.subtype = value.String()
	case "message":
		l.message = value
	case "event", "request", "response":
		l.inner = value
	case "error":
		l.fault = value
	case "tool_result_meta":
		l.meta = value
	case "session_id":
		l.SessionID = p.know(value)
	case "uuid":
		l.UUID = keep(value)
	case "parent_tool_use_id":
		l.ParentID = p.know(value)
	case "timestamp":
		l.At = stamp(value)
	case "api_error_status":
		l.Status = int(value.Int())
	}
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
	var content gjson.Result
	l.message.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "id":
			l.MessageID = p.know(value)
		case "model":
			l.Model = p.know(value)
		case "content":
			content = value
		case "usage":
			l.Usage = claudeUsage(value)
		}
		return true
	})
	if content.Type == gjson.String {
		l.Kind, l.Text = KindText, keep(content)
		p.add(l.Event)
		return
	}
	before := len(p.events)
	content.ForEach(func(_, block gjson.Result) bool {
		p.claudeBlock(l, block)
		l.Usage = nil // once a message
		return true
	})
	if len(p.events) == before {
		l.Kind = KindOther
		p.add(l.Event)
	}
}

// claudeBlock gives the event of a block of content.
func (p *Parser) claudeBlock(l *claudeLine, block gjson.Result) {
	e := l.Event
	switch kind := block.Get("type").String(); {
	case kind == "text" && l.kind == "user":
		e.Kind, e.Text = KindUser, keep(block.Get("text"))
	case kind == "text" && l.fault.Exists() && l.fault.Type != gjson.Null:
		e.Kind, e.Name, e.Text = KindError, p.named(l.kind, l.fault.String()), keep(block.Get("text"))
	case kind == "text":
		e.Kind, e.Text = KindText, keep(block.Get("text"))
	case kind == "thinking":
		e.Kind, e.Text = KindThinking, keep(block.Get("thinking"))
	case kind == "redacted_thinking":
		e.Kind = KindThinking
	case kind == "tool_use", kind == "server_tool_use", kind == "mcp_tool_use":
		e.Kind = KindToolUse
		e.Tool = &Tool{ID: keep(block.Get("id")), Name: p.know(block.Get("name")), Args: raw(block.Get("input"))}
	case strings.HasSuffix(kind, "tool_result"):
		e.Kind, e.Tool = KindToolResult, claudeToolResult(l, block)
	default:
		e.Kind, e.Name = KindOther, p.named(l.kind, kind)
	}
	p.add(e)
}

// claudeToolResult is what came of a tool call.
func claudeToolResult(l *claudeLine, block gjson.Result) *Tool {
	t := &Tool{}
	failed := false
	block.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "tool_use_id":
			t.ID = keep(value)
		case "content":
			t.Result = raw(value)
		case "is_error":
			failed = value.Bool()
		}
		return true
	})
	t.OK = !failed
	l.meta.ForEach(func(_, meta gjson.Result) bool {
		decision := meta.Get("permission_decision.decision").String()
		if decision != "" && decision != "accept" && decision != "allow" && meta.Get("id").String() == t.ID {
			t.Denied, t.OK = true, false
		}
		return true
	})
	return t
}

// claudeUser gives the events of a message to the model: tool results, and what was said.
func (p *Parser) claudeUser(l *claudeLine) {
	content := l.message.Get("content")
	if content.Type == gjson.String {
		l.Kind, l.Text = KindUser, keep(content)
		p.add(l.Event)
		return
	}
	before := len(p.events)
	content.ForEach(func(_, block gjson.Result) bool {
		p.claudeBlock(l, block)
		return true
	})
	if len(p.events) == before {
		l.Kind = KindOther
		p.add(l.Event)
	}
}

// claudeSystem gives the event of a line of the CLI's own.
func (p *Parser) claudeSystem(l *claudeLine, v gjson.Result) {
	l.Kind = KindStatus
	switch {
	case l.subtype == "init":
		l.Kind = KindInit
		p.claudeInit(l, v)
	case l.subtype == "api_retry":
		l.Status = int(v.Get("error_status").Int())
		l.Text = "attempt " + number(v.Get("attempt")) + " of " + number(v.Get("max_retries")) + " after " + keep(l.fault) +
			", in " + number(v.Get("retry_delay_ms")) + " ms"
	case l.subtype == "status":
		l.Text = keep(v.Get("status"))
	case l.subtype == "permission_denied":
		l.Tool = &Tool{ID: keep(v.Get("tool_use_id")), Name: p.know(v.Get("tool_name")), Denied: true}
		l.Text = keep(v.Get("message"))
	case l.subtype == "compact_boundary":
		l.Text = keep(v.Get("compact_metadata.trigger"))
	case strings.HasPrefix(l.subtype, "hook_"):
		l.Text = p.know(v.Get("hook_name"))
	case strings.HasPrefix(l.subtype, "task_"):
		l.ParentID = p.know(v.Get("tool_use_id"))
		l.Text = firstText(v, "summary", "description", "patch.status", "status")
	default:
		l.Kind = KindOther
	}
	p.add(l.Event)
}

// claudeInit reads what the CLI says of itself.
func (p *Parser) claudeInit(l *claudeLine, v gjson.Result) {
	l.Init = &Init{}
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "model":
			l.Model = p.know(value)
		case "cwd":
			l.Init.WorkingDir = p.know(value)
		case "claude_code_version":
			l.Init.Version = p.know(value)
		case "permissionMode":
			l.Init.PermissionMode = p.know(value)
		case "tools":
			l.Init.Tools = strs(value)
		case "mcp_servers":
			l.Init.MCPServers = p.servers(value)
		}
		return true
	})
}

// servers is the names of MCP servers, with the state of those that are not connected.
func (p *Parser) servers(v gjson.Result) (list []string) {
	v.ForEach(func(_, server gjson.Result) bool {
		name := server.Get("name").String()
		if status := server.Get("status").String(); status != "" && status != "connected" {
			name += " (" + status + ")"
		}
		list = append(list, p.intern(name))
		return true
	})
	return list
}

// claudeDelta gives the event of a part of a message that is being made.
func (p *Parser) claudeDelta(l *claudeLine) {
	kind := l.inner.Get("type").String()
	l.Kind, l.Name = KindOther, p.named(l.kind, kind)
	switch kind {
	case "content_block_delta":
		delta := l.inner.Get("delta")
		switch delta.Get("type").String() {
		case "text_delta":
			l.Kind, l.Name, l.Text = KindDelta, "text_delta", keep(delta.Get("text"))
		case "thinking_delta":
			l.Kind, l.Name, l.Text = KindDelta, "thinking_delta", keep(delta.Get("thinking"))
		}
	case "message_start":
		l.MessageID = p.know(l.inner.Get("message.id"))
		l.Model = p.know(l.inner.Get("message.model"))
	case "message_delta":
		l.Usage = claudeUsage(l.inner.Get("usage"))
	}
	p.add(l.Event)
}

// claudeResult gives the event of a turn's end. Its tokens are those of the turn, its cost
// is summed up, over the process or the session.
func (p *Parser) claudeResult(l *claudeLine, v gjson.Result) {
	r := &Result{Subtype: p.intern(l.subtype), CostCumulative: true, Status: l.Status}
	var cost gjson.Result
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "is_error":
			r.IsError = value.Bool()
		case "result":
			r.Text = keep(value)
		case "errors":
			r.Errors = claudeErrors(value)
		case "num_turns":
			r.Turns = int(value.Int())
		case "duration_ms":
			r.Duration = length(value.Int())
		case "usage":
			r.Usage = *claudeUsage(value)
		case "total_cost_usd":
			cost = value
		case "permission_denials":
			r.Denials = int(value.Get("#").Int())
		case "stop_reason":
			r.StopReason = p.know(value)
		case "terminal_reason":
			r.TerminalReason = p.know(value)
		}
		return true
	})
	r.Usage.CostUSD = cost.Float()
	l.Kind, l.Result = KindResult, r
	p.add(l.Event)
}

// claudeErrors is the list of a result's errors.
func claudeErrors(v gjson.Result) (list []string) {
	v.ForEach(func(_, e gjson.Result) bool {
		if e.IsObject() && e.Get("message").Exists() {
			e = e.Get("message")
		}
		list = append(list, keep(e))
		return true
	})
	return list
}

// claudeUsage reads the API's counts.
func claudeUsage(v gjson.Result) *ace.Usage {
	u := &ace.Usage{}
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "input_tokens", "cache_creation_input_tokens":
			u.InputTokens += value.Int()
		case "output_tokens":
			u.OutputTokens = value.Int()
		case "cache_read_input_tokens":
			u.CacheReadTokens = value.Int()
		}
		return true
	})
	return u
}

func number(v gjson.Result) string { return strconv.FormatInt(v.Int(), 10) }

// firstText is the first of the fields that has text.
func firstText(v gjson.Result, paths ...string) string {
	for _, path := range paths {
		if s := v.Get(path); s.Type == gjson.String && s.Str != "" {
			return keep(s)
		}
	}
	return ""
}
