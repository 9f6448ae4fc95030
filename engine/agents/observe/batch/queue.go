// Package batch groups items into batches that are signaled to a run. The caller sends the signals.
//
// Order: items are sent in the order in which they were added, one batch at a time. Bounds: a
// batch has at most [Max] items and about [MaxBytes] bytes; [Rule.MaxWaiting] or the caller bounds the
// waiting items. Loss: the items that [Queue.Close] drops and those beyond the bound, which are
// counted; the sender handles batches that cannot be sent.
package batch

import (
	"sync"
	"time"

	"acescope/engine/ace"
)

// Bounds of a batch, well below Temporal's 2 MB.
const (
	Max      = 200       // items
	MaxBytes = 512 << 10 // of payload
)

// Delay returns how long the first item of a batch waits for others, given the number of earlier
// batches. A signal costs the server some milliseconds and four events of history, and a run
// accepts 10,000 of them, so a long session sends larger batches. The first delay is short enough
// for a user at the console.
func Delay(sent int) time.Duration {
	switch {
	case sent < 100:
		return 40 * time.Millisecond
	case sent < 500:
		return 250 * time.Millisecond
	}
	return 2 * time.Second
}

// Queue holds items until they are sent.
type Queue[T any] struct {
	send func([]T)
	rule Rule[T]

	mu      sync.Mutex
	waiting []T
	bytes   int // of the waiting items
	dropped int
	sending sync.Mutex // held while a batch is sent, to keep the order
	timer   *time.Timer
	closed  bool
	sent    int // batches
	last    time.Time
}

// Rule defines the batches of a queue.
type Rule[T any] struct {
	// Bytes returns the size of an item.
	Bytes func(T) int
	// SameBatch reports whether two neighbors may share a batch; nil for always.
	SameBatch func(a, b T) bool
	// MinInterval, if positive, is the minimum time between batches; the first item after a pause
	// is sent at once. Otherwise the first item of every batch waits for [Delay].
	MinInterval time.Duration
	// MaxWaiting, if positive, bounds the bytes of the waiting items. Later ones are dropped.
	MaxWaiting int
}

// New returns a queue. It calls send from its goroutines, one call at a time.
func New[T any](rule Rule[T], send func([]T)) *Queue[T] { return &Queue[T]{send: send, rule: rule} }

// Add adds items. It never blocks. A closed queue ignores them.
func (q *Queue[T]) Add(items ...T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	for _, item := range items {
		size := q.rule.Bytes(item)
		if q.rule.MaxWaiting > 0 && q.bytes+size > q.rule.MaxWaiting {
			q.dropped++
			continue
		}
		q.bytes += size
		q.waiting = append(q.waiting, item)
	}
	q.schedule()
}

// Dropped returns how many items were dropped because too many were waiting.
func (q *Queue[T]) Dropped() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Idle reports whether no items wait or are being sent.
func (q *Queue[T]) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0 && q.timer == nil
}

// schedule sets the timer of the next batch, which stays set until the batch was sent. It is
// called with the lock held.
func (q *Queue[T]) schedule() {
	if q.timer != nil || len(q.waiting) == 0 || q.closed {
		return
	}
	wait := Delay(q.sent)
	if q.rule.MinInterval > 0 {
		wait = q.rule.MinInterval - time.Since(q.last)
	}
	q.timer = time.AfterFunc(max(wait, 0), q.onTimer)
}

func (q *Queue[T]) onTimer() {
	q.sending.Lock()
	defer q.sending.Unlock()
	q.sendBatch()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.timer = nil
	q.schedule()
}

// sendBatch sends one batch and reports whether there was one.
func (q *Queue[T]) sendBatch() bool {
	q.mu.Lock()
	n := q.batchSize(q.waiting)
	items := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	for _, item := range items {
		q.bytes -= q.rule.Bytes(item)
	}
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

// batchSize returns how many of the items form the next batch, at least one.
func (q *Queue[T]) batchSize(items []T) int {
	size := 0
	for n, item := range items {
		size += q.rule.Bytes(item)
		apart := n > 0 && q.rule.SameBatch != nil && !q.rule.SameBatch(items[n-1], item)
		if n == Max || n > 0 && size > MaxBytes || apart {
			return n
		}
	}
	return len(items)
}

// Close sends or drops the waiting items, ends the queue and returns when no send is in progress.
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
	for q.sendBatch() {
	}
}

// EventBytes returns the size of a tool event.
func EventBytes(e ace.ToolEvent) int { return len(e.Args) + len(e.Result) + len(e.Error) }
