package session

import (
	"fmt"
	"slices"
	"strings"

	"acescope/engine/ace"
)

// Reply is a report that a workflow waits for.
type Reply struct {
	To     string `json:"to"` // the id of the workflow
	Report Report `json:"report"`
}

// CutTurn is a turn that was cut off. Those who wait for it are told when the turn that goes
// on with it ends.
type CutTurn struct {
	Messages []Message `json:"messages"` // without their texts
	Report   Report    `json:"report"`   // how far it came
	// Off tells that it is not gone on with.
	Off bool `json:"off,omitempty"`
}

// GoesOn tells whether the turn that was cut off is to be gone on with.
func (s *State) GoesOn() bool { return s.Cut != nil && !s.Cut.Off && s.Stop == nil && s.Status != Over }

// GoOnID is the id of the message by which it is.
func (s *State) GoOnID() string {
	if s.Cut == nil {
		return ""
	}
	return UUID("cut", s.Input.SessionID, fmt.Sprint(s.Cut.Report.Turn))
}

// cutOff notes that the turn under way is told to end, though nobody asked for that.
func (s *State) cutOff() {
	if s.Current == nil || s.Interrupt != nil || s.Stop != nil {
		return
	}
	c := *s.Current
	c.Cut = true
	s.Current = &c
}

// drop gives up a turn that was cut off before it was gone on with.
func (s *State) drop() {
	id := s.GoOnID()
	c := *s.Cut
	c.Off = true
	s.Cut = &c
	s.Queue = slices.DeleteFunc(slices.Clone(s.Queue), func(m Message) bool { return m.ID == id })
}

// answerAll owes the reports of the turn that has ended, and of what it went on with; of a
// turn that was cut off, they are owed by the one that goes on with it.
func (s *State) answerAll(r TurnResult) {
	report := Report{SessionID: s.Input.SessionID, Turn: s.Current.Turn, Status: ReportStatus(r.Status), Text: ace.Cut(r.Text, MaxText/4),
		Usage: r.Usage, DurationMS: r.DurationMS, Log: r.Log, LogPath: r.LogPath, Failure: r.Failed}
	messages := s.Current.Messages
	if s.Cut != nil && !s.Cut.Off {
		report.Usage, report.DurationMS = report.Usage.Add(s.Cut.Report.Usage), report.DurationMS+s.Cut.Report.DurationMS
		messages = slices.Concat(s.Cut.Messages, messages)
		s.Cut = nil
	}
	if s.Current.Cut && r.Status == TurnInterrupted {
		s.Cut = &CutTurn{Messages: bare(messages), Report: report, Off: s.Interrupt != nil}
		return
	}
	for _, reply := range repliesTo(messages, report) {
		s.owe(reply)
	}
}

// bare are messages without their texts.
func bare(messages []Message) []Message {
	list := make([]Message, 0, len(messages))
	for _, m := range messages {
		list = append(list, Message{ID: m.ID, From: m.From, Callback: m.Callback, ReplyTo: m.ReplyTo})
	}
	return list
}

// repliesTo are the replies to those of the messages that have somebody who waits.
func repliesTo(messages []Message, report Report) (list []Reply) {
	for _, m := range messages {
		if m.ReplyTo == "" {
			continue
		}
		report.MessageID = m.ID
		list = append(list, Reply{To: m.ReplyTo, Report: report})
		report.Usage = ace.Usage{}
	}
	return list
}

// owe has a report wait to be sent. Its place does not depend on when it came.
func (s *State) owe(r Reply) {
	at, _ := slices.BinarySearchFunc(s.Reports, r.Report.MessageID, func(b Reply, id string) int { return strings.Compare(b.Report.MessageID, id) })
	s.Reports = slices.Insert(slices.Clone(s.Reports), at, r)
}

// NextReport is the report that is to be sent next; false where there is none. What waits
// for the agent, or was cut off, is reported when the session is over.
func (s *State) NextReport() (Reply, bool) {
	if len(s.Reports) > 0 {
		return s.Reports[0], true
	}
	if s.Cut != nil && (s.Cut.Off || s.Status == Over) {
		if list := repliesTo(s.Cut.Messages, s.Cut.Report); len(list) > 0 {
			return list[0], true
		}
	}
	if s.Status != Over {
		return Reply{}, false
	}
	for _, m := range s.Queue {
		if m.ReplyTo != "" {
			return Reply{To: m.ReplyTo, Report: Report{MessageID: m.ID, SessionID: s.Input.SessionID, Status: ReportEnded, Failure: s.ended()}}, true
		}
	}
	return Reply{}, false
}

// ended says why the session ended before the agent had a message.
func (s *State) ended() *ace.Failure {
	if s.Exit == ace.Failed && s.Failure != nil {
		return s.Failure
	}
	return &ace.Failure{Kind: ace.Failed, Type: TypeNotTaken, Message: "the session ended before the agent had the message"}
}

// reported forgets a report that was sent, and with it the message that waits in a session
// that is over.
func (s *State) reported(id string) {
	s.Told++
	if i := slices.IndexFunc(s.Reports, func(r Reply) bool { return r.Report.MessageID == id }); i >= 0 {
		s.Reports = slices.Delete(slices.Clone(s.Reports), i, i+1)
		return
	}
	is := func(m Message) bool { return m.ID == id && m.ReplyTo != "" }
	if s.Cut != nil && slices.ContainsFunc(s.Cut.Messages, is) {
		c := *s.Cut
		c.Messages = slices.DeleteFunc(slices.Clone(c.Messages), is)
		c.Report.Usage = ace.Usage{}
		s.Cut = &c
		return
	}
	if i := slices.IndexFunc(s.Queue, is); i >= 0 {
		s.Queue = slices.Delete(slices.Clone(s.Queue), i, i+1)
		s.Dropped++
	}
}

// Left is how many messages the session's end left over, and what else was dropped.
func (s *State) Left() int {
	if s.Status != Over {
		return s.Dropped
	}
	return s.Dropped + len(s.Queue)
}
