package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/internal/redact"
)

// Events converts a line to the events of the CLI's stream, at least one:
// [agentcli.KindGarbage] for a line that is not a JSON object, [agentcli.KindOther] for a line
// that is not part of the conversation. Tool results are as the model got them. Raw is not set.
func Events(raw []byte) []agentcli.Event {
	var l line
	if !l.parse(raw) {
		return []agentcli.Event{garbage(raw)}
	}
	c := converter{l: &l}
	c.base = agentcli.Event{At: l.time(), SessionID: string(l.bare("sessionId")), UUID: string(l.bare("uuid"))}
	if l.isTrue("isSidechain") {
		c.base.ParentID = cmp.Or(string(l.bare("agentId")), "subagent") // older versions do not name it
	}
	kind := string(l.bare("type"))
	switch kind {
	case "user":
		c.user()
	case "assistant":
		c.assistant()
	case "system":
		c.system()
	}
	if len(c.out) == 0 {
		c.add(agentcli.KindOther, kind, "")
	}
	return c.out
}

// garbage returns the event of a line that is not a JSON object.
func garbage(raw []byte) agentcli.Event {
	return agentcli.Event{Kind: agentcli.KindGarbage, Text: string(raw[:min(len(raw), maxPrompt)])}
}

// Redacted returns a line without secrets, for a reader that shows it.
func Redacted(raw []byte) []byte { return redact.OfProcess().Line(raw) }

// IsFiller reports whether the events are the text that the CLI inserts in place of the model's
// when it resumes an interrupted turn. It is not an answer.
func IsFiller(events []agentcli.Event) bool {
	return events[0].Model == synthetic && events[0].Kind != agentcli.KindError
}

// eventList holds the events of a line. The base has what they have in common.
type eventList struct {
	base agentcli.Event
	out  []agentcli.Event
}

func (c *eventList) add(kind agentcli.Kind, name, text string) *agentcli.Event {
	e := c.base
	e.Kind, e.Name, e.Text = kind, name, text
	c.out = append(c.out, e)
	return &c.out[len(c.out)-1]
}

type converter struct {
	eventList
	l *line
}

// user adds the texts of the user and tool results. A text that the CLI generated becomes a
// status named after its kind.
func (c *converter) user() {
	blocks(c.l.message.get("content"), func(b object) {
		switch {
		case b.isResult():
			c.add(agentcli.KindToolResult, "", "").Tool = c.result(b)
		case b.is("text"):
			c.userText(text(b.get("text"), MaxLine))
		default:
			c.add(agentcli.KindUser, "", "["+string(b.bare("type"))+"]")
		}
	})
}

func (c *converter) userText(t string) {
	switch kind := classify(t); {
	case c.l.isTrue("isCompactSummary"):
		c.add(agentcli.KindStatus, "compact_summary", t)
	case kind == interrupted:
		c.add(agentcli.KindStatus, "interrupted", t)
	case kind == command:
		c.add(agentcli.KindStatus, "command", typedCommand(t))
	case c.l.isTrue("isMeta"), kind == generated:
		c.add(agentcli.KindStatus, "note", t)
	default:
		c.add(agentcli.KindUser, "", t)
	}
}

func (c *converter) result(b object) *agentcli.Tool {
	content, failed := b.get("content"), b.isTrue("is_error")
	t := &agentcli.Tool{ID: string(b.bare("tool_use_id")), OK: !failed, Result: cloneJSON(content)}
	t.Denied = failed && denied(contentText(content, maxVerdict))
	t.Duration, _ = c.l.resultInfo()
	return t
}

// cloneJSON copies a value; nil if it is missing or invalid.
func cloneJSON(v []byte) json.RawMessage {
	if !json.Valid(v) {
		return nil
	}
	return bytes.Clone(v)
}

// compactJSON copies a value without white space; nil if it is missing or invalid.
func compactJSON(v []byte) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, v) != nil {
		return nil
	}
	return out.Bytes()
}

func (c *converter) assistant() {
	l := c.l
	c.base.MessageID, c.base.Model = string(l.message.bare("id")), string(l.message.bare("model"))
	failed := l.isTrue("isApiErrorMessage")
	blocks(l.message.get("content"), func(b object) {
		switch {
		case b.isCall():
			c.add(agentcli.KindToolUse, "", "").Tool = &agentcli.Tool{
				ID: string(b.bare("id")), Name: string(b.bare("name")), Args: cloneJSON(b.get("input")),
			}
		case b.isResult():
			c.add(agentcli.KindToolResult, "", "").Tool = c.result(b)
		case b.is("text") && failed:
			c.add(agentcli.KindError, "", text(b.get("text"), MaxLine))
		case b.is("text"):
			c.add(agentcli.KindText, "", text(b.get("text"), MaxLine))
		case b.is("thinking"), b.is("redacted_thinking"):
			c.add(agentcli.KindThinking, "", text(b.get("thinking"), MaxLine))
		}
	})
	if n, usage := len(c.out), l.message.get("usage"); n > 0 && len(usage) > 0 {
		t := tokensOf(usage)
		c.out[n-1].Usage = &ace.Usage{
			InputTokens: t.Input + t.CacheWrite(), OutputTokens: t.Output, CacheReadTokens: t.CacheRead,
		}
	}
}

func (c *converter) system() {
	l := c.l
	kind := agentcli.KindStatus
	if l.isError() {
		kind = agentcli.KindError
	}
	c.add(kind, string(l.bare("subtype")), text(l.get("content"), MaxLine))
}
