package agentcli

// geminiLine is where the fields of a line stand.
type geminiLine struct {
	kind, role, content, delta, session, model value
	id, name, parameters, status, output       value
	message, fault, stats, at                  value
}

func (l *geminiLine) take(key string, field value) bool {
	switch key {
	case "type":
		l.kind = field
	case "timestamp":
		l.at = field
	case "role":
		l.role = field
	case "content":
		l.content = field
	case "delta":
		l.delta = field
	case "session_id":
		l.session = field
	case "model":
		l.model = field
	case "tool_id":
		l.id = field
	case "tool_name":
		l.name = field
	case "parameters":
		l.parameters = field
	case "status":
		l.status = field
	case "output":
		l.output = field
	case "message":
		l.message = field
	case "error":
		l.fault = field
	case "stats":
		l.stats = field
	}
	return true
}

// gemini reads a line of Gemini's stream. It sends what the model says in parts only; the
// whole comes when something else does.
func (p *Parser) gemini(v value) bool {
	var l geminiLine
	if !v.whole(l.take) {
		return false
	}
	kind := p.know(l.kind)
	if kind != "message" || l.role.view() != "assistant" {
		p.wholeText()
	}
	e := Event{Name: kind, At: stamp(l.at), SessionID: p.session, Model: p.model}
	switch kind {
	case "init":
		e.Kind, e.Init = KindInit, &Init{}
		e.SessionID, e.Model = p.again(&p.session, l.session), p.again(&p.model, l.model)
	case "message":
		p.geminiMessage(&e, &l)
		return true
	case "tool_use":
		e.Kind = KindToolUse
		e.Tool = &Tool{ID: keep(l.id), Name: p.know(l.name), Args: raw(l.parameters)}
	case "tool_result":
		e.Kind, e.Tool = KindToolResult, l.came()
	case "error":
		e.Kind, e.Text = KindError, keep(l.message)
	case "result":
		e.Kind, e.Result = KindResult, p.geminiResult(&l)
	default:
		e.Kind = KindOther
	}
	p.add(&e)
	return true
}

// geminiMessage gives the event of a message, or of a part of one.
func (p *Parser) geminiMessage(e *Event, l *geminiLine) {
	e.Text = keep(l.content)
	switch {
	case l.role.view() != "assistant":
		e.Kind = KindUser
	case l.delta.isTrue():
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
	p.add(&Event{Kind: KindText, Name: "message", At: p.textAt, SessionID: p.session, Model: p.model, Text: p.last})
}

// came is what came of a tool call.
func (l *geminiLine) came() *Tool {
	t := &Tool{ID: keep(l.id), OK: l.status.view() == "success", Result: raw(l.output)}
	if !t.OK && l.fault.exists() {
		t.Result = raw(l.fault)
		t.Denied = l.fault.get("type").view() == "permission_denied"
	}
	return t
}

// geminiResult is the end of a call.
func (p *Parser) geminiResult(l *geminiLine) *Result {
	r := &Result{Subtype: p.know(l.status), IsError: l.status.view() != "success", Text: p.last, Turns: 1}
	l.stats.each(func(key string, field value) bool {
		switch key {
		case "input_tokens":
			r.Usage.InputTokens = field.int()
		case "output_tokens":
			r.Usage.OutputTokens = field.int()
		case "cached":
			r.Usage.CacheReadTokens = field.int()
		case "duration_ms":
			r.Duration = length(field.int())
		}
		return true
	})
	r.Usage.InputTokens = max(0, r.Usage.InputTokens-r.Usage.CacheReadTokens)
	if message := l.fault.get("message"); message.exists() {
		r.Errors = []string{keep(message)}
	}
	p.last = ""
	return r
}
