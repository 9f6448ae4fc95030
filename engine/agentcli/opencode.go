package agentcli

import (
	"time"

	"acescope/engine/ace"
	"github.com/tidwall/gjson"
)

// openCodeEnded is the subtype of the result that the end of OpenCode's stream makes.
const openCodeEnded = "end"

// steps is what OpenCode's steps came to so far. OpenCode has no event for the end.
type steps struct {
	usage       ace.Usage
	count       int
	reason      string // why the last step ended; "" while one is open, and before the first
	errors      []string
	status      int
	first, last time.Time
}

// openCode reads a line of OpenCode's stream.
func (p *Parser) openCode(v gjson.Result) {
	kind := v.Get("type").String()
	part := v.Get("part")
	begins := p.session == ""
	if id := v.Get("sessionID"); id.Exists() {
		p.session = p.know(id)
	}
	e := Event{
		Name: p.intern(kind), At: stamp(v.Get("timestamp")), SessionID: p.session,
		MessageID: p.know(part.Get("messageID")), UUID: keep(part.Get("id")),
	}
	if begins && p.session != "" {
		p.add(Event{Kind: KindInit, Name: e.Name, At: e.At, SessionID: p.session, Init: &Init{}})
		p.sum.first = e.At
	}
	p.sum.last = e.At
	switch kind {
	case "step_start":
		e.Kind = KindStatus
		p.sum.reason = ""
	case "text":
		e.Kind, e.Text = KindText, keep(part.Get("text"))
		p.last = e.Text
	case "reasoning":
		e.Kind, e.Text = KindThinking, keep(part.Get("text"))
	case "tool_use":
		p.openCodeTool(e, part)
		return
	case "step_finish":
		p.openCodeStep(&e, part)
	case "error":
		p.openCodeError(&e, v.Get("error"))
	default:
		e.Kind = KindOther
	}
	p.add(e)
}

// openCodeTool gives a tool's call and its result: OpenCode tells of both when all is over.
func (p *Parser) openCodeTool(e Event, part gjson.Result) {
	id := keep(part.Get("callID"))
	state := part.Get("state")
	call := e
	call.Kind = KindToolUse
	call.Tool = &Tool{ID: id, Name: p.know(part.Get("tool")), Args: raw(state.Get("input"))}
	if at := millis(state.Get("time.start").Int()); !at.IsZero() {
		call.At = at
	}
	p.add(call)
	e.Kind = KindToolResult
	e.Tool = &Tool{ID: id, OK: state.Get("status").String() == "completed", Result: raw(state.Get("output"))}
	if !e.Tool.OK {
		e.Tool.Result = raw(state.Get("error"))
	}
	e.Tool.Duration = length(state.Get("time.end").Int() - state.Get("time.start").Int())
	p.add(e)
}

// openCodeStep adds a step to the sum.
func (p *Parser) openCodeStep(e *Event, part gjson.Result) {
	tokens := part.Get("tokens")
	u := ace.Usage{
		InputTokens:     tokens.Get("input").Int() + tokens.Get("cache.write").Int(),
		OutputTokens:    tokens.Get("output").Int() + tokens.Get("reasoning").Int(),
		CacheReadTokens: tokens.Get("cache.read").Int(),
		CostUSD:         part.Get("cost").Float(),
	}
	e.Kind, e.Usage, e.Text = KindStatus, &u, p.know(part.Get("reason"))
	p.sum.usage = p.sum.usage.Add(u)
	p.sum.count++
	p.sum.reason = e.Text
}

// openCodeError takes an error, of which there may be several.
func (p *Parser) openCodeError(e *Event, fault gjson.Result) {
	e.Kind, e.Status = KindError, int(fault.Get("data.statusCode").Int())
	e.Text = firstText(fault, "data.message", "message", "name")
	p.sum.status = e.Status
	if len(p.sum.errors) < 10 {
		p.sum.errors = append(p.sum.errors, e.Text)
	}
}

// openCodeEnd makes the result that OpenCode does not send: where it failed, and where its
// last step ended without wanting another.
func (p *Parser) openCodeEnd() {
	s := p.sum
	ended := s.reason != "" && s.reason != "tool-calls"
	if !ended && len(s.errors) == 0 {
		return
	}
	p.add(Event{Kind: KindResult, Name: "end", At: s.last, SessionID: p.session, Result: &Result{
		Subtype: openCodeEnded, IsError: len(s.errors) > 0, Text: p.last, Errors: s.errors, Turns: s.count,
		Duration: max(0, s.last.Sub(s.first)), Usage: s.usage, StopReason: s.reason, Status: s.status,
	}})
	p.sum, p.last = steps{}, ""
}
