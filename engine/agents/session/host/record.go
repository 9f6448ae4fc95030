package host

import (
	"cmp"
	"encoding/json"
	"slices"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
)

// Bounds of a turn's result, in bytes, and of the tool names remembered.
const (
	maxOutText = 8 * ace.PreviewBytes
	maxText    = session.MaxText / 4
	maxSummary = 500
	maxNames   = 10_000
)

// record collects a turn's result from the agent's events.
type record struct {
	turn    int
	uuid    string // of the turn's message
	started bool   // events belong to this turn
	ended   bool   // there is a result
	judge   agentcli.Judge
	outList
	names map[string]string // of tools, by call id
}

// outList holds the newest outgoing messages of a turn.
type outList struct {
	list    []session.Out
	omitted int // messages dropped from list
}

func (l *outList) add(o session.Out) {
	l.list = append(slices.Clip(l.list), o)
	if excess := len(l.list) - session.MaxRecent; excess > 0 {
		l.omitted += excess
		l.list = slices.Clone(l.list[excess:])
	}
}

// newRecord starts a record. started is false if the agent may still report events of the
// previous turn.
func newRecord(in session.TurnInput, uuid string, started bool) *record {
	meter := agentcli.Meter{Cost: in.CostSeen, Usage: in.UsageSeen}
	return &record{
		turn: in.Turn, uuid: uuid, started: started, names: map[string]string{},
		judge: agentcli.Judge{Meter: meter},
	}
}

// add adds an event and reports whether it ends the turn.
func (r *record) add(e agentcli.Event) (ended bool) {
	if !r.started {
		r.started = e.Kind == agentcli.KindInit || e.Kind == agentcli.KindUser && e.UUID == r.uuid
		if !r.started {
			return false
		}
	}
	r.judge.Add(e)
	r.addOut(e)
	ended = e.Kind == agentcli.KindResult
	r.ended = r.ended || ended
	return ended
}

// addOut adds the outgoing message of an event. Events of subagents are only in the log.
func (r *record) addOut(e agentcli.Event) {
	if e.ParentID != "" {
		return
	}
	o := session.Out{Turn: r.turn, Text: ace.Cut(e.Text, maxOutText)}
	switch e.Kind {
	case agentcli.KindText:
		o.Kind = session.OutAssistant
		if o.Text == "" {
			return
		}
	case agentcli.KindError:
		o.Kind = session.OutError
	case agentcli.KindToolUse:
		o.Kind, o.Tool, o.CallID = session.OutToolUse, e.Tool.Name, e.Tool.ID
		if json.Valid(e.Tool.Args) {
			o.Args = ace.Preview(e.Tool.Args)
		}
		if len(r.names) < maxNames {
			r.names[e.Tool.ID] = e.Tool.Name
		}
	case agentcli.KindToolResult:
		o.Kind, o.Tool, o.CallID = session.OutToolResult, r.names[e.Tool.ID], e.Tool.ID
		o.OK = new(e.Tool.OK)
		o.Text = ace.Cut(e.Tool.ResultText(), ace.PreviewBytes)
	default:
		return
	}
	r.outList.add(o)
}

// result returns the turn's result without its status.
func (r *record) result(in session.TurnInput, o agentcli.Outcome) session.TurnResult {
	return session.TurnResult{
		Turn: in.Turn, AgentSessionID: cmp.Or(o.SessionID, in.AgentSessionID), Model: o.Model,
		Text: ace.Cut(o.Text, maxText), Messages: r.list,
		Omitted: r.omitted, Summary: ace.Cut(o.Sentence, maxSummary), Usage: o.Usage,
		CostSeen: r.judge.Meter.Cost, UsageSeen: r.judge.Meter.Usage,
	}
}
