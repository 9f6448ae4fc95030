package host

import (
	"encoding/json"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/session"
)

// record is what is known of a turn from the agent's events.
type record struct {
	turn  int
	uuid  string // of the turn's message
	begun bool   // what comes belongs to the turn
	ended bool   // there is a result
	judge agentcli.Judge
	out   []session.Out
	left  int               // of what was said, for want of room
	names map[string]string // of tools, by the id of their calls
}

// newRecord begins a turn. begun is false where the agent may still say something about the
// turn before.
func newRecord(in session.TurnInput, uuid string, begun bool) *record {
	return &record{turn: in.Turn, uuid: uuid, begun: begun, names: map[string]string{},
		judge: agentcli.Judge{Meter: agentcli.Meter{Cost: in.CostSeen, Usage: in.UsageSeen}}}
}

// add takes an event, and tells whether the turn has ended with it.
func (r *record) add(e agentcli.Event) (ended bool) {
	if !r.begun {
		r.begun = e.Kind == agentcli.KindInit || e.Kind == agentcli.KindUser && e.UUID == r.uuid
		if !r.begun {
			return false
		}
	}
	r.judge.Add(e)
	r.tell(e)
	r.ended = r.ended || e.Kind == agentcli.KindResult
	return e.Kind == agentcli.KindResult
}

// tell keeps what the agent itself says and does; its subagents are in the log.
func (r *record) tell(e agentcli.Event) {
	if e.ParentID != "" {
		return
	}
	o := session.Out{Turn: r.turn, Text: ace.Cut(e.Text, maxOutText)}
	switch e.Kind {
	case agentcli.KindText:
		o.Kind = session.OutAssistant
	case agentcli.KindError:
		o.Kind = session.OutError
	case agentcli.KindToolUse:
		o.Kind, o.Tool, o.CallID, o.Args = session.OutToolUse, e.Tool.Name, e.Tool.ID, ace.Preview(valid(e.Tool.Args))
		if len(r.names) < maxNames {
			r.names[e.Tool.ID] = e.Tool.Name
		}
	case agentcli.KindToolResult:
		ok := e.Tool.OK
		o.Kind, o.Tool, o.CallID, o.OK = session.OutToolEnd, r.names[e.Tool.ID], e.Tool.ID, &ok
		o.Text = ace.Cut(textOf(e.Tool.Result), ace.PreviewBytes)
	default:
		return
	}
	if o.Kind == session.OutAssistant && o.Text == "" {
		return
	}
	r.out = append(r.out, o)
	if over := len(r.out) - session.MaxRecent; over > 0 {
		r.left += over
		r.out = append([]session.Out{}, r.out[over:]...)
	}
}

// Bounds of what a turn's result holds, in bytes, and of names of calls that are remembered.
const (
	maxOutText = 8 * ace.PreviewBytes
	maxText    = session.MaxText / 4
	maxSummary = 500
	maxNames   = 10_000
)

// result is the turn's result, but for how it ended.
func (r *record) result(in session.TurnInput, o agentcli.Outcome) session.TurnResult {
	t := session.TurnResult{Turn: in.Turn, AgentSessionID: o.SessionID, Model: o.Model, Text: ace.Cut(o.Text, maxText), Messages: r.out,
		Omitted: r.left, Summary: ace.Cut(o.Sentence, maxSummary), Usage: o.Usage, CostSeen: r.judge.Meter.Cost, UsageSeen: r.judge.Meter.Usage}
	if t.AgentSessionID == "" {
		t.AgentSessionID = in.AgentSessionID
	}
	return t
}

// valid is JSON as it is, and nothing of what is none.
func valid(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return nil
	}
	return raw
}

// textOf is the text of a tool's result: a string, or blocks of which some are text.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return string(raw)
	}
	var parts []string
	for _, b := range blocks {
		if b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}
