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

// maxTurns bounds the turns of a session whose conversation is kept; older ones are counted.
const maxTurns = 500

// Folder folds the histories of a session's workflow runs, the oldest first, and keeps the conversation of
// each turn. It is for one goroutine.
type Folder struct {
	State   session.State
	Foreign error // why a run's input is not that of a session
	Turns   []*Turn
	RunID   string

	decoder session.Decoder
}

// Turn is one turn of a session, read from its history.
type Turn struct {
	Turn         int
	RunID        string // of its workflow run
	Began, Ended time.Time
	Messages     []session.Message
	Result       *session.TurnResult // nil until it has ended, and if it failed
	// nil until it has ended; all that is known of a turn in a run that was not read
	Record  *session.TurnRecord
	Answers map[string]session.ToolAnswer

	log  *turnLog             // nil without a log
	done []*transcripts.Entry // its entries, once it has ended without a log
}

// NewFolder returns an empty folder.
func NewFolder() *Folder { return &Folder{} }

// Apply folds one event and reports whether it is about the session.
func (f *Folder) Apply(e *historypb.HistoryEvent) bool {
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
		for _, r := range f.State.Recent { // of runs that were not read
			if last := f.last(); last == nil || last.Turn < r.Turn {
				f.add(&Turn{Turn: r.Turn, RunID: f.RunID, Record: &r})
			}
		}
	case session.FactTurnBegan:
		f.add(&Turn{Turn: fact.Turn.Turn, RunID: f.RunID, Began: at, Messages: fact.Turn.Messages})
	case session.FactTurnEnded:
		if t := f.last(); t != nil {
			t.end(at, fact.Result, f.State.Recent)
			f.keepAnswers(t)
		}
	case session.FactUpdate, session.FactToolRan:
		if t := f.last(); t != nil && t.Ended.IsZero() {
			f.keepAnswers(t)
		}
	}
	return true
}

func (f *Folder) last() *Turn {
	if n := len(f.Turns); n > 0 {
		return f.Turns[n-1]
	}
	return nil
}

func (f *Folder) add(t *Turn) {
	f.Turns = append(f.Turns, t)
	if over := len(f.Turns) - maxTurns; over > 0 {
		f.Turns = append([]*Turn{}, f.Turns[over:]...)
	}
}

// newestTurns returns the turns, with a copy of the newest one, which still changes.
func (f *Folder) newestTurns() []*Turn {
	list := slices.Clone(f.Turns)
	if n := len(list); n > 0 {
		last := *list[n-1]
		last.Answers = nil
		list[n-1] = &last
	}
	return list
}

// keepAnswers keeps the decisions on the turn's tool calls, which the state drops later.
func (f *Folder) keepAnswers(t *Turn) {
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

// entries returns the entries of a turn. Those of its log replace those of the history.
func (t *Turn) entries(pending []session.ToolRequest) []*transcripts.Entry {
	logged := t.log.entries()
	if logged != nil || t.Record == nil {
		return t.buildEntries(logged, pending)
	}
	if t.done == nil {
		t.done = t.buildEntries(nil, nil)
	}
	return t.done
}

func (t *Turn) buildEntries(logged []*transcripts.Entry, pending []session.ToolRequest) []*transcripts.Entry {
	var list []*transcripts.Entry
	if t.Began.IsZero() {
		list = append(list, &transcripts.Entry{Kind: transcripts.KindUser, Text: t.Record.Prompt})
		if t.Record.Text != "" {
			list = append(list, &transcripts.Entry{Kind: transcripts.KindText, Text: t.Record.Text})
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
		isCall := func(e *transcripts.Entry) bool { return e.CallID == r.ID && r.ID != "" }
		if !slices.ContainsFunc(logged, isCall) {
			list = append(list, &transcripts.Entry{Kind: transcripts.KindCall, Name: r.Name,
				Text: string(r.Args), CallID: r.ID,
				Waits: true})
		}
	}
	if t.Record != nil {
		list = append(list, turnEntry(*t.Record, t.Ended))
	}
	return list
}

// AgentText describes the agent of a session: "claude 2.1 on vm".
func AgentText(s *session.State) string {
	if s.Host == nil {
		return s.Input.Agent
	}
	return strings.TrimSpace(s.Input.Agent+" "+s.Host.Version) + " on " + s.Host.Name
}

// BlockedText says why the messages in the queue are not sent, or returns "".
func BlockedText(s *session.State) string {
	if s.Status != session.Blocked || s.Blocked == nil {
		return ""
	}
	return fmt.Sprintf(`%s; the queue is sent again with the next message, or with "acescope session move %s"`,
		cluster.Join(s.Blocked.Type, s.Blocked.Message), s.Input.SessionID)
}

// MovedText names the machine that had the session before, or returns "".
func MovedText(s *session.State) string {
	switch {
	case s.Move != nil:
		return "to " + s.Move.Host.Name + " when the turn has ended"
	case s.MovedFrom != "" && s.Host != nil && s.MovedFrom != s.Host.Name:
		return "from " + s.MovedFrom
	}
	return ""
}

// SenderText describes a queued message: "callback", "message from ada".
func SenderText(m session.Message) string {
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
		parts = append(parts, ace.Count(n, "message")+" never reached the agent")
	}
	return strings.Join(parts, ", ")
}

// messageEntry returns the entry of a message to the agent.
func messageEntry(m session.Message, at time.Time) *transcripts.Entry {
	e := &transcripts.Entry{Kind: transcripts.KindUser, Name: m.From, At: at, Text: m.Text,
		Callback: m.Callback}
	if m.Ref != nil {
		e.Text = strings.TrimSpace(fmt.Sprintf("%s\n[an artifact of %s: %s]", m.Text,
			ace.Count(m.Ref.Size, "byte"), m.Ref.SHA256))
	}
	return e
}

// withDecision returns the entry of a tool call with the decision on it. Other entries are returned
// unchanged.
func (t *Turn) withDecision(e *transcripts.Entry, pending []session.ToolRequest) *transcripts.Entry {
	if e.Kind != transcripts.KindCall || e.CallID == "" {
		return e
	}
	n := *e
	for _, r := range pending {
		if r.ID == e.CallID { // the log may be ahead of the history
			n.Waits, n.Done, n.OK, n.Denied, n.Result, n.Took = true, false, false, false, "", 0
		}
	}
	if a, ok := t.Answers[e.CallID]; ok {
		verb := map[session.Action]string{session.Allow: "allowed", session.Deny: "denied"}[a.Action]
		n.Note = verb + " by " + a.By
		if a.Reason != "" {
			n.Note += ": " + a.Reason
		}
		n.Denied = n.Denied || a.Action == session.Deny && e.Done
	}
	return &n
}

// resultEntries returns the entries in the result of a turn.
func resultEntries(r *session.TurnResult) []*transcripts.Entry {
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
			e.Kind, e.Tool = agentcli.KindToolResult, &agentcli.Tool{ID: o.CallID, Name: o.Tool,
				Result: result, OK: ok}
		default:
			continue
		}
		b.Event(e)
	}
	list, _ := b.Entries()
	if r.Omitted > 0 {
		list = slices.Insert(list, 0, &transcripts.Entry{Kind: transcripts.KindStatus, Name: "left out",
			Text: ace.Count(r.Omitted, "earlier entry") + "; the turn's log has all"})
	}
	if len(list) == 0 && r.Text != "" {
		list = append(list, &transcripts.Entry{Kind: transcripts.KindText, Text: r.Text})
	}
	return list
}

// end ends the turn. Its record is the last of the ended turns.
func (t *Turn) end(at time.Time, result *session.TurnResult, ended []session.TurnRecord) {
	t.Ended, t.Result = at, result
	if len(ended) == 0 || ended[len(ended)-1].Turn != t.Turn {
		return
	}
	r := ended[len(ended)-1]
	if result == nil {
		r.DurationMS = cluster.Millis(at.Sub(t.Began))
	}
	t.Record = &r
}

// turnEntry returns the entry with the outcome of a turn.
func turnEntry(r session.TurnRecord, at time.Time) *transcripts.Entry {
	e := &transcripts.Entry{Kind: transcripts.KindStatus, Name: fmt.Sprintf("turn %d %s", r.Turn, r.Status),
		At: at, Text: TurnText(r)}
	if r.Status == session.TurnFailed {
		e.Kind = transcripts.KindError
	}
	return e
}

// TurnText describes a turn that has ended in one line, without its number and status.
func TurnText(r session.TurnRecord) string {
	var parts []string
	if r.Failure != nil && r.Failure.Message != "" {
		parts = append(parts, cluster.Join(r.Failure.Type, r.Failure.Message))
	}
	if r.Callbacks > 0 {
		parts = append(parts, ace.Count(r.Callbacks, "callback"))
	}
	if r.DurationMS > 0 {
		parts = append(parts, "took "+RoundDuration(cluster.Milliseconds(r.DurationMS)).String())
	}
	if tokens := r.Usage.Tokens(); tokens > 0 {
		parts = append(parts, ace.Count(tokens, "token"), r.Usage.Cost())
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
	if b := r.Rebuilt; b != nil {
		rebuilt := "the agent's conversation was gone and rebuilt from " + ace.Count(b.Turns, "recorded turn")
		if b.Omitted > 0 {
			rebuilt += ", without " + ace.Count(b.Omitted, "older turn")
		}
		parts = append(parts, rebuilt)
	}
	if r.Kept {
		parts = append(parts, "the message stays in the queue")
	}
	return strings.Join(parts, ", ")
}

// Conversation returns the newest part of the conversation.
func (f *Folder) Conversation() *transcripts.Conversation {
	c := &transcripts.Conversation{}
	for i, t := range f.Turns {
		var pending []session.ToolRequest
		if i == len(f.Turns)-1 && f.State.Current != nil {
			pending = f.State.Pending
		}
		c.Entries = append(c.Entries, t.entries(pending)...)
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
