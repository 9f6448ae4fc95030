package telemetry

import (
	"context"
	"sync"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// spanQueue holds at most [maxQueued] spans; the oldest are dropped.
type spanQueue struct {
	mu    sync.Mutex
	spans []*tracepb.Span
	news  chan struct{} // one slot
}

func newSpanQueue() spanQueue { return spanQueue{news: make(chan struct{}, 1)} }

// put appends spans and returns how many were dropped.
func (q *spanQueue) put(spans []*tracepb.Span) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.set(append(q.spans, spans...))
}

// putBack queues spans before the others.
func (q *spanQueue) putBack(spans []*tracepb.Span) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.set(append(spans[:len(spans):len(spans)], q.spans...))
}

func (q *spanQueue) set(spans []*tracepb.Span) (dropped int) {
	dropped = max(len(spans)-maxQueued, 0)
	q.spans = spans[dropped:]
	select {
	case q.news <- struct{}{}:
	default:
	}
	return dropped
}

// next removes and returns the first spans, at most n, or nil.
func (q *spanQueue) next(n int) []*tracepb.Span {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.spans))
	if n == 0 {
		return nil
	}
	first := q.spans[:n:n]
	q.spans = q.spans[n:]
	return first
}

// take is next, but waits for spans. It returns nil when ctx ends.
func (q *spanQueue) take(ctx context.Context, n int) []*tracepb.Span {
	for ctx.Err() == nil {
		if first := q.next(n); first != nil {
			return first
		}
		select {
		case <-ctx.Done():
		case <-q.news:
		}
	}
	return nil
}

// clear drops everything and returns how many spans that were.
func (q *spanQueue) clear() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.spans)
	q.spans = nil
	return n
}
