package agentcli

import (
	"time"

	"acescope/engine/ace"

	"github.com/tidwall/gjson"
)

// openCodeEnded is the subtype of the result that the end of OpenCode's stream makes.
const openCodeEnded = "end"

// openCodeSteps sums up the steps so far, because OpenCode sends no result.
type openCodeSteps struct {
	usage       ace.Usage
	count       int
	reason      string // why the last step ended; "" while a step is open and before the first
	errors      []string
	status      int
	first, last time.Time
}

// openCode parses a line of OpenCode.
func (p *Parser) openCode(line object) {
	part := line["part"].Map()
	begins := p.session == ""
	if session := line["sessionID"]; session.Type != gjson.Null {
		p.session = text(session)
	}
	e := Event{
		Kind: KindOther, Name: text(line["type"]), At: timestamp(line["timestamp"]), SessionID: p.session,
		MessageID: text(part["messageID"]), UUID: text(part["id"]),
	}
	if begins && p.session != "" {
		p.add(Event{Kind: KindInit, Name: e.Name, At: e.At, SessionID: p.session, Init: &Init{}})
		p.steps.first = e.At
	}
	p.steps.last = e.At
	switch e.Name {
	case "step_start":
		e.Kind = KindStatus
		p.steps.reason = ""
	case "text":
		e.Kind, e.Text = KindText, text(part["text"])
		p.lastText = e.Text
	case "reasoning":
		e.Kind, e.Text = KindThinking, text(part["text"])
	case "tool_use":
		p.openCodeTool(e, part)
		return
	case "step_finish":
		e.Kind, e.Text, e.Usage = KindStatus, text(part["reason"]), openCodeUsage(part)
		p.steps.usage = p.steps.usage.Add(*e.Usage)
		p.steps.count++
		p.steps.reason = e.Text
	case "error":
		p.openCodeError(&e, line["error"])
	}
	p.add(e)
}

// openCodeTool adds a tool call and its result, which OpenCode reports together.
func (p *Parser) openCodeTool(e Event, part object) {
	id, state := text(part["callID"]), part["state"]
	start, end := state.Get("time.start").Int(), state.Get("time.end").Int()
	call := e
	call.Kind = KindToolUse
	call.Tool = &Tool{ID: id, Name: text(part["tool"]), Args: raw(state.Get("input"))}
	if at := millis(start); !at.IsZero() {
		call.At = at
	}
	p.add(call)
	e.Kind = KindToolResult
	e.Tool = &Tool{ID: id, OK: true, Result: raw(state.Get("output")), Duration: duration(end - start)}
	if state.Get("status").String() != "completed" {
		e.Tool.OK, e.Tool.Result = false, raw(state.Get("error"))
	}
	p.add(e)
}

func openCodeUsage(part object) *ace.Usage {
	tokens := part["tokens"]
	return &ace.Usage{
		InputTokens:     tokens.Get("input").Int() + tokens.Get("cache.write").Int(),
		OutputTokens:    tokens.Get("output").Int() + tokens.Get("reasoning").Int(),
		CacheReadTokens: tokens.Get("cache.read").Int(),
		CostUSD:         dollars(part["cost"]),
	}
}

// openCodeError reads an error; a call may have several.
func (p *Parser) openCodeError(e *Event, fault gjson.Result) {
	e.Kind, e.Status = KindError, int(fault.Get("data.statusCode").Int())
	e.Text = firstText(fault.Get("data.message"), fault.Get("message"), fault.Get("name"))
	p.steps.status = e.Status
	if len(p.steps.errors) < 10 {
		p.steps.errors = append(p.steps.errors, e.Text)
	}
}

// openCodeEnd adds the result that OpenCode does not send, if there was an error or the last
// step ended without calling tools.
func (p *Parser) openCodeEnd() {
	s := p.steps
	ended := s.reason != "" && s.reason != "tool-calls"
	if !ended && len(s.errors) == 0 {
		return
	}
	p.add(Event{Kind: KindResult, Name: "end", At: s.last, SessionID: p.session, Result: &Result{
		Subtype: openCodeEnded, IsError: len(s.errors) > 0, Text: p.lastText, Errors: s.errors,
		Turns:    s.count,
		Duration: max(0, s.last.Sub(s.first)), Usage: s.usage, StopReason: s.reason, Status: s.status,
	}})
	p.steps, p.lastText = openCodeSteps{}, ""
}
