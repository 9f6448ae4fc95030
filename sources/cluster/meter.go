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

// Bounds of a [Meter]: seconds that it looks back, times kept of one call, and calls that
// are told apart; others are counted together.
const (
	meterSeconds = 60
	meterTimes   = 256
	MeterNames   = 64
	otherCalls   = "other calls"
)

// Meter counts the calls of this process to the server, over the last minute. Give
// [Meter.Intercept] to the client's connection. It is safe for concurrent use.
type Meter struct {
	mu    sync.Mutex
	calls map[string]*callRing
	Now   func() time.Time
}

// NewMeter makes a meter that has counted nothing.
func NewMeter() *Meter { return &Meter{calls: map[string]*callRing{}, Now: time.Now} }

// callRing is the last minute of one call, by second, and its newest times.
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

// CallStat is one kind of call over the last minute.
type CallStat struct {
	Name      string
	Waits     bool // it waits for something to happen, so that its times tell nothing
	PerMinute int
	Failed    int // of them
	P50, P95  time.Duration
	Total     int64 // since the process began
	Failures  int64
	LastError string
	LastAt    time.Time // of that error
}

// Intercept counts one call, each attempt of it by itself. A call that the caller gave up
// is no failure.
func (m *Meter) Intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	began := m.Now()
	err := invoke(ctx, method, req, reply, cc, opts...)
	name, waits := callName(method, req)
	m.count(name, waits, began, m.Now().Sub(began), err)
	return err
}

// callName is the last part of a method, and whether the call waits.
func callName(method string, req any) (string, bool) {
	name := method[strings.LastIndexByte(method, '/')+1:]
	if r, ok := req.(*workflowservice.GetWorkflowExecutionHistoryRequest); ok && r.GetWaitNewEvent() {
		return name + " (waiting)", true
	}
	return name, strings.HasPrefix(name, "Poll")
}

func (m *Meter) count(name string, waits bool, at time.Time, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.calls[name]
	if r == nil {
		if len(m.calls) >= MeterNames {
			name = otherCalls
		}
		if r = m.calls[name]; r == nil {
			r = &callRing{waits: waits}
			m.calls[name] = r
		}
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
	if err != nil && !r.ordinary(err) {
		s.bad++
		r.failed++
		r.lastErr, r.lastAt = PlainError(err), at
	}
	r.times[r.next%meterTimes] = callTime{at, took}
	r.next++
}

// unhandled is how a server says that something came in while a worker decided: it gets
// the task anew with that in it, as always where signals come fast.
const unhandled = "UnhandledCommand"

// ordinary tells whether an error is part of a call's usual course.
func (r *callRing) ordinary(err error) bool {
	switch status.Code(err) {
	case codes.Canceled:
		return true
	case codes.DeadlineExceeded:
		return r.waits
	}
	return strings.Contains(err.Error(), unhandled)
}

// Stats lists the kinds of call, those made most often in the last minute first.
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
	s := CallStat{Name: name, Waits: r.waits, Total: r.total, Failures: r.failed, LastError: r.lastErr, LastAt: r.lastAt}
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
		s.P50, s.P95 = took[max((n*50+99)/100, 1)-1], took[max((n*95+99)/100, 1)-1]
	}
	return s
}
