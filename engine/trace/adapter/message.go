package adapter

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"acescope/engine/trace"
)

// messages reads a conversation in the form of any provider or framework: a text, a message, or a list of
// messages or of items of OpenAI's Responses API. What it does not know is left out.
func messages(v gjson.Result) (all []trace.Message) {
	if v.IsArray() {
		for _, item := range elements(v) {
			all = append(all, messages(item)...)
		}
		return all
	}
	if m := message(v); m.Text != "" || m.Reasoning != "" || len(m.Calls)+len(m.Results) > 0 {
		all = append(all, m)
	}
	return all
}

// latest returns the messages since the last one of the assistant.
func latest(v gjson.Result) []trace.Message {
	if !v.IsArray() {
		return messages(v)
	}
	var all []trace.Message
	for _, item := range slices.Backward(elements(v)) {
		of := messages(item)
		if len(of) == 1 && of[0].Role == assistant || len(of) == 0 && message(item).Role == assistant {
			break
		}
		slices.Reverse(of)
		all = append(all, of...)
	}
	slices.Reverse(all)
	return all
}

// joined returns messages as one message of the assistant.
func joined(all []trace.Message) *trace.Message {
	if len(all) == 0 {
		return nil
	}
	m := trace.Message{Role: assistant}
	for _, part := range all {
		m.Text += part.Text
		m.Reasoning += part.Reasoning
		m.Calls = append(m.Calls, part.Calls...)
		m.Results = append(m.Results, part.Results...)
	}
	return &m
}

// assistant is the role of a model.
const assistant = "assistant"

// roles holds the role of each name of a role, and of each type of a message.
var roles = map[string]string{"system": "system", "developer": "system", "system-prompt": "system",
	"user": "user", "human": "user", "request": "user", "assistant": assistant, "ai": assistant,
	"model": assistant, "response": assistant, "function_call": assistant, "reasoning": assistant,
	"tool": "tool", "function": "tool", "tool_execution_result": "tool", "function_call_output": "tool",
	"function_call_result": "tool"}

// message reads a message. It is empty if nothing is understood.
func message(j gjson.Result) trace.Message {
	if j.Type == gjson.String {
		text := j.String()
		if strings.HasPrefix(text, "{") && gjson.Valid(text) { // LangChain4j writes a message as text
			return message(gjson.Parse(text))
		}
		return trace.Message{Role: "user", Text: text}
	}
	v := objectOf(j)
	if kwargs := v.Get("kwargs"); kwargs.IsObject() && v.Get("lc").Exists() { // LangChain's serial form
		v = objectOf(kwargs)
	}
	m := trace.Message{}
	for _, name := range []string{"role", "type", "kind", "author"} {
		if m.Role = roles[strings.ToLower(v.Get(name).String())]; m.Role != "" {
			break
		}
	}
	if !part(&m, v) {
		for _, name := range []string{"content", "parts", "contents", "text"} {
			if content := v.Get(name); content.Exists() && content.Type != gjson.Null {
				parts(&m, content)
				break
			}
		}
	}
	for _, name := range []string{"tool_calls", "toolExecutionRequests", "toolCalls"} {
		v.Get(name).ForEach(func(_, call gjson.Result) bool {
			ask(&m, call, text(call, []string{"function.name", "name", "tool_name"}))
			return true
		})
	}
	if m.Role == "tool" && len(m.Results) == 0 {
		r := trace.Result{ID: text(v, callIDs), Name: text(v, callNames), Failed: isFailure(v)}
		r.Content, _ = json.Marshal(m.Text) // a string
		m.Text = ""
		m.Results = append(m.Results, r)
	}
	switch {
	case m.Role != "":
	case len(m.Calls) > 0 || m.Reasoning != "":
		m.Role = assistant
	case len(m.Results) > 0:
		m.Role = "tool"
	default:
		m.Role = "user"
	}
	return m
}

// Names of the ID and the name of a tool call.
var (
	callIDs = []string{"call_id", "callId", "tool_call_id", "toolCallId", "tool_use_id", "toolUseId",
		"tool_id", "id"}
	callNames     = []string{"name", "tool_name", "toolName"}
	argumentNames = []string{"arguments", "function.arguments", "args", "input", "function.input"}
	resultNames   = []string{"output", "content", "response", "result"}
)

// text returns the first text under one of the names, or "".
func text(v valuer, names []string) string {
	for _, name := range names {
		if t := v.Get(name); t.Type == gjson.String && t.String() != "" {
			return strings.Clone(t.String())
		}
	}
	return ""
}

// parts adds the parts of a message's content: a text, a part, or a list of them.
func parts(m *trace.Message, content gjson.Result) {
	switch {
	case content.Type == gjson.String:
		m.Text += content.String()
	case content.IsArray():
		for _, p := range elements(content) {
			parts(m, p)
		}
	case content.IsObject():
		v := objectOf(content)
		switch {
		case part(m, v):
		case v.Get("parts").IsArray():
			parts(m, v.Get("parts"))
		case v.Get("text").Type == gjson.String:
			m.Text += v.Get("text").String()
		case v.Get("content").Exists():
			parts(m, v.Get("content"))
		}
	}
}

// part adds a tool call, the result of one, a reasoning or a text in the form of any provider. It reports
// whether it knows the part.
func part(m *trace.Message, v valuer) bool {
	for _, name := range []string{"functionCall", "function_call", "toolUse"} {
		if call := v.Get(name); call.IsObject() {
			ask(m, call, text(call, callNames))
			return true
		}
	}
	for _, name := range []string{"functionResponse", "function_response", "toolResult"} {
		if r := v.Get(name); r.IsObject() {
			answer(m, r)
			return true
		}
	}
	switch text(v, []string{"part_kind", "type"}) {
	case "function_call", "custom_tool_call", "tool_use", "tool-call", "mcp_tool_use":
		ask(m, v, text(v, callNames))
	case "builtin-tool-call", "native-tool-call", "server_tool_use", "web_search_call", "file_search_call",
		"code_interpreter_call", "computer_call", "image_generation_call", "mcp_call":
		ask(m, v, text(v, append(callNames, "type")))
		m.Calls[len(m.Calls)-1].Provider = true
	case "function_call_output", "function_call_result", "custom_tool_call_output", "tool_result",
		"tool-result", "tool-return", "mcp_tool_result", "builtin-tool-return", "native-tool-return":
		answer(m, v)
	case "retry-prompt":
		if text(v, callNames) == "" {
			return false
		}
		answer(m, v)
		m.Results[len(m.Results)-1].Failed = true
	case "reasoning", "thinking":
		m.Reasoning += text(v, []string{"text", "thinking", "content", "summary.0.text"})
	default:
		if v.Get("thought").Bool() {
			m.Reasoning += v.Get("text").String()
			return true
		}
		if v.Get("tool_name").Exists() && v.Get("args").Exists() && m.Role == assistant {
			ask(m, v, text(v, callNames))
			return true
		}
		return false
	}
	return true
}

// ask adds a tool call that an answer asks for.
func ask(m *trace.Message, v valuer, name string) {
	c := trace.ToolCall{ID: text(v, callIDs), Name: name, Provider: v.Get("providerExecuted").Bool()}
	for _, of := range argumentNames {
		if a := v.Get(of); a.Exists() {
			c.Arguments = raw(a)
			break
		}
	}
	same := func(known trace.ToolCall) bool { return known.ID == c.ID }
	if c.ID != "" && slices.ContainsFunc(m.Calls, same) {
		return // LangChain writes the calls of Anthropic's models twice
	}
	m.Calls = append(m.Calls, c)
}

// answer adds the result of a tool.
func answer(m *trace.Message, v valuer) {
	r := trace.Result{ID: text(v, callIDs), Name: text(v, callNames), Failed: isFailure(v)}
	for _, of := range resultNames {
		if c := v.Get(of); c.Exists() {
			if inner := c.Get("value"); inner.Exists() && c.Get("type").Exists() { // AI SDK
				c = inner
			} else if c.Get("type").String() == "text" {
				c = c.Get("text")
			}
			r.Content = raw(c)
			break
		}
	}
	m.Results = append(m.Results, r)
}

// isFailure reports whether the result of a tool says that it failed.
func isFailure(v valuer) bool {
	switch text(v, []string{"status", "outcome"}) {
	case "error", "failed", "denied", "failure":
		return true
	}
	return v.Get("is_error").Bool() || v.Get("isError").Bool() || v.Get("isFailed").Bool() ||
		strings.HasPrefix(v.Get("output.type").String(), "error") || v.Get("response.error").String() != ""
}

// raw returns JSON; a text that holds a JSON object is that object.
func raw(v gjson.Result) json.RawMessage {
	if v.Type == gjson.String {
		if inner := v.String(); strings.HasPrefix(inner, "{") && gjson.Valid(inner) {
			return json.RawMessage(inner)
		}
	}
	return json.RawMessage(v.Raw)
}
