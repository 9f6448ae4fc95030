package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	// Usage is of the turn, all attempts of it. Its cost is what the agent counted, where it
	// did, and else list prices, without those of subagents, which have files of their own.
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
	env := h.environ(adapter, agentcli.Command{})
	dir := ""
	for _, v := range env {
		if name, value, _ := strings.Cut(v, "="); name == "CLAUDE_CONFIG_DIR" {
			dir = value
		}
	}
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return transcripts{}
		}
		dir = filepath.Join(home, ".claude")
	}
	return transcripts{dir}
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
	s := seeker{turn: in.Turn, seen: in.CostSeen}
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
	uuids  [][]byte         // of the turn's messages
	spoke  bool             // since the last of them the agent said something
	open   map[string]bool  // calls without a result
	fold   *transcript.Fold // of the turn, nil before it
	record record

	seen  float64           // of the cost, by the agent's last count
	cost  float64           // of the turn, up to that count
	upTo  transcript.Totals // the same as the lines tell it
	vague bool              // there are prices that neither knows
}

// synthetic is the model of what the CLI says in the model's place.
const synthetic = "<synthetic>"

func (s *seeker) add(raw []byte) {
	if usd, ok := transcript.Told(raw); ok {
		s.told(usd)
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
		s.fold = transcript.NewFold(price.Shipped())
		s.record = record{turn: s.turn, begun: true, names: map[string]string{}}
		s.open = map[string]bool{}
		s.seen = max(s.seen, s.Counted) // where the conversation is older than the session
	}
	s.fold.Add(raw)
	s.Begun, s.spoke, s.Interrupted, s.Failed, s.Text = true, false, false, "", ""
	clear(s.open)
}

// say takes a line of the turn.
func (s *seeker) say(raw []byte, events []agentcli.Event) {
	if events[0].Model == synthetic && events[0].Kind != agentcli.KindError {
		return // what the CLI puts after a turn that was broken off, when it is resumed
	}
	s.fold.Add(raw)
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

// told takes the count of a process that has ended. It knows more than the lines do, unless
// it lacks what a process before it spent that was killed.
func (s *seeker) told(usd float64) {
	s.Counted = usd
	if !s.Begun {
		return
	}
	t := s.fold.Summary().Totals
	if told, list := usd-s.seen, t.CostUSD-s.upTo.CostUSD; told > list {
		s.cost += told
	} else {
		s.cost += list
		s.vague = s.vague || t.Unpriced > s.upTo.Unpriced
	}
	s.seen, s.upTo = usd, t
}

// sum is what was found, in all.
func (s *seeker) sum() remembered {
	if !s.Begun {
		return s.remembered
	}
	t := s.fold.Summary()
	answered := s.fold.Ended() || s.Failed != "" && !t.Unfinished
	s.Ended = s.Interrupted || s.spoke && answered && len(s.open) == 0
	s.Usage = ace.Usage{InputTokens: t.Tokens.Input + t.Tokens.CacheWrite(), OutputTokens: t.Tokens.Output, CacheReadTokens: t.Tokens.CacheRead,
		CostUSD: s.cost + t.CostUSD - s.upTo.CostUSD, Unpriced: s.vague || t.Unpriced > s.upTo.Unpriced}
	s.Messages, s.Omitted = s.record.out, s.record.left
	return s.remembered
}
