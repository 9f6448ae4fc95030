package sessions

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/sources/cluster"
	"acescope/sources/transcripts"
)

// MaxTurns bounds the turns of a session whose conversation is kept; older ones are counted.
const MaxTurns = 500

// SessionFolder folds the histories of a session's workflow runs, the oldest first, and keeps the conversation of each
// turn. It is for one goroutine.
type SessionFolder struct {
	State   session.State
	Foreign error // why a run's input is not that of a session
	Turns   []*SessionTurn
	Left    int // number of earlier turns
	RunID   string

	decoder session.Decoder
}

// SessionTurn is one turn of a session, read from its history.
type SessionTurn struct {
	Turn         int
	RunID        string // of its workflow run
	Began, Ended time.Time
	Messages     []session.Message
	Result       *session.TurnResult // nil until it has ended, and if it failed
	Failure      *ace.Failure
	Record       *session.TurnRecord // replaces the result of a turn in a run that was not read
	Answers      map[string]session.ToolAnswer

	done []*TranscriptEntry // its entries, once it has ended
}

// NewSessionFolder returns an empty folder.
func NewSessionFolder() *SessionFolder { return &SessionFolder{} }

// Apply folds one event and reports whether it is about the session.
func (f *SessionFolder) Apply(e *historypb.HistoryEvent) bool {
	if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED {
		f.decoder = session.Decoder{}
		f.RunID = e.GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId()
	}
	fact, ok, err := f.decoder.Fact(e)
	if err != nil {
		f.Foreign = err
	}
	if !ok {
		return false
	}
	f.State.Apply(fact)
	at := e.GetEventTime().AsTime()
	switch fact.Kind {
	case session.FactStarted:
		f.addCarried()
	case session.FactTurnBegan:
		f.add(&SessionTurn{Turn: fact.Turn.Turn, RunID: f.RunID, Began: at, Messages: fact.Turn.Messages})
	case session.FactTurnEnded:
		if t := f.last(); t != nil {
			t.Ended, t.Result, t.Failure = at, fact.Result, fact.Failure
			f.keepAnswers(t)
		}
	case session.FactUpdate, session.FactToolRan:
		if t := f.last(); t != nil && t.Ended.IsZero() {
			f.keepAnswers(t)
		}
	}
	return true
}

// addCarried adds the turns of earlier runs that were not read.
func (f *SessionFolder) addCarried() {
	for _, r := range f.State.Recent {
		if last := f.last(); last == nil || last.Turn < r.Turn {
			f.add(&SessionTurn{Turn: r.Turn, RunID: f.RunID, Record: &r})
		}
	}
}

func (f *SessionFolder) last() *SessionTurn {
	if n := len(f.Turns); n > 0 {
		return f.Turns[n-1]
	}
	return nil
}

func (f *SessionFolder) add(t *SessionTurn) {
	f.Turns = append(f.Turns, t)
	if over := len(f.Turns) - MaxTurns; over > 0 {
		f.Turns = append([]*SessionTurn{}, f.Turns[over:]...)
	}
	f.Left = f.Turns[0].Turn - 1
}

// NewestTurns returns the turns, with a copy of the newest one, which still changes.
func (f *SessionFolder) NewestTurns() []*SessionTurn {
	list := slices.Clone(f.Turns)
	if n := len(list); n > 0 {
		last := *list[n-1]
		last.Answers = nil
		list[n-1] = &last
	}
	return list
}

// keepAnswers keeps the decisions on the turn's tool calls, which the state drops later.
func (f *SessionFolder) keepAnswers(t *SessionTurn) {
	for _, a := range f.State.Decided {
		if _, known := t.Answers[a.ID]; known {
			continue
		}
		if t.Answers == nil {
			t.Answers = map[string]session.ToolAnswer{}
		}
		if len(t.Answers) < session.MaxDecided {
			t.Answers[a.ID] = a
		}
	}
}

// entries returns the entries of a turn. logged are those of its log, which replace those of the history; nil without a
// log.
func (t *SessionTurn) entries(logged []*TranscriptEntry, pending []session.ToolRequest) []*TranscriptEntry {
	if logged != nil || t.Ended.IsZero() && t.Record == nil {
		return t.buildEntries(logged, pending)
	}
	if t.done == nil {
		t.done = t.buildEntries(nil, nil)
	}
	return t.done
}

func (t *SessionTurn) buildEntries(logged []*TranscriptEntry, pending []session.ToolRequest) []*TranscriptEntry {
	var list []*TranscriptEntry
	if t.Record != nil {
		list = append(list, &TranscriptEntry{Kind: EntryUser, Text: t.Record.Prompt})
		if t.Record.Text != "" {
			list = append(list, &TranscriptEntry{Kind: EntryText, Text: t.Record.Text})
		}
		return append(list, turnEntry(*t.Record, time.Time{}))
	}
	for _, m := range t.Messages {
		list = append(list, messageEntry(m, t.Began))
	}
	if logged == nil && t.Result != nil {
		logged = resultEntries(t.Result)
	}
	for _, e := range logged {
		list = append(list, t.withDecision(e, pending))
	}
	for _, r := range pending {
		isCall := func(e *TranscriptEntry) bool { return e.CallID == r.ID && r.ID != "" }
		if !slices.ContainsFunc(logged, isCall) {
			list = append(list, &TranscriptEntry{Kind: EntryTool, Name: r.Name, Text: string(r.Args), CallID: r.ID,
				Waits: true})
		}
	}
	if !t.Ended.IsZero() {
		list = append(list, turnEntry(t.record(), t.Ended))
	}
	return list
}

// SenderText describes a queued message: "callback", "message from ada".
func SenderText(m QueueMessage) string {
	kind := "message"
	if m.Callback {
		kind = "callback"
	}
	if m.From != "" {
		kind += " from " + m.From
	}
	return kind
}

// ReportsText counts the reports to senders and the messages that never reached the agent, or returns "".
func ReportsText(s *session.State) string {
	var parts []string
	if s.ReportsSent > 0 {
		parts = append(parts, fmt.Sprintf("%d sent to senders of messages", s.ReportsSent))
	}
	if s.ReportsUndelivered > 0 {
		parts = append(parts, fmt.Sprintf("%d not delivered", s.ReportsUndelivered))
	}
	if n := s.Undelivered(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d messages never reached the agent", n))
	}
	return strings.Join(parts, ", ")
}

// messageEntry returns the entry of a message to the agent.
func messageEntry(m session.Message, at time.Time) *TranscriptEntry {
	e := &TranscriptEntry{Kind: EntryUser, Name: m.From, At: at, Text: m.Text, Callback: m.Callback}
	if m.Ref != nil {
		e.Text = strings.TrimSpace(fmt.Sprintf("%s\n[an artifact of %d bytes: %s]", m.Text, m.Ref.Size, m.Ref.SHA256))
	}
	return e
}

// withDecision returns the entry of a tool call with the decision on it. Other entries are returned unchanged.
func (t *SessionTurn) withDecision(e *TranscriptEntry, pending []session.ToolRequest) *TranscriptEntry {
	if e.Kind != EntryTool || e.CallID == "" {
		return e
	}
	n := *e
	for _, r := range pending {
		if r.ID == e.CallID { // the log may be ahead of the history
			n.Waits, n.Done, n.OK, n.Denied, n.Result, n.Took = true, false, false, false, "", 0
		}
	}
	if a, ok := t.Answers[e.CallID]; ok {
		n.Note = answerText(a)
		n.Denied = n.Denied || a.Action == session.Deny && e.Done
	}
	return &n
}

// answerText describes the decision on a call: "denied by rule".
func answerText(a session.ToolAnswer) string {
	text := map[session.Action]string{session.Allow: "allowed", session.Deny: "denied"}[a.Action] + " by " + a.By
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}

// resultEntries returns the entries in the result of a turn.
func resultEntries(r *session.TurnResult) []*TranscriptEntry {
	var b transcripts.Builder
	for _, o := range r.Messages {
		e := agentcli.Event{Text: o.Text}
		switch o.Kind {
		case session.OutAssistant:
			e.Kind = agentcli.KindText
		case session.OutError:
			e.Kind = agentcli.KindError
		case session.OutToolUse:
			e.Kind, e.Tool = agentcli.KindToolUse, &agentcli.Tool{ID: o.CallID, Name: o.Tool, Args: o.Args}
		case session.OutToolResult:
			result, err := json.Marshal(o.Text)
			if err != nil {
				continue
			}
			ok := o.OK != nil && *o.OK
			e.Kind, e.Tool = agentcli.KindToolResult, &agentcli.Tool{ID: o.CallID, Name: o.Tool, Result: result, OK: ok}
		default:
			continue
		}
		b.Event(e)
	}
	list, _ := b.Entries()
	if r.Omitted > 0 {
		list = slices.Insert(list, 0, &TranscriptEntry{Kind: EntryStatus, Name: "left out",
			Text: fmt.Sprintf("%d earlier entries, which are in the turn's log", r.Omitted)})
	}
	if len(list) == 0 && r.Text != "" {
		list = append(list, &TranscriptEntry{Kind: EntryText, Text: r.Text})
	}
	return list
}

func (t *SessionTurn) record() session.TurnRecord {
	r := session.TurnRecord{Turn: t.Turn, Failure: t.Failure}
	if len(t.Messages) > 0 {
		r.Prompt = cluster.Cut(t.Messages[0].Text, 256)
	}
	for _, m := range t.Messages {
		if m.Callback {
			r.Callbacks++
		}
	}
	if t.Result == nil {
		r.Status = session.TurnFailed
		if t.Failure != nil && t.Failure.Kind == ace.Canceled {
			r.Status = session.TurnInterrupted
		}
		r.DurationMS = float64(t.Ended.Sub(t.Began).Microseconds()) / 1000
		return r
	}
	x := t.Result
	r.Status, r.Usage, r.DurationMS, r.Attempt, r.Failure = x.Status, x.Usage, x.DurationMS, x.Attempt, x.Failed
	r.Warm, r.Recovered, r.Continued, r.LogPath = x.Warm, x.Recovered, x.Continued, x.LogPath
	return r
}

// turnEntry returns the entry with the outcome of a turn.
func turnEntry(r session.TurnRecord, at time.Time) *TranscriptEntry {
	e := &TranscriptEntry{Kind: EntryStatus, Name: fmt.Sprintf("turn %d %s", r.Turn, r.Status), At: at, Text: TurnText(r)}
	if r.Status == session.TurnFailed {
		e.Kind = EntryError
	}
	return e
}

// TurnText describes a turn that has ended in one line, without its number and status.
func TurnText(r session.TurnRecord) string {
	var parts []string
	if r.Failure != nil && r.Failure.Message != "" {
		parts = append(parts, cluster.Join(r.Failure.Type, r.Failure.Message))
	}
	switch r.Callbacks {
	case 0:
	case 1:
		parts = append(parts, "1 callback")
	default:
		parts = append(parts, fmt.Sprintf("%d callbacks", r.Callbacks))
	}
	if r.DurationMS > 0 {
		parts = append(parts, "took "+RoundDuration(cluster.Milliseconds(r.DurationMS)).String())
	}
	if u := r.Usage; u.InputTokens+u.OutputTokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", u.InputTokens+u.OutputTokens))
	}
	if r.Usage.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", r.Usage.CostUSD))
	}
	if r.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", r.Attempt))
	}
	if r.Recovered {
		parts = append(parts, "found completed after a crash")
	}
	if r.Continued {
		parts = append(parts, "continued after a crash")
	}
	return strings.Join(parts, ", ")
}

// Conversation returns the newest part of the conversation. logged are the entries in the logs of turns, by turn.
func (f *SessionFolder) Conversation(logged map[int][]*TranscriptEntry) *Conversation {
	c := &Conversation{}
	for i, t := range f.Turns {
		var pending []session.ToolRequest
		if i == len(f.Turns)-1 && f.State.Current != nil {
			pending = f.State.Pending
		}
		c.Entries = append(c.Entries, t.entries(logged[t.Turn], pending)...)
	}
	for i, m := range f.State.Queue {
		e := messageEntry(m, time.Time{})
		if e.Note = "waits for the agent"; i > 0 {
			e.Note += fmt.Sprintf(", %d before it", i)
		}
		c.Entries = append(c.Entries, e)
	}
	c.Queued = len(f.State.Queue)
	if over := len(c.Entries) - transcripts.MaxEntries; over > 0 {
		c.Entries, c.First = c.Entries[over:], over
	}
	return c
}

// RoundDuration rounds a duration for display.
func RoundDuration(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
