package session

import (
	"fmt"
	"slices"

	"acescope/engine/ace"
)

// Intake is the part of a [State] that deduplicates and bounds incoming messages.
type Intake struct {
	Seen []string `json:"seen,omitempty"` // the newest ids of accepted messages
	// Held and HeldBytes measure the queue, including the messages withdrawn from it since the
	// last turn started.
	Held      int `json:"held,omitempty"`
	HeldBytes int `json:"held_bytes,omitempty"`
	// Dropped counts signals that were not accepted, and messages with a ReplyTo that the agent
	// never had because the session ended.
	Dropped   int      `json:"dropped_messages,omitempty"`
	Withdrawn []string `json:"withdrawn,omitempty"` // the newest ids of withdrawn messages
}

// HasSeen reports whether a message with the id was accepted before.
func (n *Intake) HasSeen(id string) bool { return slices.Contains(n.Seen, id) }

// markSeen remembers an id, besides the ids of all waiting messages.
func (n *Intake) markSeen(id string) { n.Seen = newest(append(n.Seen, id), MaxSeen+n.Held) }

// TypeNotAccepted is the failure type of a message that was not accepted.
const TypeNotAccepted = "NotTaken"

// CheckMessage returns why the session cannot accept the message now, or nil.
func (s *State) CheckMessage(m Message) error {
	if s.HasSeen(m.ID) {
		return nil
	}
	size, waiting := len(m.Text), 0
	for _, q := range s.Queue {
		if !q.Callback { // callbacks must not crowd out the user's messages
			size += len(q.Text)
			waiting++
		}
	}
	switch {
	case !s.Open():
		return fmt.Errorf("the session is %s and accepts no more messages; start a new one", s.Status)
	case waiting >= MaxQueue || size > MaxQueueBytes || s.Held >= MaxHeld:
		return fmt.Errorf("%d messages are already waiting; let the agent answer first", len(s.Queue))
	}
	return m.check()
}

// enqueue adds a message to the queue unless it was accepted before.
func (s *State) enqueue(m Message) {
	if s.HasSeen(m.ID) {
		return
	}
	s.markSeen(m.ID)
	s.Held++
	s.HeldBytes += len(m.Text)
	s.Queue = append(slices.Clone(s.Queue), m)
	s.Blocked = nil
}

// Deliverable reports whether a message waits that the agent can get now.
func (s *State) Deliverable() bool { return len(s.Queue) > 0 && s.Blocked == nil }

// NextMessages returns the messages of the next turn: one message, or consecutive callbacks.
func (s *State) NextMessages() []Message {
	size := 0
	for n, m := range s.Queue {
		size += len(m.Text)
		if n > 0 && (!s.Queue[0].Callback || !m.Callback || size > MaxTurnBytes) {
			return s.Queue[:n]
		}
	}
	return s.Queue
}

// signal applies a signal. A signal cannot be rejected: if it is invalid, it is counted, and the
// workflow that waits for a report receives one.
func (s *State) signal(v any) {
	switch v := v.(type) {
	case *Message:
		s.deliver(*v)
	case *Withdraw:
		s.withdraw(*v)
	case *TurnAttempt:
		s.supersede(ToolRequest{Turn: v.Turn, Attempt: v.Attempt})
	default:
		s.Dropped++
	}
}

func (s *State) deliver(m Message) {
	if s.HasSeen(m.ID) {
		return
	}
	if err := s.checkDelivery(&m); err != nil {
		s.Dropped++
		if m.ID == "" || len(m.ID) > MaxID {
			return
		}
		s.markSeen(m.ID)
		s.reportUnanswered(m, ReportFailed, notAccepted(err.Error()))
		return
	}
	s.enqueue(m)
	if slices.Contains(s.Withdrawn, m.ID) {
		s.withdrawQueued(len(s.Queue) - 1)
	}
}

// checkDelivery returns why a signaled message cannot be accepted. It does not consider whether
// the session is open: a message that waits when the session ends is reported as not answered,
// regardless of when it arrived. If space is short, it cuts the text of callbacks.
func (s *State) checkDelivery(m *Message) error {
	if err := m.check(); err != nil {
		return err
	}
	if m.Callback && s.HeldBytes+len(m.Text) > MaxQueueBytes && len(m.Text) > MaxBrief {
		m.Text = ace.Cut(m.Text, MaxBrief) + "\n[shortened, as so much waits: ask for the run's result]"
	}
	if s.Held >= MaxHeld || s.HeldBytes+len(m.Text) > MaxHeldBytes {
		return fmt.Errorf("%d messages wait already", s.Held)
	}
	return nil
}

func notAccepted(message string) *ace.Failure {
	return &ace.Failure{Kind: ace.Failed, Type: TypeNotAccepted, Message: message}
}

// reportUnanswered queues the report of a message that the agent never gets.
func (s *State) reportUnanswered(m Message, status ReportStatus, failure *ace.Failure) {
	if m.ReplyTo != "" && len(m.ReplyTo) <= MaxID {
		report := Report{MessageID: m.ID, SessionID: s.Input.SessionID, Status: status, Failure: failure}
		s.addReport(Reply{To: m.ReplyTo, Report: report})
	}
}

// withdrawQueued removes a withdrawn message from the queue.
func (s *State) withdrawQueued(i int) {
	m := s.Queue[i]
	s.Queue = without(s.Queue, i)
	s.reportUnanswered(m, ReportInterrupted, nil)
}

// withdraw removes a message from the queue, or interrupts the turn that answers it. The id is
// remembered for a message that has not arrived yet.
func (s *State) withdraw(w Withdraw) {
	if w.MessageID == "" || len(w.MessageID) > MaxID {
		s.Dropped++
		return
	}
	if !slices.Contains(s.Withdrawn, w.MessageID) {
		s.Withdrawn = newest(append(s.Withdrawn, w.MessageID), MaxWithdrawn)
	}
	matches := func(m Message) bool { return m.ID == w.MessageID }
	if i := slices.IndexFunc(s.Queue, matches); i >= 0 {
		s.withdrawQueued(i)
		return
	}
	suspended := s.Suspended != nil && slices.ContainsFunc(s.Suspended.Messages, matches)
	switch {
	case s.Current != nil && (suspended || slices.ContainsFunc(s.Current.Messages, matches)):
		s.Interrupt = &w.Note
	case suspended:
		s.abandonSuspended()
	}
}
