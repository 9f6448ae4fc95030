package session

import (
	"fmt"
	"slices"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
)

// PastTurn is a turn that has ended, as the history records it.
type PastTurn struct {
	Messages []Message
	Result   TurnResult
}

// PastTurns collects the ended turns of one run of a session from its events, in order. The zero
// value is ready to use.
type PastTurns struct {
	List    []PastTurn
	Carried []TurnRecord // of earlier runs

	decoder Decoder
	current []Message
}

// Add adds an event.
func (p *PastTurns) Add(e *historypb.HistoryEvent) error {
	f, ok, err := p.decoder.Fact(e)
	if !ok || err != nil {
		return err
	}
	switch f.Kind {
	case FactStarted:
		if f.Input.Carried != nil {
			p.Carried = f.Input.Carried.Recent
		}
	case FactTurnBegan:
		p.current = f.Turn.Messages
	case FactTurnEnded:
		t := PastTurn{Messages: p.current, Result: TurnResult{Status: TurnFailed, Failed: f.Failure}}
		if f.Result != nil {
			t.Result = *f.Result
		}
		p.List = append(p.List, t)
	}
	return nil
}

// CarriedTurns returns the turns of earlier runs that the input of the run summarizes.
func (p *PastTurns) CarriedTurns() (list []PastTurn) {
	for _, r := range p.Carried {
		list = append(list, PastTurn{Messages: []Message{{Text: r.Prompt, From: r.From}}, Result: TurnResult{
			Turn: r.Turn, Status: r.Status, Failed: r.Failure, Text: r.Text, Undelivered: r.Undelivered}})
	}
	return list
}

// maxContextPart bounds a text in a recorded conversation, in bytes.
const maxContextPart = 8 << 10

// Context returns the newest turns of a conversation as text, at most [MaxContext] bytes, and counts
// the turns. Turns that the agent did not get are left out; their messages are sent again.
func Context(turns []PastTurn) (text string, counts Rebuilt) {
	var parts []string
	size := 0
	for _, t := range slices.Backward(turns) {
		if t.Result.Undelivered && len(t.Result.Messages) == 0 {
			continue
		}
		part := t.text()
		if size += len(part); size > MaxContext {
			counts.Omitted++
			continue
		}
		parts = append(parts, part)
		counts.Turns++
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n"), counts
}

func (t PastTurn) text() string {
	var b strings.Builder
	put := func(who, text string) {
		if text = strings.TrimSpace(text); text != "" {
			fmt.Fprintf(&b, "[%s]\n%s\n", who, ace.Cut(text, maxContextPart))
		}
	}
	for _, m := range t.Messages {
		if m.Ref != nil {
			m.Text += fmt.Sprintf("\n(a text of %d bytes, which is left out here)", m.Ref.Size)
		}
		put("user", m.Text)
	}
	said := ""
	for _, o := range t.Result.Messages {
		switch o.Kind {
		case OutAssistant:
			said = o.Text
			put("assistant", o.Text)
		case OutToolUse:
			put("tool call "+o.Tool, string(o.Args))
		case OutToolResult:
			put("result", o.Text)
		}
	}
	if said == "" {
		put("assistant", t.Result.Text)
	}
	if t.Result.Status != TurnCompleted {
		why := ""
		if t.Result.Failed != nil {
			why = ": " + ace.Cut(t.Result.Failed.Message, 500)
		}
		fmt.Fprintf(&b, "[this turn was %s%s]\n", t.Result.Status, why)
	}
	return b.String()
}
