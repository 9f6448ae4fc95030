package session

import (
	"fmt"
	"slices"
	"strings"

	"acescope/engine/ace"
)

// Reply is a report for a waiting workflow.
type Reply struct {
	To     string `json:"to"` // workflow id
	Report Report `json:"report"`
}

// SuspendedTurn is a turn that was interrupted to continue as a new run, which resumes it. Its
// messages are reported when the resuming turn ends.
type SuspendedTurn struct {
	Messages  []Message `json:"messages"`      // without their texts
	Report    Report    `json:"report"`        // up to the interruption
	Abandoned bool      `json:"off,omitempty"` // it will not be resumed
}

// Reporting is the part of a [State] with the reports that other workflows wait for.
type Reporting struct {
	Reports            []Reply        `json:"reports,omitempty"` // not sent, in the order of the message ids
	ReportsSent        int            `json:"reports_sent,omitempty"`
	ReportsUndelivered int            `json:"reports_unheard,omitempty"` // sent to a workflow that was gone
	Suspended          *SuspendedTurn `json:"cut,omitempty"`
}

// addReport queues a report. Its position does not depend on when it was added.
func (p *Reporting) addReport(r Reply) {
	at, _ := slices.BinarySearchFunc(p.Reports, r.Report.MessageID, func(b Reply, id string) int {
		return strings.Compare(b.Report.MessageID, id)
	})
	p.Reports = slices.Insert(slices.Clone(p.Reports), at, r)
}

// ResumesTurn reports whether the next run of the session must resume the suspended turn.
func (s *State) ResumesTurn() bool {
	return s.Suspended != nil && !s.Suspended.Abandoned && s.Stop == nil && s.Status != Ended
}

// ResumeMessageID returns the id of the message that resumes the suspended turn, or "".
func (s *State) ResumeMessageID() string {
	if s.Suspended == nil {
		return ""
	}
	return UUID("cut", s.Input.SessionID, fmt.Sprint(s.Suspended.Report.Turn))
}

// markSuspending notes that the workflow canceled the current turn without a request to do so.
func (s *State) markSuspending() {
	if s.Current == nil || s.Interrupt != nil || s.Stop != nil || s.Move != nil {
		return
	}
	c := *s.Current
	c.Suspending = true
	s.Current = &c
}

// abandonSuspended gives up the suspended turn before it is resumed.
func (s *State) abandonSuspended() {
	id := s.ResumeMessageID()
	c := *s.Suspended
	c.Abandoned = true
	s.Suspended = &c
	s.Queue = slices.DeleteFunc(slices.Clone(s.Queue), func(m Message) bool { return m.ID == id })
}

// reportTurn queues the reports of the turn that has ended and of the turn that it resumed. If
// the turn was suspended, the resuming turn reports it.
func (s *State) reportTurn(r TurnResult) {
	report := Report{
		SessionID: s.Input.SessionID, Turn: s.Current.Turn, Status: ReportStatus(r.Status),
		Text: ace.Cut(r.Text, MaxText/4), Usage: r.Usage, DurationMS: r.DurationMS,
		Log: r.Log, LogPath: r.LogPath, Failure: r.Failed,
	}
	messages := s.Current.Messages
	if s.Suspended != nil && !s.Suspended.Abandoned {
		report.Usage = report.Usage.Add(s.Suspended.Report.Usage)
		report.DurationMS += s.Suspended.Report.DurationMS
		messages = slices.Concat(s.Suspended.Messages, messages)
		s.Suspended = nil
	}
	if s.Current.Suspending && r.Status == TurnInterrupted {
		s.Suspended = &SuspendedTurn{Messages: stripTexts(messages), Report: report,
			Abandoned: s.Interrupt != nil}
		return
	}
	for _, m := range messages {
		if m.ReplyTo == "" {
			continue
		}
		report.MessageID = m.ID
		s.addReport(Reply{To: m.ReplyTo, Report: report})
		report.Usage = ace.Usage{} // only the first report has the usage
	}
}

func stripTexts(messages []Message) []Message {
	list := make([]Message, 0, len(messages))
	for _, m := range messages {
		list = append(list, Message{ID: m.ID, From: m.From, Callback: m.Callback, ReplyTo: m.ReplyTo})
	}
	return list
}

// firstReply returns the reply to the first message with a ReplyTo.
func firstReply(messages []Message, report Report) (reply Reply, ok bool) {
	for _, m := range messages {
		if m.ReplyTo != "" {
			report.MessageID = m.ID
			return Reply{To: m.ReplyTo, Report: report}, true
		}
	}
	return Reply{}, false
}

// NextReport returns the report to send next; ok is false without a report. Waiting messages
// and a suspended turn are reported when the session has ended.
func (s *State) NextReport() (reply Reply, ok bool) {
	if len(s.Reports) > 0 {
		return s.Reports[0], true
	}
	if s.Suspended != nil && (s.Suspended.Abandoned || s.Status == Ended) {
		if reply, ok := firstReply(s.Suspended.Messages, s.Suspended.Report); ok {
			return reply, true
		}
	}
	if s.Status != Ended {
		return Reply{}, false
	}
	failure := notAccepted("the session ended before the agent had the message")
	if s.Exit == ace.Failed && s.Failure != nil {
		failure = s.Failure
	}
	return firstReply(s.Queue, Report{SessionID: s.Input.SessionID, Status: ReportEnded, Failure: failure})
}

// reportSent removes a report that was sent and, in a session that has ended, its message.
func (s *State) reportSent(id string) {
	s.ReportsSent++
	if i := slices.IndexFunc(s.Reports, func(r Reply) bool { return r.Report.MessageID == id }); i >= 0 {
		s.Reports = without(s.Reports, i)
		return
	}
	matches := func(m Message) bool { return m.ID == id && m.ReplyTo != "" }
	if s.Suspended != nil && slices.ContainsFunc(s.Suspended.Messages, matches) {
		c := *s.Suspended
		c.Messages = slices.DeleteFunc(slices.Clone(c.Messages), matches)
		c.Report.Usage = ace.Usage{}
		s.Suspended = &c
		return
	}
	if i := slices.IndexFunc(s.Queue, matches); i >= 0 {
		s.Queue = without(s.Queue, i)
		s.Dropped++
	}
}

// Undelivered counts the messages that the agent never had: dropped ones and, in a session that
// has ended, those still in the queue.
func (s *State) Undelivered() int {
	if s.Status != Ended {
		return s.Dropped
	}
	return s.Dropped + len(s.Queue)
}
