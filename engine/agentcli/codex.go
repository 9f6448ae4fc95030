package agentcli

import (
	"encoding/json"
	"strings"
)

// codexItem is an item as its line tells it.
type codexItem struct {
	kind, id, text, message, status, items    value
	command, output, exit, changes, query     value
	server, tool, arguments, result, mcpError value
}

func (i *codexItem) take(key string, field value) bool {
	switch key {
	case "type":
		i.kind = field
	case "id":
		i.id = field
	case "text":
		i.text = field
	case "message":
		i.message = field
	case "status":
		i.status = field
	case "items":
		i.items = field
	case "command":
		i.command = field
	case "aggregated_output":
		i.output = field
	case "exit_code":
		i.exit = field
	case "changes":
		i.changes = field
	case "query":
		i.query = field
	case "server":
		i.server = field
	case "tool":
		i.tool = field
	case "arguments":
		i.arguments = field
	case "result":
		i.result = field
	case "error":
		i.mcpError = field
	}
	return true
}

// codex reads a line of Codex's stream.
func (p *Parser) codex(v value) bool {
	var kind, item, usage, message, fault, thread value
	ok := v.whole(func(key string, field value) bool {
		switch key {
		case "type":
			kind = field
		case "item":
			item = field
		case "usage":
			usage = field
		case "message":
			message = field
		case "error":
			fault = field
		case "thread_id":
			thread = field
		}
		return true
	})
	if !ok {
		return false
	}
	e := Event{SessionID: p.session}
	switch name := kind.view(); name {
	case "thread.started":
		e.SessionID = p.again(&p.session, thread)
		e.Kind, e.Name, e.Init = KindInit, "thread.started", &Init{}
	case "turn.started":
		e.Kind, e.Name = KindStatus, "turn.started"
	case "item.started", "item.updated", "item.completed":
		p.codexItem(&e, name == "item.started", name == "item.completed", item)
		return true
	case "error":
		e.Kind, e.Name, e.Text = KindError, "error", keep(message)
	case "turn.completed":
		e.Kind, e.Name, e.Result = KindResult, "turn.completed", p.codexResult("turn.completed", usage)
	case "turn.failed":
		e.Kind, e.Name, e.Result = KindResult, "turn.failed", p.codexResult("turn.failed", usage)
		e.Result.IsError = true
		e.Result.Errors = []string{keep(fault.get("message"))}
	default:
		e.Kind, e.Name = KindOther, p.intern(name)
	}
	p.add(&e)
	return true
}

// codexResult is the end of a turn. Codex counts tokens over the whole thread, and those
// read from the cache among its input.
func (p *Parser) codexResult(subtype string, usage value) *Result {
	r := &Result{Subtype: subtype, Text: p.last, Turns: 1, Cumulative: true}
	usage.each(func(key string, field value) bool {
		switch key {
		case "input_tokens":
			r.Usage.InputTokens = field.int()
		case "cached_input_tokens":
			r.Usage.CacheReadTokens = field.int()
		case "output_tokens":
			r.Usage.OutputTokens = field.int()
		}
		return true
	})
	r.Usage.InputTokens = max(0, r.Usage.InputTokens-r.Usage.CacheReadTokens)
	p.last = ""
	return r
}

// codexItem gives the events of an item: a text when it is complete, a tool's call when it
// begins and its result when it is complete.
func (p *Parser) codexItem(e *Event, begun, complete bool, v value) {
	var item codexItem
	v.each(item.take)
	e.Name, e.MessageID = p.know(item.kind), p.know(item.id)
	switch {
	case e.Name == "error":
		e.Kind, e.Text = KindError, keep(item.message)
	case e.Name == "todo_list":
		e.Kind, e.Text = KindStatus, codexTodo(item.items)
	case e.Name == "agent_message" && complete:
		e.Kind, e.Text = KindText, keep(item.text)
		p.last = e.Text
	case e.Name == "reasoning" && complete:
		e.Kind, e.Text = KindThinking, keep(item.text)
	case codexTool(e.Name) && (begun || complete):
		p.codexToolEvents(e, complete, &item)
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
func (p *Parser) codexToolEvents(e *Event, complete bool, item *codexItem) {
	if id := e.MessageID; !p.started[id] {
		p.start(id)
		e.Kind, e.Tool = KindToolUse, &Tool{ID: id, Name: p.codexName(e.Name, item), Args: item.args(e.Name)}
		p.add(e)
	}
	if !complete {
		return
	}
	delete(p.started, e.MessageID)
	e.Kind, e.Tool = KindToolResult, item.came(e.Name)
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
func (p *Parser) codexName(what string, item *codexItem) string {
	if what == "mcp_tool_call" {
		return p.intern("mcp__" + item.server.view() + "__" + item.tool.view())
	}
	return what
}

// args is what the tool was called with.
func (i *codexItem) args(what string) json.RawMessage {
	switch what {
	case "mcp_tool_call":
		return raw(i.arguments)
	case "command_execution":
		return object("command", i.command)
	case "file_change":
		return object("changes", i.changes)
	case "web_search":
		return object("query", i.query)
	}
	return nil
}

// came is what came of a tool call.
func (i *codexItem) came(what string) *Tool {
	status := i.status.view()
	t := &Tool{OK: status != "failed" && status != "declined", Denied: status == "declined"}
	switch what {
	case "command_execution":
		t.Result = raw(i.output)
		t.OK = t.OK && i.exit.int() == 0
	case "mcp_tool_call":
		t.Result = raw(i.result)
		if i.mcpError.exists() {
			t.OK, t.Result = false, raw(i.mcpError)
		}
	}
	return t
}

// codexTodo is a list of things to do, a line each.
func codexTodo(items value) string {
	var b strings.Builder
	items.each(func(_ string, item value) bool {
		mark := "[ ] "
		if item.get("completed").isTrue() {
			mark = "[x] "
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(mark + item.get("text").view())
		return b.Len() < MaxText
	})
	return b.String()
}

// object is a JSON object of one field; nil where there is no value.
func object(key string, v value) json.RawMessage {
	if !v.exists() {
		return nil
	}
	out := make([]byte, 0, len(key)+len(v)+5)
	out = append(append(append(out, `{"`...), key...), `":`...)
	return append(append(out, v...), '}')
}
