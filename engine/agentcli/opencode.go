package agentcli

import (
	"time"

	"acescope/engine/ace"
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

// openCodeLine is where the fields of a line, and of the part in it, stand.
type openCodeLine struct {
	kind, at, session, part, fault             value
	id, message, text, reason, tokens, cost    value
	tool, call, state                          value
	status, input, output, failure, start, end value
}

// take takes a field of the line, takePart one of its part, takeState one of a tool's state.
func (l *openCodeLine) take(key string, field value) bool {
	switch key {
	case "type":
		l.kind = field
	case "timestamp":
		l.at = field
	case "sessionID":
		l.session = field
	case "part":
		field.each(l.takePart)
	case "error":
		l.fault = field
	}
	return true
}

func (l *openCodeLine) takePart(key string, field value) bool {
	switch key {
	case "id":
		l.id = field
	case "messageID":
		l.message = field
	case "text":
		l.text = field
	case "reason":
		l.reason = field
	case "tokens":
		l.tokens = field
	case "cost":
		l.cost = field
	case "tool":
		l.tool = field
	case "callID":
		l.call = field
	case "state":
		field.each(l.takeState)
	}
	return true
}

func (l *openCodeLine) takeState(key string, field value) bool {
	switch key {
	case "status":
		l.status = field
	case "input":
		l.input = field
	case "output":
		l.output = field
	case "error":
		l.failure = field
	case "time":
		field.each(func(key string, field value) bool {
			switch key {
			case "start":
				l.start = field
			case "end":
				l.end = field
			}
			return true
		})
	}
	return true
}

// openCode reads a line of OpenCode's stream.
func (p *Parser) openCode(v value) bool {
	var l openCodeLine
	if !v.whole(l.take) {
		return false
	}
	begins := p.session == ""
	if l.session.exists() {
		p.again(&p.session, l.session)
	}
	e := Event{
		Name: p.know(l.kind), At: stamp(l.at), SessionID: p.session, MessageID: p.again(&p.message, l.message), UUID: keep(l.id),
	}
	if begins && p.session != "" {
		p.add(&Event{Kind: KindInit, Name: e.Name, At: e.At, SessionID: p.session, Init: &Init{}})
		p.sum.first = e.At
	}
	p.sum.last = e.At
	switch e.Name {
	case "step_start":
		e.Kind = KindStatus
		p.sum.reason = ""
	case "text":
		e.Kind, e.Text = KindText, keep(l.text)
		p.last = e.Text
	case "reasoning":
		e.Kind, e.Text = KindThinking, keep(l.text)
	case "tool_use":
		p.openCodeTool(&e, &l)
		return true
	case "step_finish":
		p.openCodeStep(&e, &l)
	case "error":
		p.openCodeError(&e, l.fault)
	default:
		e.Kind = KindOther
	}
	p.add(&e)
	return true
}

// openCodeTool gives a tool's call and its result: OpenCode tells of both when all is over.
func (p *Parser) openCodeTool(e *Event, l *openCodeLine) {
	id, start := keep(l.call), l.start.int()
	call := *e
	call.Kind = KindToolUse
	call.Tool = &Tool{ID: id, Name: p.know(l.tool), Args: raw(l.input)}
	if at := millis(start); !at.IsZero() {
		call.At = at
	}
	p.add(&call)
	e.Kind = KindToolResult
	e.Tool = &Tool{ID: id, OK: l.status.view() == "completed", Result: raw(l.output), Duration: length(l.end.int() - start)}
	if !e.Tool.OK {
		e.Tool.Result = raw(l.failure)
	}
	p.add(e)
}

// openCodeStep adds a step to the sum.
func (p *Parser) openCodeStep(e *Event, l *openCodeLine) {
	u := &ace.Usage{CostUSD: l.cost.float()}
	l.tokens.each(func(key string, field value) bool {
		switch key {
		case "input":
			u.InputTokens += field.int()
		case "output", "reasoning":
			u.OutputTokens += field.int()
		case "cache":
			u.InputTokens += field.get("write").int()
			u.CacheReadTokens = field.get("read").int()
		}
		return true
	})
	e.Kind, e.Usage, e.Text = KindStatus, u, p.know(l.reason)
	p.sum.usage = p.sum.usage.Add(*u)
	p.sum.count++
	p.sum.reason = e.Text
}

// openCodeError takes an error, of which there may be several.
func (p *Parser) openCodeError(e *Event, fault value) {
	e.Kind, e.Status = KindError, int(fault.get("data.statusCode").int())
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
	p.add(&Event{Kind: KindResult, Name: "end", At: s.last, SessionID: p.session, Result: &Result{
		Subtype: openCodeEnded, IsError: len(s.errors) > 0, Text: p.last, Errors: s.errors, Turns: s.count,
		Duration: max(0, s.last.Sub(s.first)), Usage: s.usage, StopReason: s.reason, Status: s.status,
	}})
	p.sum, p.last = steps{}, ""
}
