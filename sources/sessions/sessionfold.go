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

// MaxTurns bounds the turns of a session whose conversation is held; of the older ones the
// number is told.
const MaxTurns = 500

// SessionFolder folds the histories of a session's runs, the oldest first, and keeps what
// was said in each turn. It is for one goroutine.
type SessionFolder struct {
	State   session.State
	Foreign error // why a run's input is none of a session
	Turns   []*SessionTurn
	Left    int // turns before those
	RunID   string

	decoder session.Decoder
}

// SessionTurn is one turn of a session, as its history tells it.
type SessionTurn struct {
	Turn         int
	RunID        string // of the run that has it
	Began, Ended time.Time
	Messages     []session.Message
	Result       *session.TurnResult // nil until it has ended, or where it failed
	Failure      *ace.Failure
	Record       *session.TurnRecord // in place of a result, of a turn in a run that was not read
	Answers      map[string]session.ToolAnswer

	done []*TranscriptEntry // what was said, once it has ended
}

// NewSessionFolder starts at nothing known.
func NewSessionFolder() *SessionFolder { return &SessionFolder{} }

// Apply folds one event. It tells whether the event said anything of the session.
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
		f.carried()
	case session.FactTurnBegan:
		f.add(&SessionTurn{Turn: fact.Turn.Turn, RunID: f.RunID, Began: at, Messages: fact.Turn.Messages})
	case session.FactTurnEnded:
		if t := f.last(); t != nil {
			t.Ended, t.Result, t.Failure = at, fact.Result, fact.Failure
			f.answers(t)
		}
	case session.FactUpdate, session.FactToolRan:
		if t := f.last(); t != nil && t.Ended.IsZero() {
			f.answers(t)
		}
	}
	return true
}

// carried takes over turns of runs that were not read.
func (f *SessionFolder) carried() {
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

// turns is a list to hand out: the newest turn goes on changing.
func (f *SessionFolder) NewestTurns() []*SessionTurn {
	list := slices.Clone(f.Turns)
	if n := len(list); n > 0 {
		last := *list[n-1]
		last.Answers = nil
		list[n-1] = &last
	}
	return list
}

// answers takes over who decided the turn's tool calls, which the state forgets.
func (f *SessionFolder) answers(t *SessionTurn) {
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

// entries are those of a turn. spoken is what its log tells, in place of what the history
// does, nil where that is not read.
func (t *SessionTurn) entries(spoken []*TranscriptEntry, pending []session.ToolRequest) []*TranscriptEntry {
	if spoken != nil || t.Ended.IsZero() && t.Record == nil {
		return t.tell(spoken, pending)
	}
	if t.done == nil {
		t.done = t.tell(nil, nil)
	}
	return t.done
}

func (t *SessionTurn) tell(spoken []*TranscriptEntry, pending []session.ToolRequest) []*TranscriptEntry {
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
	if spoken == nil && t.Result != nil {
		spoken = toldBy(t.Result)
	}
	for _, e := range spoken {
		list = append(list, t.noted(e, pending))
	}
	for _, r := range pending {
		if !holdsCall(spoken, r.ID) {
			list = append(list, &TranscriptEntry{Kind: EntryTool, Name: r.Name, Text: string(r.Args), CallID: r.ID, Waits: true})
		}
	}
	if !t.Ended.IsZero() {
		list = append(list, turnEntry(t.record(), t.Ended))
	}
	return list
}

func holdsCall(list []*TranscriptEntry, id string) bool {
	for _, e := range list {
		if e.CallID == id && id != "" {
			return true
		}
	}
	return false
}

// SenderText says in a few words what a message is that waits, and from whom.
func SenderText(m QueueMessage) string {
	what := "message"
	if m.Callback {
		what = "callback"
	}
	if m.From != "" {
		what += " from " + m.From
	}
	return what
}

// ReportsText says in a line what came of reports to those who wait for messages, and how many
// messages never reached the agent; "" where there is nothing to say.
func ReportsText(s *session.State) string {
	var parts []string
	if s.ReportsSent > 0 {
		parts = append(parts, fmt.Sprintf("%d sent to those who wait for a message", s.ReportsSent))
	}
	if s.ReportsUndelivered > 0 {
		parts = append(parts, fmt.Sprintf("%d of them heard by nobody", s.ReportsUndelivered))
	}
	if n := s.Undelivered(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d messages never reached the agent", n))
	}
	return strings.Join(parts, ", ")
}

// messageEntry is a message to the agent.
func messageEntry(m session.Message, at time.Time) *TranscriptEntry {
	e := &TranscriptEntry{Kind: EntryUser, Name: m.From, At: at, Text: m.Text, Callback: m.Callback}
	if m.Ref != nil {
		e.Text = strings.TrimSpace(fmt.Sprintf("%s\n[an artifact of %d bytes: %s]", m.Text, m.Ref.Size, m.Ref.SHA256))
	}
	return e
}

// noted is an entry of a call with who decided it.
func (t *SessionTurn) noted(e *TranscriptEntry, pending []session.ToolRequest) *TranscriptEntry {
	if e.Kind != EntryTool || e.CallID == "" {
		return e
	}
	n := *e
	for _, r := range pending {
		if r.ID == e.CallID { // its log may be ahead of what the history tells of the answer
			n.Waits, n.Done, n.OK, n.Denied, n.Result, n.Took = true, false, false, false, "", 0
		}
	}
	if a, ok := t.Answers[e.CallID]; ok {
		n.Note = answerText(a)
		n.Denied = n.Denied || a.Action == session.Deny && e.Done
	}
	return &n
}

// answerText says who decided a call, and why.
func answerText(a session.ToolAnswer) string {
	said := map[session.Action]string{session.Allow: "allowed", session.Deny: "denied"}[a.Action] + " by " + a.By
	if a.Reason != "" {
		said += ": " + a.Reason
	}
	return said
}

// toldBy is what the result of a turn tells of it.
func toldBy(r *session.TurnResult) []*TranscriptEntry {
	var t transcripts.Builder
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
			e.Kind, e.Tool = agentcli.KindToolResult, &agentcli.Tool{ID: o.CallID, Name: o.Tool, Result: result, OK: o.OK != nil && *o.OK}
		default:
			continue
		}
		t.Event(e)
	}
	list, _ := t.Entries()
	if r.Omitted > 0 {
		list = append([]*TranscriptEntry{{Kind: EntryStatus, Name: "left out", Text: fmt.Sprintf("%d earlier things that the agent said or did: the turn's log has them", r.Omitted)}}, list...)
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

// turnEntry says how a turn ended.
func turnEntry(r session.TurnRecord, at time.Time) *TranscriptEntry {
	e := &TranscriptEntry{Kind: EntryStatus, Name: fmt.Sprintf("turn %d %s", r.Turn, r.Status), At: at}
	e.Text = TurnText(r)
	if r.Status == session.TurnFailed {
		e.Kind = EntryError
	}
	return e
}

// TurnText says in a line what is to be said of a turn that has ended, but for its number
// and how it ended.
func TurnText(r session.TurnRecord) string {
	var parts []string
	if r.Failure != nil && r.Failure.Message != "" {
		parts = append(parts, cluster.Join(r.Failure.Type, r.Failure.Message))
	}
	if r.Callbacks > 0 {
		parts = append(parts, fmt.Sprintf("%d of its messages %s", r.Callbacks, map[bool]string{true: "was a callback", false: "were callbacks"}[r.Callbacks == 1]))
	}
	if r.DurationMS > 0 {
		parts = append(parts, "took "+RoundTook(cluster.Took(r.DurationMS)).String())
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
	for _, x := range []struct {
		is   bool
		said string
	}{{r.Recovered, "found done after a crash"}, {r.Continued, "gone on with after a crash"}} {
		if x.is {
			parts = append(parts, x.said)
		}
	}
	return strings.Join(parts, ", ")
}

// Conversation is what was said in the session, the newest part of it. spoken is what the
// logs of turns tell, by turn.
func (f *SessionFolder) Conversation(spoken map[int][]*TranscriptEntry) *Conversation {
	c := &Conversation{}
	for i, t := range f.Turns {
		var pending []session.ToolRequest
		if i == len(f.Turns)-1 && f.State.Current != nil {
			pending = f.State.Pending
		}
		c.Entries = append(c.Entries, t.entries(spoken[t.Turn], pending)...)
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

func RoundTook(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}
