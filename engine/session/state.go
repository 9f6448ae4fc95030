package session

import (
	"slices"

	"acescope/engine/ace"
)

// Status says what a session is about.
type Status string

// Session statuses. A session waits when a tool call needs a person.
const (
	Starting Status = "starting"
	Idle     Status = "idle"
	Working  Status = "working"
	Waiting  Status = "waiting"
	Stopping Status = "stopping"
	Over     Status = "ended"
)

// State is what is known of a session: the value of the fold, and the answer of
// [QuerySession]. The zero State knows nothing. It is bounded, and not safe for
// concurrent use.
type State struct {
	// Input is what the session was started with, without what was carried.
	Input  Input  `json:"input"`
	Status Status `json:"status"`
	Host   *Host  `json:"host,omitempty"`
	// AgentSessionID is the agent's id of the conversation, once it is known.
	AgentSessionID string `json:"agent_session_id,omitempty"`
	Model          string `json:"model,omitempty"`

	Queue []Message `json:"queue,omitempty"` // what waits for the agent
	// Current is the turn under way, Turns how many have begun, Recent the newest that ended.
	Current *Current     `json:"current,omitempty"`
	Turns   int          `json:"turns"`
	Recent  []TurnRecord `json:"recent,omitempty"`

	// Pending are the tool calls that wait for a person, Running those that the session
	// makes; Decided are the answers to the newest calls, in the order of the calls.
	Pending []ToolRequest `json:"pending,omitempty"`
	Running []ToolRequest `json:"running_tools,omitempty"`
	Decided []ToolAnswer  `json:"decided,omitempty"`
	Tools   []ToolCount   `json:"tools,omitempty"`
	Asked   int           `json:"asked,omitempty"` // calls in all

	Out    []Out `json:"out,omitempty"` // what came out and is not acknowledged
	Cursor int64 `json:"cursor"`        // of the newest that came out
	Acked  int64 `json:"acked"`
	Lost   int64 `json:"lost,omitempty"` // came out, was not acknowledged, and is dropped

	Usage     ace.Usage      `json:"usage"`
	CostSeen  float64        `json:"cost_seen,omitempty"`
	UsageSeen ace.Usage      `json:"usage_seen"`
	Failure   *ace.Failure   `json:"failure,omitempty"` // why the session, or its last turn, failed
	Interrupt *Note          `json:"interrupt,omitempty"`
	Stop      *Note          `json:"stop,omitempty"`
	Exit      ace.ExitStatus `json:"exit_status"`
	// Runs counts the workflow runs that the session had so far.
	Runs int `json:"runs"`
	// Seen are the newest ids of messages that were taken.
	Seen []string `json:"seen,omitempty"`

	// Held and HeldBytes measure the queue, with what was withdrawn from it since the last
	// turn began.
	Held      int `json:"held,omitempty"`
	HeldBytes int `json:"held_bytes,omitempty"`
	// Dropped counts what was signalled and could not be taken, and messages that somebody
	// waited for and that the session's end left over.
	Dropped   int      `json:"dropped_messages,omitempty"`
	Withdrawn []string `json:"withdrawn,omitempty"` // ids of the newest such messages

	// Reports wait to be sent, in the order of their messages' ids. Told counts those that
	// were sent, Unheard those of them whose receiver was gone.
	Reports []Reply `json:"reports,omitempty"`
	Told    int     `json:"reports_sent,omitempty"`
	Unheard int     `json:"reports_unheard,omitempty"`
	// Cut is a turn that was cut off to continue as a new run, and is gone on with there.
	Cut *CutTurn `json:"cut,omitempty"`
}

// Current is the turn under way.
type Current struct {
	Turn     int       `json:"turn"`
	Messages []Message `json:"messages"`
	Attempt  int32     `json:"attempt,omitempty"` // the newest that asked for a tool
	Cut      bool      `json:"cut,omitempty"`     // told to end, though nobody asked for that
}

// TurnRecord is one turn that has ended.
type TurnRecord struct {
	Turn   int        `json:"turn"`
	Status TurnStatus `json:"status"`
	Prompt string     `json:"prompt"` // cut
	// Callbacks counts the messages of the turn that were reports of other runs, From is who
	// sent the first message.
	Callbacks  int          `json:"callbacks,omitempty"`
	From       string       `json:"from,omitempty"`
	Text       string       `json:"text,omitempty"`
	Usage      ace.Usage    `json:"usage"`
	DurationMS float64      `json:"duration_ms"`
	Attempt    int32        `json:"attempt,omitempty"`
	LogPath    string       `json:"log_path,omitempty"`
	Log        *ace.Ref     `json:"log,omitempty"`
	Failure    *ace.Failure `json:"failure,omitempty"`
	Warm       bool         `json:"warm,omitempty"`
	Recovered  bool         `json:"recovered,omitempty"`
	Continued  bool         `json:"continued,omitempty"`
}

// ToolCount counts what became of the calls of one tool that were asked about.
type ToolCount struct {
	Name    string `json:"name"`
	Asked   int    `json:"asked"`
	Allowed int    `json:"allowed"`
	Denied  int    `json:"denied"`
	Failed  int    `json:"failed"`
}

// Open tells whether the session takes messages.
func (s *State) Open() bool { return s.Status != Stopping && s.Status != Over }

// turnEnded is why a call is denied that waits for a person when its turn ends, by itself or
// with the session.
const turnEnded = "the turn has ended"

// Apply folds one fact into the state. Of facts that stand in a history between two workflow
// tasks (ends of activities, a cancellation, what became of reports, signals), the order does
// not matter, but for signals of one name among themselves.
func (s *State) Apply(f Fact) {
	switch f.Kind {
	case FactStarted:
		s.start(*f.Input)
	case FactClaimed:
		s.claimed(f.Host, f.Failure)
	case FactUpdate:
		s.update(f.Update)
	case FactTurnBegan:
		s.begin(*f.Turn)
	case FactTurnEnded:
		s.end(f.Result, f.Failure)
	case FactToolRan:
		s.ran(f.CallID, f.Tool, f.Failure)
	case FactCancelRequested:
		s.stop(Stop{Reason: stopCancelled})
	case FactSignal:
		s.signal(f.Signal)
	case FactTurnCut:
		s.cutOff()
	case FactReported:
		s.reported(f.Message)
	case FactUnheard:
		s.Unheard++
	case FactClosed:
		s.close(f)
	}
	s.settle()
}

func (s *State) start(in Input) {
	first, carried := in.First, in.Carried
	in.First, in.Carried = nil, nil
	if carried != nil {
		*s = *carried
	} else {
		*s = State{Status: Starting, AgentSessionID: in.AgentSessionID, Model: in.Model, Exit: ace.Running}
	}
	s.Input = in
	s.Runs++
	if carried == nil && in.Host != nil {
		host := *in.Host
		s.Host = &host
	}
	if first != nil {
		s.take(*first)
	}
	if n := len(s.Queue) - 1; first != nil && n > 0 && first.ID == s.GoOnID() && s.Queue[n].ID == first.ID {
		s.Queue = slices.Concat(s.Queue[n:], s.Queue[:n]) // what was cut off is gone on with first
	}
}

func (s *State) claimed(h *Host, failure *ace.Failure) {
	switch s.Host = h; {
	case h != nil || s.Status == Over:
	case failure != nil && failure.Kind == ace.Cancelled:
		s.stop(Stop{Reason: stopCancelled})
	default:
		s.Failure, s.Exit = failure, ace.Failed
	}
}

func (s *State) update(u any) {
	switch u := u.(type) {
	case *Message:
		s.take(*u)
	case *Receive:
		s.ack(u.Ack)
	case *ToolRequest:
		s.request(*u)
	case *Decision:
		s.decide(*u)
	case *Interrupt:
		if s.Current != nil {
			n := Note(*u)
			s.Interrupt = &n
		}
	case *Stop:
		s.stop(*u)
	}
}

// take queues a message, once.
func (s *State) take(m Message) {
	if s.Known(m.ID) {
		return
	}
	s.see(m.ID)
	s.Held, s.HeldBytes = s.Held+1, s.HeldBytes+len(m.Text)
	s.Queue = append(slices.Clone(s.Queue), m)
}

// see remembers an id, with those of all messages that wait.
func (s *State) see(id string) { s.Seen = newest(append(s.Seen, id), MaxSeen+s.Held) }

// Known tells whether a message was taken before.
func (s *State) Known(id string) bool { return slices.Contains(s.Seen, id) }

// Next are the messages of the next turn: one, or all reports of other runs that wait
// behind one another.
func (s *State) Next() []Message {
	size := 0
	for n, m := range s.Queue {
		size += len(m.Text)
		if n > 0 && (!s.Queue[0].Callback || !m.Callback || size > MaxTurnBytes) {
			return s.Queue[:n]
		}
	}
	return s.Queue
}

func (s *State) begin(t TurnInput) {
	s.Turns = t.Turn
	s.Current = &Current{Turn: t.Turn, Messages: t.Messages}
	s.Queue = slices.Clone(s.Queue[min(len(t.Messages), len(s.Queue)):])
	s.Interrupt = nil
	s.Held, s.HeldBytes = len(s.Queue), textBytes(s.Queue)
}

func textBytes(messages []Message) (n int) {
	for _, m := range messages {
		n += len(m.Text)
	}
	return n
}

func (s *State) end(r *TurnResult, failure *ace.Failure) {
	if s.Current == nil {
		return
	}
	if r == nil {
		r = &TurnResult{Status: TurnFailed, Failed: failure, AgentSessionID: s.AgentSessionID, CostSeen: s.CostSeen, UsageSeen: s.UsageSeen}
		if failure != nil && failure.Kind == ace.Cancelled {
			r.Status = TurnInterrupted
		}
	}
	record := TurnRecord{Turn: s.Current.Turn, Status: r.Status, Prompt: promptOf(s.Current.Messages), Callbacks: callbacks(s.Current.Messages),
		From: fromOf(s.Current.Messages), Text: ace.Cut(r.Text, 8*ace.PreviewBytes),
		Usage: r.Usage, DurationMS: r.DurationMS, Attempt: r.Attempt, LogPath: r.LogPath, Log: r.Log, Failure: r.Failed,
		Warm: r.Warm, Recovered: r.Recovered, Continued: r.Continued}
	s.Recent = newest(append(s.Recent, record), MaxRecent)
	for _, o := range r.Messages {
		s.say(o)
	}
	s.sayEnd(record, r)
	if r.AgentSessionID != "" {
		s.AgentSessionID = r.AgentSessionID
	}
	if r.Model != "" {
		s.Model = r.Model
	}
	if r.Version != "" && s.Host != nil {
		host := *s.Host
		host.Version = r.Version
		s.Host = &host
	}
	s.answerAll(*r)
	s.Usage = s.Usage.Add(r.Usage)
	s.CostSeen, s.UsageSeen = r.CostSeen, r.UsageSeen
	s.Failure, s.Interrupt, s.Current = r.Failed, nil, nil
	s.void(turnEnded)
}

func (s *State) sayEnd(record TurnRecord, r *TurnResult) {
	ok := record.Status == TurnCompleted
	o := Out{Kind: OutResult, Text: r.Summary, OK: &ok}
	if record.Failure != nil {
		o.Kind, o.Text = OutError, record.Failure.Message
	}
	o.Turn = record.Turn
	s.say(o)
}

func promptOf(messages []Message) string {
	if len(messages) == 0 {
		return ""
	}
	return ace.Cut(messages[0].Text, ace.PreviewBytes)
}

func callbacks(messages []Message) (n int) {
	for _, m := range messages {
		if m.Callback {
			n++
		}
	}
	return n
}

func fromOf(messages []Message) string {
	if len(messages) == 0 {
		return ""
	}
	return messages[0].From
}

// stopCancelled is why a session stops whose workflow is cancelled.
const stopCancelled = "cancelled"

func (s *State) stop(n Stop) {
	if s.Stop == nil {
		note := Note(n)
		s.Stop = &note
	}
}

// Finish says how a session that has stopped ended, from what is known of it.
func (s *State) finish() {
	if s.Exit == ace.Running {
		if s.Exit = ace.Success; s.Stop != nil && s.Stop.Reason == stopCancelled {
			s.Exit = ace.Cancelled
		}
	}
	s.void(turnEnded)
	if s.Status != Over {
		s.say(Out{Kind: OutEnded, Turn: s.Turns, Text: string(s.Exit)})
	}
	s.Status = Over
}

func (s *State) close(f Fact) {
	if f.Exit != ace.Success && s.Exit == ace.Running {
		s.Exit, s.Failure = f.Exit, f.Failure
	}
	s.finish()
}

// settle says what the session is about now.
func (s *State) settle() {
	switch {
	case s.Status == Over:
	case s.Exit != ace.Running && s.Current == nil:
		s.finish()
	case s.Stop != nil && s.Current == nil && len(s.Running) == 0:
		s.finish()
	case s.Stop != nil:
		s.Status = Stopping
		s.void(turnEnded)
	case s.Host == nil:
		s.Status = Starting
	case len(s.Pending) > 0:
		s.Status = Waiting
	case s.Current != nil:
		s.Status = Working
	default:
		s.Status = Idle
	}
}

// Carry is the state that the next run of the session begins with. Nothing may be under
// way.
func (s *State) Carry() *State {
	c := *s
	return &c
}
