package session

import (
	"fmt"
	"slices"

	"acescope/engine/ace"
)

// signal takes what was signalled. A signal cannot be refused by an answer: what is no good
// is counted, and told to the one who waits for a report.
func (s *State) signal(v any) {
	switch v := v.(type) {
	case *Message:
		s.deliver(*v)
	case *Withdraw:
		s.withdraw(*v)
	default:
		s.Dropped++
	}
}

func (s *State) deliver(m Message) {
	if s.Known(m.ID) {
		return
	}
	if err := s.checkDelivery(&m); err != nil {
		s.Dropped++
		if m.ID == "" || len(m.ID) > MaxID {
			return
		}
		s.see(m.ID)
		s.never(m, ReportFailed, &ace.Failure{Kind: ace.Failed, Type: TypeNotTaken, Message: err.Error()})
		return
	}
	s.take(m)
	if slices.Contains(s.Withdrawn, m.ID) {
		s.takeOut(len(s.Queue) - 1)
	}
}

// TypeNotTaken is the type of the failure of a message that could not be taken.
const TypeNotTaken = "NotTaken"

// checkDelivery says why a message cannot be taken. It does not look at whether the session
// goes on: what waits at its end was not given to the agent, whenever it came. Where there
// is little room, callbacks are shortened.
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

// never owes a report of a message that the agent never has.
func (s *State) never(m Message, status ReportStatus, failure *ace.Failure) {
	if m.ReplyTo != "" && len(m.ReplyTo) <= MaxID {
		s.owe(Reply{To: m.ReplyTo, Report: Report{MessageID: m.ID, SessionID: s.Input.SessionID, Status: status, Failure: failure}})
	}
}

// takeOut takes a message out of the queue that was withdrawn.
func (s *State) takeOut(i int) {
	m := s.Queue[i]
	s.Queue = slices.Delete(slices.Clone(s.Queue), i, i+1)
	s.never(m, ReportInterrupted, nil)
}

// withdraw takes a message out of the queue, or interrupts the turn that has it. One that
// has not come yet is not taken when it does.
func (s *State) withdraw(w Withdraw) {
	if w.MessageID == "" || len(w.MessageID) > MaxID {
		s.Dropped++
		return
	}
	if !slices.Contains(s.Withdrawn, w.MessageID) {
		s.Withdrawn = newest(append(s.Withdrawn, w.MessageID), MaxWithdrawn)
	}
	is := func(m Message) bool { return m.ID == w.MessageID }
	if i := slices.IndexFunc(s.Queue, is); i >= 0 {
		s.takeOut(i)
		return
	}
	cut := s.Cut != nil && slices.ContainsFunc(s.Cut.Messages, is)
	switch {
	case s.Current != nil && (cut || slices.ContainsFunc(s.Current.Messages, is)):
		n := w.Note
		s.Interrupt = &n
	case cut:
		s.drop()
	}
}
