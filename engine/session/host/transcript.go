package host

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/price"
	"acescope/engine/session"
	"acescope/engine/transcript"
)

// remembered is what an agent's own transcript tells of a turn.
type remembered struct {
	Exists bool // there is a transcript of the conversation
	Begun  bool // the turn's message is in it
	Ended  bool // and so is the end of the answer
	// Interrupted and Failed are of an end that was not the agent's.
	Interrupted bool
	Failed      string
	Text        string // what was said last
	Model       string
	Messages    []session.Out
	Omitted     int
	// Usage is of the turn, all attempts of it, as [transcript.Spent] counts.
	Usage ace.Usage
	// Counted is the conversation's cost that the agent's next process counts on from.
	Counted float64
}

// memory reads what an agent remembers of a turn whose message bears one of the uuids.
type memory interface {
	turn(ctx context.Context, in session.TurnInput, uuids []string) (remembered, error)
}

// transcripts is the memory of Claude Code.
type transcripts struct{ config string }

// memory is that of Claude Code's processes as this host starts them.
func (h *Host) memory(adapter agentcli.Adapter) memory {
	return transcripts{transcript.ConfigDir(h.environ(adapter, agentcli.Command{}))}
}

func (t transcripts) turn(ctx context.Context, in session.TurnInput, uuids []string) (remembered, error) {
	id := agentSession(in)
	if t.config == "" || !agentcli.ValidSessionID(id) {
		return remembered{}, nil
	}
	path, err := transcript.Find(t.config, id)
	if err != nil || path == "" {
		return remembered{}, err
	}
	s := seeker{turn: in.Turn, spent: transcript.NewSpent(price.Shipped(), in.CostSeen)}
	for _, uuid := range uuids {
		s.uuids = append(s.uuids, []byte(uuid))
	}
	s.Exists = true
	if _, err := transcript.NewReader(path, nil).Read(ctx, 0, nil, func(raw []byte, _ int64) { s.add(raw) }); err != nil {
		return remembered{}, fmt.Errorf("transcript: %w", err)
	}
	return s.sum(), nil
}

// seeker looks for a turn in the lines of a transcript.
type seeker struct {
	remembered
	turn   int
	uuids  [][]byte          // of the turn's messages
	spoke  bool              // since the last of them the agent said something
	open   map[string]bool   // calls without a result
	spent  *transcript.Spent // in the turn
	record record
}

// synthetic is the model of what the CLI says in the model's place.
const synthetic = "<synthetic>"

func (s *seeker) add(raw []byte) {
	if s.spent.Count(raw) {
		return
	}
	mine := slices.ContainsFunc(s.uuids, func(uuid []byte) bool { return bytes.Contains(raw, uuid) })
	if !s.Begun && !mine {
		return
	}
	events := transcript.Events(raw)
	if first := events[0]; mine && slices.ContainsFunc(s.uuids, func(uuid []byte) bool { return string(uuid) == first.UUID }) {
		s.begin(raw)
		return
	}
	if s.Begun {
		s.say(raw, events)
	}
}

// begin takes the turn's message. A later one goes on with what the first began.
func (s *seeker) begin(raw []byte) {
	if !s.Begun {
		s.record = record{turn: s.turn, begun: true, names: map[string]string{}}
		s.open = map[string]bool{}
	}
	s.spent.Add(raw)
	s.Begun, s.spoke, s.Interrupted, s.Failed, s.Text = true, false, false, "", ""
	clear(s.open)
}

// say takes a line of the turn.
func (s *seeker) say(raw []byte, events []agentcli.Event) {
	if transcript.Filler(events) {
		return
	}
	s.spent.Add(raw)
	for _, e := range events {
		if e.ParentID == "" {
			s.event(e)
		}
	}
}

func (s *seeker) event(e agentcli.Event) {
	if e.Model != "" {
		s.spoke = true
		if e.Model != synthetic {
			s.Model = e.Model
		}
	}
	switch e.Kind {
	case agentcli.KindText:
		s.Text = e.Text
	case agentcli.KindError:
		if e.Model == "" {
			return // of a call that the CLI made again
		}
		s.Text, s.Failed = e.Text, e.Text
	case agentcli.KindToolUse:
		if len(s.open) < maxNames {
			s.open[e.Tool.ID] = true
		}
	case agentcli.KindToolResult:
		delete(s.open, e.Tool.ID)
	case agentcli.KindStatus:
		s.Interrupted = s.Interrupted || e.Name == "interrupted"
	}
	s.record.tell(e)
}

// sum is what was found, in all.
func (s *seeker) sum() remembered {
	if s.Counted = s.spent.Counted; !s.Begun {
		return s.remembered
	}
	answered := s.spent.Ended() || s.Failed != "" && !s.spent.Summary().Unfinished
	s.Ended = s.Interrupted || s.spoke && answered && len(s.open) == 0
	s.Usage = s.spent.Usage()
	s.Messages, s.Omitted = s.record.out, s.record.left
	return s.remembered
}
