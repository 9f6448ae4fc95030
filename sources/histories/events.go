// Package histories reads the history of a run and derives from it what screens show: events, spans, tool
// calls, phases, lineage and differences.
package histories

import (
	"sort"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"acescope/sources/cluster"
)

// EventKind is what an event of a history is about.
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
	return [...]string{"other", "run", "workflow task", "activity", "tool call", "signal", "update", "timer", "child",
		"nexus", "marker", "attributes"}[k]
}

// Event is one event of a history in short. Title and Message are untrusted text and are
// made safe where they are drawn.
type Event struct {
	ID      int64
	Nanos   int64  // when, in nanoseconds of Unix time
	Root    int64  // the event that began what this one goes on with; its own id for others
	Title   string // what it is about, "" where its root tells; see [EventLog.Title]
	Message string
	Type    enumspb.EventType
	Attempt int32 // of an activity or a workflow task, 0 where the event does not say
	Size    int32 // bytes of the whole event as the server stores it
	Kind    EventKind
	Error   bool

	place rawPlace
	calls []toolMark
}

// At is when the event happened, as the server's clock had it.
func (e *Event) At() time.Time { return time.Unix(0, e.Nanos).UTC() }

// Name is the type of the event: "ActivityTaskScheduled".
func (e *Event) Name() string { return e.Type.String() }

// EventLog is the history of one run as far as it is read. It is immutable.
//
// Bounds: at most [MaxEvents] events, the newest; of those the newest that fit in
// [MaxKept] compressed bytes whole, the others in short. What was left out is counted.
type EventLog struct {
	WorkflowID string
	RunID      string
	Left       int64 // events before the first that are not read
	Cut        bool  // they stay unread, for there are more than MaxEvents
	Reading    bool  // they are being read
	Closed     bool  // the run has closed
	Bytes      int64 // of the events as the server stores them
	Kept       int64 // of the same, as they are held here
	Bare       int   // events that are not held whole

	ClockBack int // events that are older than the one before them

	Spans  []Span
	Filter EventFilter
	// Matches are the ids of the events that the filter lets through, ascending; nil where
	// it lets all through.
	Matches []int64
	Took    time.Duration // by the filter, over all events
	Opened  *OpenedEvent  // the event that was asked for last, once it is ready
	Updated time.Time
	Until   time.Time // as [Detail.Until]
	Err     string    // why reading does not go on, "" if it does

	older []Event // those read backwards, newest first
	newer []Event // those that came after them, oldest first
	raw   []rawBlock
}

// Bounds of an [EventLog].
const (
	MaxKept = 64 << 20
)

// Len is how many events are read.
func (l *EventLog) Len() int { return len(l.older) + len(l.newer) }

// Clock is the time as of which the run is shown, as [Detail.Clock].
func (l *EventLog) Clock(now time.Time) time.Time { return cluster.Clock(l.Until, now) }

// Row is an event by its place, the oldest first. It must not be changed.
func (l *EventLog) Row(i int) *Event {
	if n := len(l.older); i < n {
		return &l.older[n-1-i]
	}
	return &l.newer[i-len(l.older)]
}

// Find is the place of the event with an id, or of the first one after it where there is
// none; Len if all come before it.
func (l *EventLog) Find(id int64) int {
	n := l.Len()
	if n == 0 {
		return 0
	}
	// Ids follow one another, so that the place is known; only after a gap it is searched.
	if at := id - l.Row(0).ID; at >= 0 && at < int64(n) && l.Row(int(at)).ID == id {
		return int(at)
	}
	return sort.Search(n, func(i int) bool { return l.Row(i).ID >= id })
}

// Event is the event with an id, nil where it is not read.
func (l *EventLog) Event(id int64) *Event {
	if at := l.Find(id); at < l.Len() && l.Row(at).ID == id {
		return l.Row(at)
	}
	return nil
}

// Title is what an event is about; that of the event it goes on with where it does not
// say itself.
func (l *EventLog) Title(e *Event) string {
	if e.Title != "" || e.Root == e.ID {
		return e.Title
	}
	if root := l.Event(e.Root); root != nil {
		return root.Title
	}
	return ""
}

// Start is when the first event that is read happened.
func (l *EventLog) Start() time.Time {
	if l.Len() == 0 {
		return time.Time{}
	}
	return l.Row(0).At()
}

// Shown is how many events the filter lets through.
func (l *EventLog) Shown() int {
	if l.Matches != nil {
		return len(l.Matches)
	}
	return l.Len()
}

// ShownRow is one of the events that the filter lets through, the oldest first.
func (l *EventLog) ShownRow(i int) *Event {
	if l.Matches == nil {
		return l.Row(i)
	}
	return l.Event(l.Matches[i])
}

// Total is how many events the history has, as far as that is known.
func (l *EventLog) Total() int64 { return l.Left + int64(l.Len()) }

// Related is the event before (by -1) or after (by 1) this one among those that tell of
// the same thing: scheduled, started, completed. 0 where there is none.
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

// NextError is the next event after id, or before it for by -1, that tells of an error
// and that the filter lets through; 0 where there is none.
func (l *EventLog) NextError(id int64, by int) int64 {
	start := l.Find(id)
	if start < l.Len() && l.Row(start).ID == id || by < 0 {
		start += by
	}
	for i := start; i >= 0 && i < l.Len(); i += by {
		if e := l.Row(i); e.Error && l.lets(e.ID) {
			return e.ID
		}
	}
	return 0
}

func (l *EventLog) lets(id int64) bool {
	if l.Matches == nil {
		return true
	}
	at := sort.Search(len(l.Matches), func(i int) bool { return l.Matches[i] >= id })
	return at < len(l.Matches) && l.Matches[at] == id
}

// NextMatch is the next event after id, or before it for by -1, that the filter lets
// through; 0 where there is none.
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

// Matched tells whether the filter lets an event through.
func (l *EventLog) Matched(id int64) bool { return l.lets(id) }
