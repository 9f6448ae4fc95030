package agentcli

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// codex parses a line of Codex.
func (p *Parser) codex(line object) {
	kind := text(line["type"])
	if kind == "thread.started" {
		p.session = text(line["thread_id"])
	}
	e := Event{Kind: KindOther, Name: kind, SessionID: p.session}
	switch kind {
	case "thread.started":
		e.Kind, e.Init = KindInit, &Init{}
	case "turn.started":
		e.Kind = KindStatus
	case "item.started", "item.updated", "item.completed":
		p.codexItem(e, line["item"].Map())
		return
	case "error":
		e.Kind, e.Text = KindError, text(line["message"])
	case "turn.completed", "turn.failed":
		e.Kind, e.Result = KindResult, p.codexResult(kind, line["usage"])
		if kind == "turn.failed" {
			e.Result.IsError = true
			e.Result.Errors = []string{text(line["error"].Get("message"))}
		}
	}
	p.add(e)
}

// codexResult reads the end of a turn. Codex counts tokens over the whole thread, and its
// input includes the tokens read from the cache.
func (p *Parser) codexResult(subtype string, usage gjson.Result) *Result {
	r := &Result{Subtype: subtype, Text: p.lastText, Turns: 1, Cumulative: true}
	r.Usage.CacheReadTokens = usage.Get("cached_input_tokens").Int()
	r.Usage.InputTokens = max(0, usage.Get("input_tokens").Int()-r.Usage.CacheReadTokens)
	r.Usage.OutputTokens = usage.Get("output_tokens").Int()
	p.lastText = ""
	return r
}

// codexItem adds the events of an item: a text when it is complete, a tool call when it starts
// and its result when it is complete. e.Name is the type of the line.
func (p *Parser) codexItem(e Event, item object) {
	starts, complete := e.Name == "item.started", e.Name == "item.completed"
	e.Name, e.MessageID = text(item["type"]), text(item["id"])
	switch e.Name {
	case "command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call":
		if starts || complete {
			p.codexTool(e, complete, item)
			return
		}
	case "error":
		e.Kind, e.Text = KindError, text(item["message"])
	case "todo_list":
		e.Kind, e.Text = KindStatus, codexTodo(item["items"])
	case "agent_message":
		if complete {
			e.Kind, e.Text = KindText, text(item["text"])
			p.lastText = e.Text
		}
	case "reasoning":
		if complete {
			e.Kind, e.Text = KindThinking, text(item["text"])
		}
	}
	p.add(e)
}

// codexTool adds the call, unless it was added before, and the result of a complete call.
func (p *Parser) codexTool(e Event, complete bool, item object) {
	id := e.MessageID
	if !p.started[id] {
		if len(p.started) >= maxOpen {
			clear(p.started)
		}
		p.started[id] = true
		e.Kind, e.Tool = KindToolUse, codexCall(e.Name, item)
		e.Tool.ID = id
		p.add(e)
	}
	if complete {
		delete(p.started, id)
		e.Kind, e.Tool = KindToolResult, codexToolResult(e.Name, item)
		e.Tool.ID = id
		p.add(e)
	}
}

// codexArgument is the field with the argument of a tool, by the tool.
var codexArgument = map[string]string{
	"command_execution": "command", "file_change": "changes", "web_search": "query",
}

func codexCall(kind string, item object) *Tool {
	if kind == "mcp_tool_call" {
		name := "mcp__" + item["server"].String() + "__" + item["tool"].String()
		return &Tool{Name: name, Args: raw(item["arguments"])}
	}
	key := codexArgument[kind]
	if item[key].Type == gjson.Null {
		return &Tool{Name: kind}
	}
	return &Tool{Name: kind, Args: json.RawMessage(`{"` + key + `":` + item[key].Raw + `}`)}
}

func codexToolResult(kind string, item object) *Tool {
	status := item["status"].String()
	t := &Tool{OK: status != "failed" && status != "declined", Denied: status == "declined"}
	switch kind {
	case "command_execution":
		t.Result = raw(item["aggregated_output"])
		t.OK = t.OK && item["exit_code"].Int() == 0
	case "mcp_tool_call":
		t.Result = raw(item["result"])
		if fault := raw(item["error"]); fault != nil {
			t.OK, t.Result = false, fault
		}
	}
	return t
}

// codexTodo renders a to-do list, one item per line.
func codexTodo(items gjson.Result) string {
	var b strings.Builder
	for _, item := range elements(items) {
		if b.Len() >= MaxText {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		mark := "[ ] "
		if isTrue(item.Get("completed")) {
			mark = "[x] "
		}
		b.WriteString(mark + item.Get("text").String())
	}
	return b.String()
}
