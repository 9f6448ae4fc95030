package llm

import (
	"context"
	"sync"
	"time"

	"acescope/engine/internal/sleep"
	"acescope/engine/learning/model"
)

// limiter delays the requests to a server: to its rate, and until the time that the server asked for.
type limiter struct {
	every time.Duration // between two requests; 0 for no rate

	mu     sync.Mutex
	next   time.Time // when the next request of the rate may start
	paused time.Time // until when the server wants no request
}

func newLimiter(perMinute int) *limiter {
	l := &limiter{}
	if perMinute > 0 {
		l.every = time.Minute / time.Duration(perMinute)
	}
	return l
}

// reserve returns how long a request has to wait, or an error if the server wants none for longer than
// [maxWait].
func (l *limiter) reserve(name string, now time.Time) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := l.paused.Sub(now); left > maxWait {
		e := model.Errorf(model.RateLimited, "%s: the server accepts no request for %s", name,
			left.Round(time.Second))
		e.RetryAfter = left
		return 0, e
	}
	at := now
	for _, t := range []time.Time{l.paused, l.next} {
		if t.After(at) {
			at = t
		}
	}
	l.next = at.Add(l.every)
	return at.Sub(now), nil
}

// pause delays later requests after a server asked for it.
func (l *limiter) pause(err error, now time.Time) {
	e, ok := err.(*model.Error)
	if !ok || e.RetryAfter == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := now.Add(e.RetryAfter); until.After(l.paused) {
		l.paused = until
	}
}

func (l *limiter) wait(ctx context.Context, name string) error {
	d, err := l.reserve(name, time.Now())
	if err != nil || d <= 0 {
		return err
	}
	return sleep.For(ctx, d)
}
