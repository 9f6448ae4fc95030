package transcript

import (
	"encoding/json"

	"acescope/engine/agents/agentcli"
)

// geminiEvents converts the lines of a chat. It remembers what it returned of a message, which may be written
// again.
type geminiEvents struct {
	said   newest[int] // texts of a message, by its id
	called newest[bool]
	eventList
}

func (c *geminiEvents) events(raw []byte) []agentcli.Event {
	var l object
	if !l.parse(raw) {
		return []agentcli.Event{garbage(raw)}
	}
	c.out, c.base = nil, agentcli.Event{SessionID: c.base.SessionID}
	switch {
	case len(l.bare("id")) > 0:
		c.message(l)
	case len(l.get("$rewindTo")) > 0:
		c.add(agentcli.KindStatus, "rewound", "")
	default:
		if id := string(l.bare("sessionId")); id != "" {
			c.base.SessionID = id
		}
		set := l.child("$set")
		for _, list := range [][]byte{l.get("messages"), set.get("messages")} {
			var m object
			scan(list, '[', func(_, v []byte) {
				if m.parse(v) {
					c.message(m)
				}
			})
		}
	}
	if len(c.out) == 0 {
		c.add(agentcli.KindOther, string(l.bare("type")), "")
	}
	return c.out
}

func (c *geminiEvents) message(m object) {
	c.base.At, c.base.MessageID, c.base.Model = m.time(), string(m.bare("id")), ""
	id := idHash(m.bare("id"))
	content := contentText(m.get("content"), MaxLine)
	seen, _ := c.said.get(id)
	fresh := len(content) > 0 && seen == 0
	if fresh {
		c.said.put(id, 1)
	}
	switch kind := string(m.bare("type")); {
	case kind == "gemini":
		c.base.Model = string(m.bare("model"))
		c.answer(m, content, fresh)
	case !fresh:
	case kind == "user" && isGeminiPrompt(content):
		c.add(agentcli.KindUser, "", content)
	case kind == "user":
		c.add(agentcli.KindStatus, "note", content)
	case kind == "error":
		c.add(agentcli.KindError, "", content)
	default:
		c.add(agentcli.KindStatus, kind, content)
	}
}

func (c *geminiEvents) answer(m object, content string, fresh bool) {
	thoughts := idHash(append([]byte("thoughts "), m.bare("id")...))
	if _, seen := c.said.get(thoughts); !seen {
		var thought object
		scan(m.get("thoughts"), '[', func(_, v []byte) {
			if thought.parse(v) {
				c.said.put(thoughts, 1)
				c.add(agentcli.KindThinking, "", text(thought.get("subject"), MaxLine)+"\n"+
					text(thought.get("description"), MaxLine))
			}
		})
	}
	if fresh {
		c.add(agentcli.KindText, "", content)
	}
	geminiCalls(m, func(call object) { c.call(call) })
}

func (c *geminiEvents) call(call object) {
	id := idHash(call.bare("id"))
	done, known := c.called.get(id)
	if !known {
		c.called.put(id, false)
		c.add(agentcli.KindToolUse, "", "").Tool = &agentcli.Tool{
			ID: string(call.bare("id")), Name: string(call.bare("name")), Args: compactJSON(call.get("args")),
		}
	}
	how, ended := geminiOutcome(call)
	if !ended || done {
		return
	}
	c.called.put(id, true)
	output, _ := json.Marshal(geminiOutput(call)) // a string has no error
	e := c.add(agentcli.KindToolResult, "", "")
	if at := call.time(); !at.IsZero() {
		e.At = at
	}
	e.Tool = &agentcli.Tool{
		ID: string(call.bare("id")), OK: how == succeeded, Denied: how == refused, Result: output,
	}
}
