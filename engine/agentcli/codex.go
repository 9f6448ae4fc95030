package agentcli

import (
	"encoding/json"
	"strings"

	"acescope/engine/ace"
	"github.com/tidwall/gjson"
)

// codex reads a line of Codex's stream.
func (p *Parser) codex(v gjson.Result) {
	kind := v.Get("type").String()
	e := Event{Name: p.intern(kind), SessionID: p.session}
	switch kind {
	case "thread.started":
		p.session = p.know(v.Get("thread_id"))
		e.Kind, e.SessionID, e.Init = KindInit, p.session, &Init{}
	case "turn.started":
		e.Kind = KindStatus
	case "item.started", "item.updated", "item.completed":
		p.codexItem(e, kind, v.Get("item"))
		return
	case "error":
		e.Kind, e.Text = KindError, keep(v.Get("message"))
	case "turn.completed", "turn.failed":
		e.Kind, e.Result = KindResult, p.codexResult(kind, v)
	default:
		e.Kind = KindOther
	}
	p.add(e)
}

// codexResult is the end of a turn. Codex counts tokens over the whole thread, and those
// read from the cache among its input.
func (p *Parser) codexResult(kind string, v gjson.Result) *Result {
	r := &Result{Subtype: p.intern(kind), Text: p.last, Turns: 1, Cumulative: true}
	if kind == "turn.failed" {
		r.IsError = true
		r.Errors = []string{keep(v.Get("error.message"))}
	}
	cached := v.Get("usage.cached_input_tokens").Int()
	r.Usage = ace.Usage{
		InputTokens:     max(0, v.Get("usage.input_tokens").Int()-cached),
		OutputTokens:    v.Get("usage.output_tokens").Int(),
		CacheReadTokens: cached,
	}
	p.last = ""
	return r
}

// codexItem gives the events of an item: a text when it is complete, a tool's call when it
// begins and its result when it is complete.
func (p *Parser) codexItem(e Event, kind string, item gjson.Result) {
	id, what := item.Get("id"), item.Get("type").String()
	e.Name = p.intern(what)
	e.MessageID = keep(id)
	complete := kind == "item.completed"
	switch {
	case what == "error":
		e.Kind, e.Text = KindError, keep(item.Get("message"))
	case what == "todo_list":
		e.Kind, e.Text = KindStatus, codexTodo(item.Get("items"))
	case what == "agent_message" && complete:
		e.Kind, e.Text = KindText, keep(item.Get("text"))
		p.last = e.Text
	case what == "reasoning" && complete:
		e.Kind, e.Text = KindThinking, keep(item.Get("text"))
	case codexTool(what) && kind != "item.updated":
		p.codexToolEvents(e, complete, what, item)
		return
	default:
		e.Kind = KindOther
	}
	p.add(e)
}

// codexTool tells whether an item of the type is a call of a tool.
func codexTool(what string) bool {
	switch what {
	case "command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call":
		return true
	}
	return false
}

// codexToolEvents gives the call, unless it was given, and the result, when it is there.
func (p *Parser) codexToolEvents(e Event, complete bool, what string, item gjson.Result) {
	if id := e.MessageID; !p.started[id] {
		p.start(id)
		call := e
		call.Kind = KindToolUse
		call.Tool = &Tool{ID: id, Name: p.codexName(what, item), Args: codexArgs(what, item)}
		p.add(call)
	}
	if !complete {
		return
	}
	delete(p.started, e.MessageID)
	e.Kind, e.Tool = KindToolResult, codexOutput(what, item)
	e.Tool.ID = e.MessageID
	p.add(e)
}

// start remembers a tool call.
func (p *Parser) start(id string) {
	if len(p.started) >= maxKnown {
		clear(p.started)
	}
	p.started[id] = true
}

// codexName is the tool's name.
func (p *Parser) codexName(what string, item gjson.Result) string {
	if what == "mcp_tool_call" {
		return p.intern("mcp__" + item.Get("server").String() + "__" + item.Get("tool").String())
	}
	return p.intern(what)
}

// codexArgs is what the tool was called with.
func codexArgs(what string, item gjson.Result) json.RawMessage {
	switch what {
	case "mcp_tool_call":
		return raw(item.Get("arguments"))
	case "command_execution":
		return object("command", item.Get("command"))
	case "file_change":
		return object("changes", item.Get("changes"))
	case "web_search":
		return object("query", item.Get("query"))
	}
	return nil
}

// codexOutput is what came of a tool call.
func codexOutput(what string, item gjson.Result) *Tool {
	status := item.Get("status").String()
	t := &Tool{OK: status != "failed" && status != "declined", Denied: status == "declined"}
	switch what {
	case "command_execution":
		t.Result = raw(item.Get("aggregated_output"))
		t.OK = t.OK && item.Get("exit_code").Int() == 0
	case "mcp_tool_call":
		t.Result = raw(item.Get("result"))
		if fault := item.Get("error"); fault.Exists() && fault.Type != gjson.Null {
			t.OK, t.Result = false, raw(fault)
		}
	}
	return t
}

// codexTodo is a list of things to do, a line each.
func codexTodo(items gjson.Result) string {
	var b strings.Builder
	items.ForEach(func(_, item gjson.Result) bool {
		mark := "[ ] "
		if item.Get("completed").Bool() {
			mark = "[x] "
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(mark + item.Get("text").String())
		return b.Len() < MaxText
	})
	return b.String()
}

// object is a JSON object of one field; nil where there is no value.
func object(key string, v gjson.Result) json.RawMessage {
	if !v.Exists() || v.Type == gjson.Null {
		return nil
	}
	out := make([]byte, 0, len(key)+len(v.Raw)+5)
	out = append(append(append(out, `{"`...), key...), `":`...)
	return append(append(out, v.Raw...), '}')
}
