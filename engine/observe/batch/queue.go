// Package batch gathers what is to be signalled to a run into batches. It knows no
// Temporal and imports the contract only; whoever signals uses it.
//
// Order: items are sent in the order in which they were added, one batch at a time.
// Bounds: a batch has at most [Max] items and about [MaxBytes] bytes; how much may wait is
// for the caller to bound, by [Queue.Waiting]. Loss: none but what [Queue.Close] is told to
// drop; what becomes of a batch that cannot be sent is for the sender to say.
package batch

import (
	"sync"
	"time"

	"acescope/engine/ace"
)

// Bounds of a batch, in items and in bytes of payload, well under Temporal's 2 MB.
const (
	Max      = 200
	MaxBytes = 512 << 10
)

// Delay is how long the first item of a batch waits for company, after so many batches.
// Each signal costs the server some milliseconds and a run may take 10,000, with four
// events of history each; so a session that goes on and on is told in larger parts. The
// first delay is what a person at the console may notice.
func Delay(sent int) time.Duration {
	switch {
	case sent < 100:
		return 40 * time.Millisecond
	case sent < 500:
		return 250 * time.Millisecond
	}
	return 2 * time.Second
}

// Queue holds what waits to be sent.
type Queue[T any] struct {
	send func([]T)
	rule Rule[T]

	mu      sync.Mutex
	waiting []T
	sending sync.Mutex // one batch at a time, so that order is kept
	timer   *time.Timer
	closed  bool
	sent    int // batches
	last    time.Time
}

// Rule says how items go together.
type Rule[T any] struct {
	// Bytes is how much an item adds to a batch.
	Bytes func(T) int
	// Together tells whether two neighbours may be in one batch; nil for always.
	Together func(a, b T) bool
	// Pace, above 0, sends what comes after a time of quiet at once, and then a batch in so
	// much time at most. Without it the first item of every batch waits for [Delay].
	Pace time.Duration
}

// New makes a queue. send is called from the queue's goroutines, never twice at a time.
func New[T any](rule Rule[T], send func([]T)) *Queue[T] { return &Queue[T]{send: send, rule: rule} }

// Add adds items; a closed queue takes none. It never blocks.
func (q *Queue[T]) Add(items ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.waiting = append(q.waiting, items...)
	q.arm()
}

// Waiting is how many items are not sent yet, without those that are under way.
func (q *Queue[T]) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Idle tells whether nothing waits and nothing is under way.
func (q *Queue[T]) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0 && q.timer == nil
}

// arm is called with the lock held. The timer stays set until its batch was sent.
func (q *Queue[T]) arm() {
	if q.timer != nil || len(q.waiting) == 0 || q.closed {
		return
	}
	wait := Delay(q.sent)
	if q.rule.Pace > 0 {
		wait = q.rule.Pace - time.Since(q.last)
	}
	q.timer = time.AfterFunc(max(wait, 0), q.due)
}

// due sends what waits and lets the rest wait for its own time.
func (q *Queue[T]) due() {
	q.sending.Lock()
	defer q.sending.Unlock()
	q.flush()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timer = nil
	q.arm()
}

// flush sends one batch, if there is one, and tells whether there was.
func (q *Queue[T]) flush() bool {
	q.mu.Lock()
	n := q.fitting(q.waiting)
	items := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	if n > 0 {
		q.sent++
		q.last = time.Now()
	}
	q.mu.Unlock()
	if n > 0 {
		q.send(items)
	}
	return n > 0
}

// fitting is how many of the items make a batch: at least one, if there is one.
func (q *Queue[T]) fitting(items []T) int {
	size := 0
	for n, item := range items {
		size += q.rule.Bytes(item)
		apart := n > 0 && q.rule.Together != nil && !q.rule.Together(items[n-1], item)
		if n == Max || n > 0 && size > MaxBytes || apart {
			return n
		}
	}
	return len(items)
}

// Close ends the queue and returns when nothing is under way any more. What waits is sent
// first, or dropped.
func (q *Queue[T]) Close(drop bool) {
	q.mu.Lock()
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
	if drop {
		q.waiting = nil
	}
	q.mu.Unlock()
	q.sending.Lock()
	defer q.sending.Unlock()
	for q.flush() {
	}
}

// EventBytes is how much a tool event adds to a batch.
func EventBytes(e ace.ToolEvent) int { return len(e.Args) + len(e.Result) + len(e.Error) }
