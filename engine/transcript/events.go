package transcript

import (
	"bytes"
	"encoding/json"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
)

// Events is what a line of a transcript tells, as the events of the CLI's stream. It gives
// at least one event for each line: [agentcli.KindGarbage] for what is no JSON object,
// [agentcli.KindOther] for what says nothing of the conversation. Results of calls are as
// the model got them; see [ToolEvents] for what the tool itself gave. Raw is not set.
func Events(raw []byte) []agentcli.Event {
	var l line
	if !l.parse(raw) {
		return []agentcli.Event{{Kind: agentcli.KindGarbage, Text: string(raw[:min(len(raw), maxPrompt)])}}
	}
	c := converter{l: &l, base: agentcli.Event{At: l.time(), SessionID: string(l.session), UUID: string(l.uuid)}}
	if l.sidechain {
		if c.base.ParentID = string(l.agent); c.base.ParentID == "" {
			c.base.ParentID = unnamed
		}
	}
	switch string(l.kind) {
	case "user":
		c.user()
	case "assistant":
		c.assistant()
	case "system":
		c.system()
	}
	if len(c.out) == 0 {
		c.add(agentcli.KindOther, func(e *agentcli.Event) { e.Name = string(l.kind) })
	}
	return c.out
}

// Filler tells whether the events of a line are what the CLI says in the model's place when it
// is resumed after a turn that was broken off. It is no answer.
func Filler(events []agentcli.Event) bool {
	return events[0].Model == synthetic && events[0].Kind != agentcli.KindError
}

// unnamed is the subagent of older versions' lines, which do not tell which one it is.
const unnamed = "subagent"

type converter struct {
	l    *line
	base agentcli.Event
	out  []agentcli.Event
}

func (c *converter) add(kind agentcli.Kind, set func(*agentcli.Event)) {
	e := c.base
	e.Kind = kind
	set(&e)
	c.out = append(c.out, e)
}

// user gives what a person says, and what tools gave back. What the CLI says in a person's
// name is a status with its kind as its name.
func (c *converter) user() {
	blocks(c.l.content, func(b *block) {
		switch {
		case b.resultOf():
			c.add(agentcli.KindToolResult, func(e *agentcli.Event) { e.Tool = c.result(b) })
		case string(b.kind) == "text":
			c.spoken(text(b.text, MaxLine))
		case len(b.kind) > 0:
			c.add(agentcli.KindUser, func(e *agentcli.Event) { e.Text = "[" + string(b.kind) + "]" })
		}
	})
}

func (c *converter) spoken(t string) {
	status := func(name, said string) {
		c.add(agentcli.KindStatus, func(e *agentcli.Event) { e.Name, e.Text = name, said })
	}
	switch kind := speechOf(t); {
	case c.l.compact:
		status("compact_summary", t)
	case kind == interrupted:
		status("interrupted", t)
	case kind == command:
		status("command", commandOf(t))
	case c.l.meta, kind == machine:
		status("note", t)
	default:
		c.add(agentcli.KindUser, func(e *agentcli.Event) { e.Text = t })
	}
}

func (c *converter) result(b *block) *agentcli.Tool {
	t := &agentcli.Tool{ID: string(b.of), OK: !b.failed, Result: content(b.content)}
	t.Denied = b.failed && denied(said(b.content, maxVerdict))
	t.Duration, _ = c.l.told()
	return t
}

// content is a value as JSON of its own, nil where the line has none or a broken one.
func content(v []byte) json.RawMessage {
	if len(v) == 0 || !json.Valid(v) {
		return nil
	}
	return bytes.Clone(v)
}

func (c *converter) assistant() {
	l := c.l
	c.base.MessageID, c.base.Model = string(l.id), string(l.model)
	blocks(l.content, func(b *block) {
		switch {
		case b.use():
			c.add(agentcli.KindToolUse, func(e *agentcli.Event) {
				e.Tool = &agentcli.Tool{ID: string(b.id), Name: string(b.name), Args: content(b.input)}
			})
		case b.resultOf():
			c.add(agentcli.KindToolResult, func(e *agentcli.Event) { e.Tool = c.result(b) })
		case string(b.kind) == "text" && l.failed:
			c.add(agentcli.KindError, func(e *agentcli.Event) { e.Text = text(b.text, MaxLine) })
		case string(b.kind) == "text":
			c.add(agentcli.KindText, func(e *agentcli.Event) { e.Text = text(b.text, MaxLine) })
		case string(b.kind) == "thinking", string(b.kind) == "redacted_thinking":
			c.add(agentcli.KindThinking, func(e *agentcli.Event) { e.Text = text(b.text, MaxLine) })
		}
	})
	if n := len(c.out); n > 0 && len(l.usage) > 0 {
		t := tokensOf(l.usage)
		c.out[n-1].Usage = &ace.Usage{InputTokens: t.Input + t.CacheWrite(), OutputTokens: t.Output, CacheReadTokens: t.CacheRead}
	}
}

func (c *converter) system() {
	l := c.l
	kind := agentcli.KindStatus
	if string(l.level) == "error" || string(l.subtype) == "api_error" {
		kind = agentcli.KindError
	}
	c.add(kind, func(e *agentcli.Event) { e.Name, e.Text = string(l.subtype), text(l.note, MaxLine) })
}

// Source is what [ToolEvents] names as the source of its events.
const Source = "transcript"

// ToolEvents are the tool calls and results of a line as an observer would have told them,
// in the order of the line: a call with its arguments, a result with what the tool gave,
// as a hook gets it, and where it failed with its error. A call's event id is its id; that
// of its result has "/result" behind it.
func ToolEvents(raw []byte) (out []ace.ToolEvent) {
	var l line
	if !l.parse(raw) {
		return nil
	}
	names := func(e ace.ToolEvent) ace.ToolEvent {
		e.At, e.SessionID, e.Source = l.time(), string(l.session), Source
		return e
	}
	results := 0
	blocks(l.content, func(b *block) {
		switch {
		case b.use():
			out = append(out, names(ace.ToolEvent{EventID: string(b.id), CallID: string(b.id), Kind: ace.KindToolUse, Name: string(b.name), Args: content(b.input)}))
		case b.resultOf():
			results++
			out = append(out, names(resultEvent(&l, b)))
		}
	})
	if results == 1 { // the CLI's own account is of the only result
		ownAccount(&l, out)
	}
	return out
}

func resultEvent(l *line, b *block) ace.ToolEvent {
	ok := !b.failed
	e := ace.ToolEvent{EventID: string(b.of) + "/result", CallID: string(b.of), Kind: ace.KindToolResult, Result: content(b.content), OK: &ok}
	if b.failed {
		why := said(b.content, maxPath)
		accepted := !denied(why)
		e.Accepted, e.Error, e.Result = &accepted, why, nil
	}
	return e
}

// ownAccount puts what the tool gave in place of what the model got of it.
func ownAccount(l *line, out []ace.ToolEvent) {
	for i := range out {
		e := &out[i]
		if e.Kind != ace.KindToolResult {
			continue
		}
		if r := content(l.result); r != nil && e.Error == "" {
			e.Result = r
		}
		if took, _ := l.told(); took > 0 {
			e.DurationMS = float64(took) / float64(time.Millisecond)
		}
	}
}
