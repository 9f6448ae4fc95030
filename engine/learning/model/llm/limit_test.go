package llm

import (
	"testing"
	"time"

	"acescope/engine/learning/model"
)

// Requests keep the rate. While a server wants none, requests wait for a short time or fail, with the time
// left.
func TestLimiter(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newLimiter(30)
	for i, want := range []time.Duration{0, 2 * time.Second, 4 * time.Second} {
		if d, err := l.reserve("p", now); d != want || err != nil {
			t.Errorf("request %d waits %s, %v", i, d, err)
		}
	}
	now = now.Add(time.Hour)
	if d, err := l.reserve("p", now); d != 0 || err != nil {
		t.Errorf("after a pause: %s, %v", d, err)
	}
	l = newLimiter(0)
	l.pause(&model.Error{Kind: model.RateLimited, RetryAfter: time.Minute}, now)
	// an earlier time changes nothing
	l.pause(&model.Error{Kind: model.RateLimited, RetryAfter: time.Second}, now)
	_, err := l.reserve("p", now.Add(10*time.Second))
	if e, ok := err.(*model.Error); !ok || e.Kind != model.RateLimited || e.RetryAfter != 50*time.Second {
		t.Errorf("%v", err)
	}
	for range 2 {
		if d, err := l.reserve("p", now.Add(57*time.Second)); d != 3*time.Second || err != nil {
			t.Errorf("%s, %v", d, err)
		}
	}
}
