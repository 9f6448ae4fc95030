package cluster

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Connection is the state of the connection to the server.
type Connection struct {
	State     ConnState
	Mode      string // embedded (this process hosts), attached (another process hosts), remote, or [ModeFile]
	Address   string // for a file its name
	Namespace string
	Since     time.Time
	Err       string // why the state is ConnLost, for the status line
}

// ModeFile is the mode of a console on histories from files, without a server.
const ModeFile = "file"

// ConnState is the state of the connection to the server.
type ConnState string

// States of a connection.
const (
	ConnStarting ConnState = "starting"
	ConnReady    ConnState = "ready"
	ConnLost     ConnState = "lost"
)

// Health is the state of one source, which lasts until it changes.
type Health struct {
	Name  string
	State Severity
	Text  string
	Since time.Time
}

// Problem is an error that was shown.
type Problem struct {
	At   time.Time
	Text string
}

// MaxProblems bounds the list of problems.
const MaxProblems = 100

// Work is a long operation under way, such as reading a history or searching a file.
type Work struct {
	ID    int64
	Label string
	Done  int64
	Total int64 // 0 if unknown
	Since time.Time
}

// Status is the state of a link at one moment. It is immutable.
type Status struct {
	Seq        uint64 // number of changes of all data of the console
	Connection Connection
	Health     []Health
	Problems   []Problem     // newest last, at most [MaxProblems]
	Work       []Work        // under way, newest last
	Paused     bool          // readers do not refresh by themselves
	Interval   time.Duration // between two readings of the list of runs
}

// Link is what all readers of one console share: the server they read from, whether it can be reached, and
// the errors and long operations that the status line shows. Its methods do not block and may be called from
// any goroutine.
type Link struct {
	Deps                  // set before any reader runs
	Now  func() time.Time // for tests
	// called when the server becomes unreachable; may be nil, set before any reader runs
	OnLost func()

	histories historySet
	pace

	changed chan struct{}
	mu      sync.Mutex
	status  Status
	workID  int64
	stops   map[int64]context.CancelFunc // of the work under way, by id
}

// NewLink returns a link that is not connected yet.
func NewLink() *Link {
	return &Link{
		Now:     time.Now,
		changed: make(chan struct{}, 1),
		stops:   map[int64]context.CancelFunc{},
		pace:    pace{used: time.Now()},
		status: Status{Connection: Connection{State: ConnStarting, Since: time.Now()},
			Interval: DefaultInterval},
	}
}

// Changed holds one token after any data of the console has changed.
func (l *Link) Changed() <-chan struct{} { return l.changed }

// Wake announces that data has changed.
func (l *Link) Wake() {
	l.mu.Lock()
	l.status.Seq++
	l.mu.Unlock()
	Signal(l.changed)
}

// Status returns the current state.
func (l *Link) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// update changes the status and announces it. change must replace slices, never write into them.
func (l *Link) update(change func(*Status)) {
	l.mu.Lock()
	change(&l.status)
	l.mu.Unlock()
	l.Wake()
}

// Connection returns the state of the connection.
func (l *Link) Connection() Connection { return l.Status().Connection }

// SetConnection sets the state of the connection.
func (l *Link) SetConnection(c Connection) { l.update(func(s *Status) { s.Connection = c }) }

// Paused reports whether readers should not refresh by themselves.
func (l *Link) Paused() bool { return l.Status().Paused }

// SetPaused stops readers from refreshing by themselves, or lets them refresh again.
func (l *Link) SetPaused(paused bool) { l.update(func(s *Status) { s.Paused = paused }) }

// SetInterval sets the time between two readings of the list of runs.
func (l *Link) SetInterval(d time.Duration) { l.update(func(s *Status) { s.Interval = d }) }

// SetHealth sets the lasting state of one source: whether it works.
func (l *Link) SetHealth(name string, ok bool, text string) {
	l.SetCheck(ToolCheck{name, ErrorUnless(ok), text})
}

// SetCheck sets the lasting state of one source.
func (l *Link) SetCheck(c ToolCheck) {
	l.update(func(s *Status) {
		rows := make([]Health, 0, len(s.Health)+1)
		row := Health{Name: c.Name, State: c.State, Text: c.Text, Since: l.Now()}
		for _, h := range s.Health {
			if h.Name != c.Name {
				rows = append(rows, h)
			} else if h.State == c.State {
				row.Since = h.Since
			}
		}
		s.Health = append(rows, row)
	})
}

// Report adds an error to the list of problems.
func (l *Link) Report(text string) {
	l.update(func(s *Status) {
		rows := append(slices.Clone(s.Problems), Problem{At: l.Now(), Text: text})
		s.Problems = rows[max(0, len(rows)-MaxProblems):]
	})
}

// Away records the outcome of a call: nil if the server answered, otherwise why it cannot be reached.
func (l *Link) Away(err error) {
	c := l.Connection()
	if err == nil {
		if c.State != ConnReady {
			l.update(func(s *Status) {
				s.Connection.State = ConnReady
				s.Connection.Err = ""
				s.Connection.Since = l.Now()
			})
		}
		return
	}
	reason := PlainError(err)
	if c.State == ConnLost && c.Err == reason {
		return
	}
	l.update(func(s *Status) {
		if s.Connection.State != ConnLost {
			s.Connection.State = ConnLost
			s.Connection.Since = l.Now()
		}
		s.Connection.Err = reason
	})
	if l.OnLost != nil {
		l.OnLost()
	}
}

// StartWork shows a long operation. The context ends when the user cancels it, or with its parent. progress
// may be called often; end must be called when the operation is over.
func (l *Link) StartWork(ctx context.Context, label string) (working context.Context,
	progress func(done, total int64), end func()) {
	working, stop := context.WithCancel(ctx)
	var id int64
	l.update(func(s *Status) {
		l.workID++
		id = l.workID
		l.stops[id] = stop
		s.Work = append(slices.Clone(s.Work), Work{ID: id, Label: label, Since: l.Now()})
	})
	return working, func(done, total int64) { l.progress(id, done, total) }, func() { l.endWork(id) }
}

// CancelWork stops the work of an id. It stays in the status until it has ended.
func (l *Link) CancelWork(id int64) {
	l.mu.Lock()
	stop := l.stops[id]
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (l *Link) progress(id, done, total int64) {
	l.update(func(s *Status) {
		s.Work = slices.Clone(s.Work)
		for i := range s.Work {
			if s.Work[i].ID == id {
				s.Work[i].Done = done
				s.Work[i].Total = total
			}
		}
	})
}

func (l *Link) endWork(id int64) {
	l.mu.Lock()
	stop := l.stops[id]
	delete(l.stops, id)
	l.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	l.update(func(s *Status) {
		s.Work = slices.DeleteFunc(slices.Clone(s.Work), func(w Work) bool { return w.ID == id })
		if len(s.Work) == 0 {
			s.Work = nil
		}
	})
}

// Sleep waits, or returns the error of ctx if it ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
