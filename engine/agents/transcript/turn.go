package transcript

import (
	"context"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
)

// Turn is a turn of a session as its transcript records it.
type Turn struct {
	Started bool // the transcript has a message of the turn
	Ended   bool // and certainly the end of the answer
	// Interrupted and Failed describe an end that is not an answer.
	Interrupted bool
	Failed      string
	Text        string // the last text
	Model       string
	Usage       ace.Usage // of all attempts, see [Spent]
	Counted     float64   // the cost of the session from which the agent's next process counts
	Oversized   int       // skipped lines of the transcript
}

// ReadTurn reads a turn from a transcript that no process is writing, at list prices. seen is the
// known cost of the session before the turn. starts reports whether a line at an offset is a
// message of the turn: the first one, or one that continues what the first one started. each, if
// set, is called with the events of the turn, except those of subagents.
func ReadTurn(
	ctx context.Context, path string, seen float64,
	starts func(raw []byte, at int64) bool, each func(agentcli.Event),
) (Turn, error) {
	s := turnReader{each: each, spent: NewSpent(price.Shipped(), seen)}
	p, err := NewReader(path).Read(ctx, 0, nil, func(raw []byte, at int64) {
		switch {
		case s.spent.Count(raw):
		case starts(raw, at):
			s.Turn = Turn{Started: true, Model: s.Model}
			s.replied, s.open = false, map[string]bool{}
			s.spent.Add(raw)
		case s.Started:
			s.add(raw)
		}
	})
	t := s.Turn
	t.Counted, t.Oversized = s.spent.Counted, p.Oversized
	if t.Started {
		answered := s.spent.Ended() || t.Failed != "" && !s.spent.Summary().Unfinished
		t.Ended = t.Interrupted || s.replied && answered && len(s.open) == 0
		t.Usage = s.spent.Usage()
	}
	return t, err
}

type turnReader struct {
	Turn
	each    func(agentcli.Event)
	spent   *Spent
	replied bool            // the agent replied to the last message of the turn
	open    map[string]bool // calls without a result
}

func (s *turnReader) add(raw []byte) {
	events := Events(raw)
	if IsFiller(events) {
		return
	}
	s.spent.Add(raw)
	for _, e := range events {
		if e.ParentID != "" || e.Kind == agentcli.KindError && e.Model == "" { // the CLI retried the call
			continue
		}
		if e.Model != "" {
			s.replied = true
			if e.Model != synthetic {
				s.Model = e.Model
			}
		}
		switch e.Kind {
		case agentcli.KindText:
			s.Text = e.Text
		case agentcli.KindError:
			s.Text, s.Failed = e.Text, e.Text
		case agentcli.KindToolUse:
			if len(s.open) < maxSeen {
				s.open[e.Tool.ID] = true
			}
		case agentcli.KindToolResult:
			delete(s.open, e.Tool.ID)
		case agentcli.KindStatus:
			s.Interrupted = s.Interrupted || e.Name == "interrupted"
		}
		if s.each != nil {
			s.each(e)
		}
	}
}
