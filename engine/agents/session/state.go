package session

import (
	"cmp"
	"slices"

	"acescope/engine/ace"
)

// Status is the current status of a session.
type Status string

// Session statuses. A waiting session needs the user's decision on a tool call; the agent of a
// blocked one did not get the messages in the queue.
const (
	Starting Status = "starting"
	Idle     Status = "idle"
	Working  Status = "working"
	Waiting  Status = "waiting"
	Blocked  Status = "blocked"
	Stopping Status = "stopping"
	Ended    Status = "ended"
)

// State is the fold of a session's facts and the answer to [QuerySession]. The zero value is
// ready for the first fact. It is bounded and not safe for concurrent use. Its lists and
// pointers are replaced and never modified, so a copy of the struct is a snapshot.
type State struct {
	Input          Input  `json:"input"` // without First and Carried
	Status         Status `json:"status"`
	Host           *Host  `json:"host,omitempty"`
	AgentSessionID string `json:"agent_session_id,omitempty"` // the agent's id of the conversation
	Model          string `json:"model,omitempty"`

	Inbox
	Current *Current     `json:"current,omitempty"`
	Turns   int          `json:"turns"`            // started
	Recent  []TurnRecord `json:"recent,omitempty"` // the newest ended turns

	ToolCalls
	Outbox

	Usage     ace.Usage    `json:"usage"`
	CostSeen  float64      `json:"cost_seen,omitempty"`
	UsageSeen ace.Usage    `json:"usage_seen"`
	Failure   *ace.Failure `json:"failure,omitempty"` // of the session or of its last turn
	Interrupt *Note        `json:"interrupt,omitempty"`
	Stop      *Note        `json:"stop,omitempty"`
	Move      *Move        `json:"move,omitempty"`       // when the current turn has ended
	MovedFrom string       `json:"moved_from,omitempty"` // the previous host's name
	Exit      ace.Status   `json:"workflow_status"`
	Runs      int          `json:"runs"` // workflow runs of the session so far

	Reporting
}

// Current is the turn in progress.
type Current struct {
	Turn       int       `json:"turn"`
	Messages   []Message `json:"messages"`
	Attempt    int32     `json:"attempt,omitempty"` // the newest that requested a tool
	Suspending bool      `json:"cut,omitempty"`     // canceled to continue as a new run
}

// TurnRecord is a turn that has ended.
type TurnRecord struct {
	Turn       int          `json:"turn"`
	Status     TurnStatus   `json:"status"`
	Prompt     string       `json:"prompt"`              // the first message, cut
	Callbacks  int          `json:"callbacks,omitempty"` // messages that were reports of other runs
	From       string       `json:"from,omitempty"`      // sender of the first message
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

	Rebuilt     *Rebuilt `json:"rebuilt,omitempty"`
	Undelivered bool     `json:"undelivered,omitempty"`
	Kept        bool     `json:"kept,omitempty"` // the messages stay in the queue of the blocked session
}

// Open reports whether the session accepts messages.
func (s *State) Open() bool { return s.Status != Stopping && s.Status != Ended }

// turnEnded is the reason for denying the calls that are pending when their turn ends.
const turnEnded = "the turn has ended"

// Apply folds one fact into the state. The facts between two workflow tasks (ends of activities,
// a cancellation, outcomes of reports, signals) commute, except for signals of the same name.
func (s *State) Apply(f Fact) {
	switch f.Kind {
	case FactStarted:
		s.start(*f.Input)
	case FactClaimed:
		s.claimed(f.Host, f.Failure)
	case FactUpdate:
		s.update(f.Update)
	case FactTurnBegan:
		s.beginTurn(*f.Turn)
	case FactTurnEnded:
		s.endTurn(f.Result, f.Failure)
	case FactToolRan:
		s.finished(f.CallID, f.Tool, f.Failure)
	case FactCancelRequested:
		s.stop(Note{Reason: stopCanceled})
	case FactSignal:
		s.signal(f.Signal)
	case FactTurnCancelRequested:
		s.markSuspending()
	case FactReported:
		s.reportSent(f.Message)
	case FactReportUndelivered:
		s.ReportsUndelivered++
	case FactClosed:
		if f.Exit.Bad() && s.Exit == ace.Running {
			s.Exit, s.Failure = f.Exit, f.Failure
		}
		s.finish()
	}
	s.updateStatus()
}

func (s *State) start(in Input) {
	first, carried := in.First, in.Carried
	in.First, in.Carried = nil, nil
	if carried != nil {
		*s = *carried
	} else {
		*s = State{Status: Starting, AgentSessionID: in.AgentSessionID, Model: in.Model, Exit: ace.Running}
		if in.Host != nil {
			s.Host = new(*in.Host)
		}
	}
	s.Input = in
	s.Runs++
	if first == nil {
		return
	}
	s.enqueue(*first)
	last := len(s.Queue) - 1
	if last > 0 && first.ID == s.ResumeMessageID() && s.Queue[last].ID == first.ID {
		s.Queue = slices.Concat(s.Queue[last:], s.Queue[:last]) // resume the suspended turn first
	}
}

func (s *State) claimed(h *Host, failure *ace.Failure) {
	s.Host = h
	switch {
	case h != nil || s.Status == Ended:
	case failure != nil && failure.Kind == ace.Canceled:
		s.stop(Note{Reason: stopCanceled})
	default:
		s.Failure, s.Exit = failure, ace.Failed
	}
}

func (s *State) update(u any) {
	switch u := u.(type) {
	case *Message:
		s.enqueue(*u)
	case *Receive:
		s.ack(u.Ack)
	case *ToolRequest:
		s.requestTool(*u)
	case *Decision:
		s.decide(*u)
	case *Interrupt:
		if s.Current != nil {
			s.Interrupt = new(Note(*u))
		}
	case *Stop:
		s.stop(Note(*u))
	case *Move:
		s.Move = u
		s.move()
	}
}

func (s *State) beginTurn(t TurnInput) {
	s.Turns = t.Turn
	s.Current = &Current{Turn: t.Turn, Messages: t.Messages}
	s.take(len(t.Messages))
	s.Interrupt = nil
}

func (s *State) endTurn(r *TurnResult, failure *ace.Failure) {
	if s.Current == nil {
		return
	}
	if r == nil {
		r = &TurnResult{Status: TurnFailed, Failed: failure, CostSeen: s.CostSeen, UsageSeen: s.UsageSeen}
		if failure != nil && failure.Kind == ace.Canceled {
			r.Status = TurnInterrupted
		}
		r.Undelivered = r.Status == TurnFailed && s.Input.Revision > 0
	}
	moves := s.Move != nil && r.Status != TurnCompleted
	record := newTurnRecord(s.Current, r)
	record.Kept = !moves && r.Undelivered && s.keepsMessages()
	s.Recent = newest(append(s.Recent, record), MaxRecent)
	for _, o := range r.Messages {
		s.emit(o)
	}
	end := Out{Kind: OutResult, Turn: s.Current.Turn, Text: r.Summary, OK: new(r.Status == TurnCompleted)}
	if r.Failed != nil {
		end.Kind, end.Text = OutError, r.Failed.Message
	}
	s.emit(end)
	s.AgentSessionID = cmp.Or(r.AgentSessionID, s.AgentSessionID)
	s.Model = cmp.Or(r.Model, s.Model)
	if r.Version != "" && s.Host != nil {
		host := *s.Host
		host.Version = r.Version
		s.Host = &host
	}
	switch {
	case moves:
		s.requeue(s.Current.Messages)
	case record.Kept:
		s.requeue(s.Current.Messages)
		s.Blocked = r.Failed
	default:
		s.reportTurn(*r)
	}
	s.Usage = s.Usage.Add(r.Usage)
	s.CostSeen, s.UsageSeen = r.CostSeen, r.UsageSeen
	s.Failure = r.Failed
	s.Interrupt = nil
	s.Current = nil
	s.denyPending(turnEnded)
	s.move()
}

func newTurnRecord(c *Current, r *TurnResult) TurnRecord {
	record := TurnRecord{
		Turn: c.Turn, Status: r.Status, Text: ace.Cut(r.Text, 8*ace.PreviewBytes), Usage: r.Usage,
		DurationMS: r.DurationMS, Attempt: r.Attempt, LogPath: r.LogPath, Log: r.Log, Failure: r.Failed,
		Warm: r.Warm, Recovered: r.Recovered, Continued: r.Continued, Rebuilt: r.Rebuilt,
		Undelivered: r.Undelivered,
	}
	if len(c.Messages) > 0 {
		record.Prompt = ace.Cut(c.Messages[0].Text, ace.PreviewBytes)
		record.From = c.Messages[0].From
	}
	for _, m := range c.Messages {
		if m.Callback {
			record.Callbacks++
		}
	}
	return record
}

// stopCanceled is the reason of the stop of a canceled workflow.
const stopCanceled = "cancelled"

func (s *State) stop(n Note) {
	s.Stop = cmp.Or(s.Stop, &n)
}

// finish ends the session. The exit status is completed unless another one is known.
func (s *State) finish() {
	if s.Exit == ace.Running {
		s.Exit = ace.Completed
		if s.Stop != nil && s.Stop.Reason == stopCanceled {
			s.Exit = ace.Canceled
		}
	}
	s.denyPending(turnEnded)
	if s.Status != Ended {
		s.emit(Out{Kind: OutEnded, Turn: s.Turns, Text: string(s.Exit)})
	}
	s.Status = Ended
}

func (s *State) updateStatus() {
	switch {
	case s.Status == Ended:
	case s.Exit != ace.Running && s.Current == nil:
		s.finish()
	case s.Stop != nil && s.Current == nil && len(s.Running) == 0:
		s.finish()
	case s.Stop != nil:
		s.Status = Stopping
		s.denyPending(turnEnded)
	case s.Host == nil:
		s.Status = Starting
	case len(s.Pending) > 0:
		s.Status = Waiting
	case s.Current != nil:
		s.Status = Working
	case s.Blocked != nil && len(s.Queue) > 0:
		s.Status = Blocked
	default:
		s.Status = Idle
	}
}

// Carry returns a copy of the state for the next run of the session. No activity may be open.
func (s *State) Carry() *State { return new(*s) }
