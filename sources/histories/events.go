// Package histories reads the history of a run and derives from it what screens show: events, spans, tool
// calls, phases, lineage and differences.
package histories

import (
	"sort"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// EventKind is the subject of an event.
type EventKind uint8

// Event kinds.
const (
	EventOther EventKind = iota
	EventRun
	EventTask // a workflow task
	EventActivity
	EventTool // tool calls that a skills session reported
	EventSignal
	EventUpdate
	EventTimer
	EventChild
	EventNexus
	EventMarker
	EventAttributes // search attributes and memo
)

func (k EventKind) String() string {
	return [...]string{"other", "run", "workflow task", "activity", "tool call", "signal", "update", "timer",
		"child",
		"nexus", "marker", "attributes"}[k]
}

// Event is a summary of a history event. Title and Message are untrusted text.
type Event struct {
	ID      int64
	Nanos   int64  // time, in nanoseconds since 1970
	Root    int64  // the event that scheduled or initiated it; its own id for others
	Title   string // "" if the root has it; see [EventLog.Title]
	Message string
	Type    enumspb.EventType
	Attempt int32 // of an activity or a workflow task, 0 if unknown
	Size    int32 // bytes of the complete event as the server stores it
	Kind    EventKind
	End     history.EndStatus // of the work of Root, or of the run; 0 if the event does not end it
	Error   bool

	calls []callReport
	retry *retryFacts
}

// At returns the server's time of the event.
func (e *Event) At() time.Time { return time.Unix(0, e.Nanos).UTC() }

// Name returns the type of the event: "ActivityTaskScheduled".
func (e *Event) Name() string { return e.Type.String() }

// EventLog is the history of one run, as far as it is read, oldest first. It is immutable.
type EventLog struct {
	WorkflowID string
	RunID      string
	Unread     int64 // unread events before the first
	Reading    bool  // older events are being read
	Closed     bool  // the run has closed
	Bytes      int64 // of the events as the server stores them

	ClockBack int // events that are older than the previous event

	Spans  []Span
	Filter EventFilter
	// Matches holds the ids of the events that pass the filter, ascending; nil without a filter.
	Matches        []int64
	FilterDuration time.Duration // to filter all events
	Opened         *OpenedEvent  // the event that was opened last, nil until it is decoded
	Updated        time.Time
	Until          time.Time // see [Detail.Until]
	Err            string    // why reading has stopped

	rows    []Event
	history *cluster.History
	agent   *agentCalls // of the index, which changes it: only for its goroutine
}

// Len returns the number of events read.
func (l *EventLog) Len() int { return len(l.rows) }

// Clock returns the time as of which the run is shown; see [Detail.Clock].
func (l *EventLog) Clock(now time.Time) time.Time { return cluster.Clock(l.Until, now) }

// Row returns the event at an index, oldest first. It must not be changed.
func (l *EventLog) Row(i int) *Event { return &l.rows[i] }

// Find returns the index of the event with an id, or of the first event after it; otherwise Len.
func (l *EventLog) Find(id int64) int {
	n := l.Len()
	if n == 0 {
		return 0
	}
	// Ids are consecutive, so a search is needed only after a gap.
	if at := id - l.Row(0).ID; at >= 0 && at < int64(n) && l.Row(int(at)).ID == id {
		return int(at)
	}
	return sort.Search(n, func(i int) bool { return l.Row(i).ID >= id })
}

// Event returns the event with an id, or nil if it is not read.
func (l *EventLog) Event(id int64) *Event {
	if at := l.Find(id); at < l.Len() && l.Row(at).ID == id {
		return l.Row(at)
	}
	return nil
}

// Title returns the title of an event, or that of its root, or of the root's root.
func (l *EventLog) Title(e *Event) string {
	if e.Title != "" || e.Root >= e.ID {
		return e.Title
	}
	if root := l.Event(e.Root); root != nil {
		return l.Title(root)
	}
	return ""
}

// Start returns the time of the first event that is read.
func (l *EventLog) Start() time.Time {
	if l.Len() == 0 {
		return time.Time{}
	}
	return l.Row(0).At()
}

// Shown returns the number of events that pass the filter.
func (l *EventLog) Shown() int {
	if l.Matches != nil {
		return len(l.Matches)
	}
	return l.Len()
}

// ShownRow returns the event at an index among those that pass the filter, oldest first.
func (l *EventLog) ShownRow(i int) *Event {
	if l.Matches == nil {
		return l.Row(i)
	}
	return l.Event(l.Matches[i])
}

// Total returns the number of events of the history, as far as it is known.
func (l *EventLog) Total() int64 { return l.Unread + int64(l.Len()) }

// Related returns the previous (by -1) or next (by 1) event with the same root, such as scheduled, started,
// completed; otherwise 0.
func (l *EventLog) Related(id int64, by int) int64 {
	e := l.Event(id)
	if e == nil {
		return 0
	}
	if by < 0 && e.Root == e.ID {
		return 0
	}
	for i := l.Find(id) + by; i >= 0 && i < l.Len(); i += by {
		r := l.Row(i)
		if r.Root == e.Root {
			return r.ID
		}
		if by < 0 && r.ID < e.Root {
			return 0
		}
	}
	return 0
}

// NextError returns the next error after an event, or the previous one (by -1), that passes the filter;
// otherwise 0.
func (l *EventLog) NextError(id int64, by int) int64 {
	start := l.Find(id)
	if start < l.Len() && l.Row(start).ID == id || by < 0 {
		start += by
	}
	for i := start; i >= 0 && i < l.Len(); i += by {
		if e := l.Row(i); e.Error && l.Matched(e.ID) {
			return e.ID
		}
	}
	return 0
}

// Matched reports whether an event passes the filter.
func (l *EventLog) Matched(id int64) bool {
	if l.Matches == nil {
		return true
	}
	at := sort.Search(len(l.Matches), func(i int) bool { return l.Matches[i] >= id })
	return at < len(l.Matches) && l.Matches[at] == id
}

// NextMatch returns the next event, or the previous one (by -1), that passes the filter; otherwise 0.
func (l *EventLog) NextMatch(id int64, by int) int64 {
	n := l.Shown()
	at := sort.Search(n, func(i int) bool { return l.ShownRow(i).ID >= id })
	if by > 0 && at < n && l.ShownRow(at).ID == id || by < 0 {
		at += by
	}
	if at < 0 || at >= n {
		return 0
	}
	return l.ShownRow(at).ID
}
