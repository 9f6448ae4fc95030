package session

import (
	"fmt"
	"slices"

	"acescope/engine/ace"
)

// Inbox is the part of a [State] with the messages that wait for the agent. It deduplicates and bounds them.
type Inbox struct {
	Queue   []Message    `json:"queue,omitempty"`
	Blocked *ace.Failure `json:"blocked,omitempty"` // why the messages in the queue are not sent
	Seen    []string     `json:"seen,omitempty"`    // the newest ids of accepted messages
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
func (n *Inbox) HasSeen(id string) bool { return slices.Contains(n.Seen, id) }

// markSeen remembers an id. It keeps the newest MaxSeen ids besides those of the waiting messages.
func (n *Inbox) markSeen(id string) { n.Seen = newest(append(n.Seen, id), MaxSeen+n.Held) }

// TypeNotAccepted is the failure type of a message that was not accepted.
const TypeNotAccepted = "NotTaken"

// CheckMessage returns why the session cannot accept the message now, or nil.
func (s *State) CheckMessage(m Message) error {
	if s.HasSeen(m.ID) {
		return nil
	}
	if !s.Open() {
		return fmt.Errorf("the session is %s and accepts no more messages; start a new one", s.Status)
	}
	if s.isFull(m) {
		return fmt.Errorf("too many messages are already waiting (%d); let the agent answer first", len(s.Queue))
	}
	return m.check()
}

// isFull reports whether too many messages wait to accept one of a user. Callbacks only count toward MaxHeld,
// so that they do not crowd out the user's messages.
func (n *Inbox) isFull(m Message) bool {
	size, waiting := len(m.Text), 0
	for _, q := range n.Queue {
		if !q.Callback {
			size += len(q.Text)
			waiting++
		}
	}
	return waiting >= MaxQueue || size > MaxQueueBytes || n.Held >= MaxHeld
}

// enqueue adds a message to the queue unless it was accepted before.
func (n *Inbox) enqueue(m Message) {
	if n.HasSeen(m.ID) {
		return
	}
	n.markSeen(m.ID)
	n.hold([]Message{m})
	n.Queue = append(slices.Clone(n.Queue), m)
	n.Blocked = nil
}

// Deliverable reports whether a message waits that the agent can get now.
func (n *Inbox) Deliverable() bool { return len(n.Queue) > 0 && n.Blocked == nil }

// NextMessages returns the messages of the next turn: one message, or consecutive callbacks.
func (n *Inbox) NextMessages() []Message {
	size := 0
	for i, m := range n.Queue {
		size += len(m.Text)
		if i > 0 && (!n.Queue[0].Callback || !m.Callback || size > MaxTurnBytes) {
			return n.Queue[:i]
		}
	}
	return n.Queue
}

// take removes the first messages, which the agent gets.
func (n *Inbox) take(count int) {
	n.Queue = slices.Clone(n.Queue[min(count, len(n.Queue)):])
	n.Held, n.HeldBytes = 0, 0
	n.hold(n.Queue)
}

// requeue puts messages back at the head of the queue.
func (n *Inbox) requeue(messages []Message) {
	n.Queue = slices.Concat(messages, n.Queue)
	n.hold(messages)
}

// hold measures messages that are in the queue.
func (n *Inbox) hold(messages []Message) {
	n.Held += len(messages)
	for _, m := range messages {
		n.HeldBytes += len(m.Text)
	}
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
func (n *Inbox) checkDelivery(m *Message) error {
	if err := m.check(); err != nil {
		return err
	}
	if m.Callback && n.HeldBytes+len(m.Text) > MaxQueueBytes && len(m.Text) > MaxBrief {
		// The length of this text decides which messages fit, so histories replay only if it stays the same.
		m.Text = ace.Cut(m.Text, MaxBrief) + "\n[shortened for lack of space: ask for the run's result]"
	}
	if n.Held >= MaxHeld || n.HeldBytes+len(m.Text) > MaxHeldBytes {
		return fmt.Errorf("too many messages are already waiting (%d)", n.Held)
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
