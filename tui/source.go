package tui

import "time"

// Source supplies the state that the shell itself shows, and announces changes of what the views show. Its
// methods return at once; Changed has one slot and fires after newer data is available. Used is called when
// the user presses a key or uses the mouse; data may be read less often while that does not happen.
type Source interface {
	Changed() <-chan struct{}
	Status() *Status
	Used()
}

// Status is the state of the console's data. It is immutable. Its texts need not be safe.
type Status struct {
	Seq        uint64 // number of the newest change
	Connection Connection
	Filter     string           // chooses the runs of the list, "" for all
	Counts     map[string]int64 // of these runs, by [theme.Statuses]
	Wrong      int64            // completed runs with a wrong answer
	Paused     bool             // nothing refreshes by itself
	Quiet      bool             // nothing runs, and the user does nothing
	Interval   time.Duration    // between two refreshes; 0 if nothing refreshes
	Loaded     time.Time        // when the list was read last, zero if never
	Approvals  int              // tool calls and runs that wait for a user
	Unhealthy  string           // what is wrong for longer, "" if nothing is
	Errors     []Error          // newest last
	Work       []Work           // long operations, newest last
}

// Connection is where the data comes from.
type Connection struct {
	Names []string // most general last: namespace, then mode; or the mode and a file
	State string   // as the header shows it
	Ready bool
	Lost  bool // it was ready, or is known to be unreachable
	Live  bool // false for data that cannot change, such as a file
	Hosts bool // the server is part of this process
	Since time.Time
	Err   string // why it is lost
}

// Error is an error that was shown.
type Error struct {
	At   time.Time
	Text string
}

// Work is a long operation under way.
type Work struct {
	ID    int64
	Label string
	Done  int64
	Total int64 // 0 if unknown
	Since time.Time
}

// Rate is what the console drew. PerSecond and Slowest cover the last ten whole seconds.
type Rate struct {
	Frames    uint64
	PerSecond float64
	Slowest   time.Duration // to draw a frame
	Shown     uint64        // changes
	Skipped   uint64        // changes that were replaced before they were shown
}

// stale reports whether the data is old because there is no connection.
func (s *Status) stale() bool { return s != nil && !s.Connection.Ready && !s.Loaded.IsZero() }

// banner returns the problem that the banner under the header names, or "".
func (s *Status) banner() string {
	switch {
	case s == nil:
		return ""
	case s.Connection.Lost:
		return "server unreachable"
	case s.stale():
		return "server starting"
	}
	return ""
}

// cancelWork stops the newest long operation and describes what it did.
func (s *Status) cancelWork(stop func(id int64)) (note string) {
	w, ok := s.newestWork()
	if !ok {
		return "no operation is running"
	}
	stop(w.ID)
	return "stopping: " + w.Label
}

// newestWork returns the newest long operation.
func (s *Status) newestWork() (Work, bool) {
	if s == nil || len(s.Work) == 0 {
		return Work{}, false
	}
	return s.Work[len(s.Work)-1], true
}
