package transcripts

import (
	"encoding/json"
	"slices"
	"strings"

	"acescope/engine/agentcli"
)

// Teller makes a conversation of an agent's events, each call with its result. The zero
// value is ready. It is for one goroutine; entries that were handed out are not changed.
// The bounds are those of a conversation.
type Teller struct {
	entries []*Entry
	first   int            // entries that were left out before them
	calls   map[string]int // place of open calls, counted from the first entry
	bytes   int
	parts   strings.Builder // of a text that comes in parts, what has come
	open    *Entry          // that text's entry but for the text, nil for none
}

// Entries is what was told so far, and how many before it were left out.
func (t *Teller) Entries() ([]*Entry, int) {
	list := slices.Clone(t.entries)
	if t.open != nil {
		list = append(list, t.spoken(true))
	}
	return list, t.first
}

// Event takes what an agent said or did; what is nothing of a conversation is passed by.
func (t *Teller) Event(e agentcli.Event) {
	switch e.Kind {
	case agentcli.KindDelta:
		t.part(e)
		return
	case agentcli.KindText:
		t.hush()
	case agentcli.KindToolUse, agentcli.KindResult:
		t.End()
	}
	switch e.Kind {
	case agentcli.KindToolUse:
		t.call(e)
	case agentcli.KindToolResult:
		t.result(e)
	case agentcli.KindUser, agentcli.KindText, agentcli.KindThinking, agentcli.KindStatus, agentcli.KindError:
		n := &Entry{Kind: e.Kind, Name: e.Name, At: e.At, Model: e.Model}
		n.Text, n.Cut = cut(e.Text, maxSaid)
		if n.Text != "" || n.Name != "" {
			t.Add(n)
		}
	}
}

// End says that no more comes of a text that comes in parts; what has come of it stays.
func (t *Teller) End() {
	if t.open != nil {
		t.Add(t.spoken(false))
		t.hush()
	}
}

// part adds to a text that comes in parts.
func (t *Teller) part(e agentcli.Event) {
	if e.Text == "" {
		return
	}
	if t.open == nil {
		t.open = &Entry{Kind: agentcli.KindText, At: e.At, Model: e.Model}
	}
	if room := maxSaid - t.parts.Len(); len(e.Text) > room {
		said, rest := cut(e.Text, max(room, 0))
		t.parts.WriteString(said)
		t.open.Cut += rest
		return
	}
	t.parts.WriteString(e.Text)
}

// spoken is the entry of the text that comes in parts, as far as it has come.
func (t *Teller) spoken(open bool) *Entry {
	n := *t.open
	n.Text, n.Open = t.parts.String(), open
	return &n
}

// hush forgets the text that came in parts.
func (t *Teller) hush() {
	t.open = nil
	t.parts = strings.Builder{}
}

func (t *Teller) call(e agentcli.Event) {
	if _, open := t.calls[e.Tool.ID]; open {
		return
	}
	if t.calls == nil {
		t.calls = map[string]int{}
	}
	n := &Entry{Kind: agentcli.KindToolUse, Name: e.Tool.Name, At: e.At, Model: e.Model, CallID: e.Tool.ID}
	n.Text, n.Cut = cut(string(e.Tool.Args), maxValue)
	t.calls[e.Tool.ID] = t.first + len(t.entries)
	t.Add(n)
}

// result puts a result to its call; one whose call is not here stands alone.
func (t *Teller) result(e agentcli.Event) {
	at, ok := t.calls[e.Tool.ID]
	if at -= t.first; !ok || at < 0 {
		n := &Entry{Kind: agentcli.KindToolUse, At: e.At, CallID: e.Tool.ID}
		t.finish(n, e)
		t.Add(n)
		return
	}
	n := *t.entries[at]
	if n.Done {
		return
	}
	before := n.size()
	t.finish(&n, e)
	if n.Took == 0 && !n.At.IsZero() && e.At.After(n.At) {
		n.Took = e.At.Sub(n.At)
	}
	t.entries[at] = &n // who has the list has a copy of it
	t.bytes += n.size() - before
	t.bound()
}

func (t *Teller) finish(n *Entry, e agentcli.Event) {
	n.Done, n.OK, n.Denied, n.Took = true, e.Tool.OK, e.Tool.Denied, e.Tool.Duration
	n.Result, n.ResultCut = cut(plainResult(e.Tool.Result), maxValue)
}

// plainResult is a text, or the texts of a list; else the value as it is.
func plainResult(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var list []struct{ Type, Text string }
	if json.Unmarshal(raw, &list) != nil {
		return string(raw)
	}
	var parts []string
	for _, b := range list {
		if b.Type != "text" && b.Text == "" {
			b.Text = "[" + b.Type + "]"
		}
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n")
}

// Add puts an entry at the end.
func (t *Teller) Add(e *Entry) {
	t.entries = append(t.entries, e)
	t.bytes += e.size()
	t.bound()
}

// bound leaves out the oldest.
func (t *Teller) bound() {
	n := 0
	for ; len(t.entries)-n > MaxEntries || t.bytes > MaxText && len(t.entries)-n > 1; n++ {
		t.bytes -= t.entries[n].size()
		delete(t.calls, t.entries[n].CallID)
		t.entries[n] = nil
	}
	t.entries, t.first = t.entries[n:], t.first+n
}
