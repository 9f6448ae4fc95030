package agentcli

import (
	"acescope/engine/ace"
	"github.com/tidwall/gjson"
)

// gemini reads a line of Gemini's stream. It sends what the model says in parts only; the
// whole comes when something else does.
func (p *Parser) gemini(v gjson.Result) {
	kind := v.Get("type").String()
	e := Event{Name: p.intern(kind), At: stamp(v.Get("timestamp")), SessionID: p.session, Model: p.model}
	if kind != "message" || v.Get("role").String() != "assistant" {
		p.wholeText()
	}
	switch kind {
	case "init":
		p.session, p.model = p.know(v.Get("session_id")), p.know(v.Get("model"))
		e.Kind, e.SessionID, e.Model, e.Init = KindInit, p.session, p.model, &Init{}
	case "message":
		p.geminiMessage(e, v)
		return
	case "tool_use":
		e.Kind = KindToolUse
		e.Tool = &Tool{ID: keep(v.Get("tool_id")), Name: p.know(v.Get("tool_name")), Args: raw(v.Get("parameters"))}
	case "tool_result":
		e.Kind, e.Tool = KindToolResult, geminiOutput(v)
	case "error":
		e.Kind, e.Text = KindError, keep(v.Get("message"))
	case "result":
		e.Kind, e.Result = KindResult, p.geminiResult(v)
	default:
		e.Kind = KindOther
	}
	p.add(e)
}

// geminiMessage gives the event of a message, or of a part of one.
func (p *Parser) geminiMessage(e Event, v gjson.Result) {
	e.Text = keep(v.Get("content"))
	switch {
	case v.Get("role").String() != "assistant":
		e.Kind = KindUser
	case v.Get("delta").Bool():
		if p.text.Len()+len(e.Text) > maxParts {
			p.wholeText()
		}
		e.Kind = KindDelta
		p.text.WriteString(e.Text)
		p.textAt = e.At
	default:
		p.wholeText()
		e.Kind = KindText
		p.last = e.Text
	}
	p.add(e)
}

// wholeText gives the text whose parts have come.
func (p *Parser) wholeText() {
	if p.text.Len() == 0 {
		return
	}
	p.last = p.text.String()
	p.text.Reset()
	p.add(Event{Kind: KindText, Name: "message", At: p.textAt, SessionID: p.session, Model: p.model, Text: p.last})
}

// geminiOutput is what came of a tool call.
func geminiOutput(v gjson.Result) *Tool {
	t := &Tool{ID: keep(v.Get("tool_id")), OK: v.Get("status").String() == "success", Result: raw(v.Get("output"))}
	if fault := v.Get("error"); !t.OK && fault.Exists() {
		t.Result = raw(fault)
		t.Denied = fault.Get("type").String() == "permission_denied"
	}
	return t
}

// geminiResult is the end of a call.
func (p *Parser) geminiResult(v gjson.Result) *Result {
	status := v.Get("status")
	stats := v.Get("stats")
	cached := stats.Get("cached").Int()
	r := &Result{
		Subtype: p.know(status), IsError: status.String() != "success", Text: p.last, Turns: 1,
		Duration: length(stats.Get("duration_ms").Int()),
		Usage: ace.Usage{
			InputTokens:     max(0, stats.Get("input_tokens").Int()-cached),
			OutputTokens:    stats.Get("output_tokens").Int(),
			CacheReadTokens: cached,
		},
	}
	if fault := v.Get("error.message"); fault.Exists() {
		r.Errors = []string{keep(fault)}
	}
	p.last = ""
	return r
}
