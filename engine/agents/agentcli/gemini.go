package agentcli

// gemini parses a line of Gemini, which sends the model's text in parts only. The parser adds
// the whole text when anything else follows.
func (p *Parser) gemini(line object) {
	kind, role := text(line["type"]), line["role"].String()
	if kind != "message" || role != "assistant" {
		p.flushParts()
	}
	if kind == "init" {
		p.session, p.model = text(line["session_id"]), text(line["model"])
	}
	e := Event{Kind: KindOther, Name: kind, SessionID: p.session, Model: p.model}
	e.At = timestamp(line["timestamp"])
	switch kind {
	case "init":
		e.Kind, e.Init = KindInit, &Init{}
	case "message":
		e.Kind, e.Text = KindUser, text(line["content"])
		if role == "assistant" {
			e.Kind = p.geminiText(e, isTrue(line["delta"]))
		}
	case "tool_use":
		e.Kind = KindToolUse
		e.Tool = &Tool{ID: text(line["tool_id"]), Name: text(line["tool_name"]),
			Args: raw(line["parameters"])}
	case "tool_result":
		e.Kind, e.Tool = KindToolResult, geminiToolResult(line)
	case "error":
		e.Kind, e.Text = KindError, text(line["message"])
	case "result":
		e.Kind, e.Result = KindResult, p.geminiResult(line)
	}
	p.add(e)
}

// geminiText collects a text or a part of one, and returns the kind of its event.
func (p *Parser) geminiText(e Event, delta bool) Kind {
	if !delta {
		p.flushParts()
		p.lastText = e.Text
		return KindText
	}
	if p.parts.Len()+len(e.Text) > maxParts {
		p.flushParts()
	}
	p.parts.WriteString(e.Text)
	p.partsAt = e.At
	return KindDelta
}

// flushParts adds the text whose parts have come.
func (p *Parser) flushParts() {
	if p.parts.Len() == 0 {
		return
	}
	p.lastText = p.parts.String()
	p.parts.Reset()
	p.add(Event{
		Kind: KindText, Name: "message", At: p.partsAt, SessionID: p.session, Model: p.model,
		Text: p.lastText,
	})
}

func geminiToolResult(line object) *Tool {
	t := &Tool{ID: text(line["tool_id"]), OK: line["status"].String() == "success",
		Result: raw(line["output"])}
	if fault := raw(line["error"]); fault != nil && !t.OK {
		t.Result = fault
		t.Denied = line["error"].Get("type").String() == "permission_denied"
	}
	return t
}

func (p *Parser) geminiResult(line object) *Result {
	stats := line["stats"]
	r := &Result{Subtype: text(line["status"]), Text: p.lastText, Turns: 1}
	r.Duration = duration(stats.Get("duration_ms").Int())
	r.IsError = r.Subtype != "success"
	r.Usage.CacheReadTokens = stats.Get("cached").Int()
	r.Usage.InputTokens = max(0, stats.Get("input_tokens").Int()-r.Usage.CacheReadTokens)
	// The total has the thoughts too, which are output.
	r.Usage.OutputTokens = max(stats.Get("output_tokens").Int(),
		stats.Get("total_tokens").Int()-stats.Get("input_tokens").Int())
	if message := line["error"].Get("message"); raw(message) != nil {
		r.Errors = []string{text(message)}
	}
	p.lastText = ""
	return r
}
