package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of a [Meter].
const (
	meterSeconds = 60  // covered time
	meterTimes   = 256 // durations of a kind of call
	MeterNames   = 64  // kinds of calls; further kinds are counted as otherCalls
	otherCalls   = "other calls"
)

// Meter counts the calls of this process to the server over the last minute. Set [Meter.Intercept] as the
// client's interceptor. It is safe for concurrent use.
type Meter struct {
	mu    sync.Mutex
	calls map[string]*callRing
	Now   func() time.Time
}

// NewMeter returns a meter without counts.
func NewMeter() *Meter { return &Meter{calls: map[string]*callRing{}, Now: time.Now} }

type callRing struct {
	seconds [meterSeconds]callSecond
	times   [meterTimes]callTime
	next    int
	total   int64
	failed  int64
	lastErr string
	lastAt  time.Time
	waits   bool
}

type callSecond struct {
	at         int64
	calls, bad int
}

type callTime struct {
	at   time.Time
	took time.Duration
}

// CallStat describes one kind of call over the last minute.
type CallStat struct {
	Name      string    `json:"name"`
	Waits     bool      `json:"waits"` // a long poll, so its duration means nothing
	PerMinute int       `json:"per_minute"`
	Failed    int       `json:"failed"` // of PerMinute
	P50MS     float64   `json:"p50_ms"`
	P95MS     float64   `json:"p95_ms"`
	Total     int64     `json:"-"` // since the start of the process
	Failures  int64     `json:"-"` // of Total
	LastError string    `json:"last_error,omitempty"`
	LastAt    time.Time `json:"-"` // of LastError
}

// Intercept counts one call, each attempt separately. A call that the caller canceled is not a failure.
func (m *Meter) Intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := m.Now()
	err := invoke(ctx, method, req, reply, cc, opts...)
	name := method[strings.LastIndexByte(method, '/')+1:]
	waits := strings.HasPrefix(name, "Poll")
	if r, ok := req.(*workflowservice.GetWorkflowExecutionHistoryRequest); ok && r.GetWaitNewEvent() {
		name += " (waiting)"
		waits = true
	}
	m.count(name, waits, began, m.Now().Sub(began), err)
	return err
}

func (m *Meter) count(name string, waits bool, at time.Time, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls[name] == nil && len(m.calls) >= MeterNames {
		name = otherCalls
	}
	r := m.calls[name]
	if r == nil {
		r = &callRing{waits: waits}
		m.calls[name] = r
	}
	r.count(at, took, err)
}

func (r *callRing) count(at time.Time, took time.Duration, err error) {
	s := &r.seconds[at.Unix()%meterSeconds]
	if s.at != at.Unix() {
		*s = callSecond{at: at.Unix()}
	}
	s.calls++
	r.total++
	if err != nil && !r.expected(err) {
		s.bad++
		r.failed++
		r.lastErr, r.lastAt = PlainError(err), at
	}
	r.times[r.next%meterTimes] = callTime{at, took}
	r.next++
}

// unhandled is the server's answer if a signal arrives while a worker decides. The server then sends the
// workflow task again, so it is not a failure.
const unhandled = "UnhandledCommand"

// expected reports whether an error is not a failure of the call. That something is not there, or is there
// already, is an answer.
func (r *callRing) expected(err error) bool {
	switch status.Code(err) {
	case codes.Canceled, codes.NotFound, codes.AlreadyExists:
		return true
	case codes.DeadlineExceeded:
		return r.waits
	}
	return strings.Contains(err.Error(), unhandled)
}

// Millis returns a duration in milliseconds, as JSON shows it.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Stats returns the kinds of calls, most frequent in the last minute first.
func (m *Meter) Stats() []CallStat {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Now()
	list := make([]CallStat, 0, len(m.calls))
	for name, r := range m.calls {
		list = append(list, r.stat(name, now))
	}
	slices.SortFunc(list, func(a, b CallStat) int {
		return cmp.Or(b.PerMinute-a.PerMinute, cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (r *callRing) stat(name string, now time.Time) CallStat {
	s := CallStat{Name: name, Waits: r.waits, Total: r.total, Failures: r.failed, LastError: r.lastErr,
		LastAt: r.lastAt}
	for _, sec := range r.seconds {
		if now.Unix()-sec.at < meterSeconds {
			s.PerMinute += sec.calls
			s.Failed += sec.bad
		}
	}
	var took []time.Duration
	for _, t := range r.times[:min(r.next, meterTimes)] {
		if now.Sub(t.at) < meterSeconds*time.Second {
			took = append(took, t.took)
		}
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		percentile := func(p int) float64 { return Millis(took[max((n*p+99)/100, 1)-1]) }
		s.P50MS, s.P95MS = percentile(50), percentile(95)
	}
	return s
}
