package cluster

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRestWhileQuiet checks that readers rest longer only while nothing runs and the user presses no key,
// and that both end the rest at once.
func TestRestWhileQuiet(t *testing.T) {
	for _, c := range []struct {
		name  string
		still bool
		stir  func(*Link) // two seconds into the rest
		want  time.Duration
	}{
		{"a run is open", false, nil, time.Second},
		{"nothing runs", true, nil, 10 * time.Second},
		{"a run changes", true, func(l *Link) { l.SetStill(false) }, 2 * time.Second},
		{"a key", true, (*Link).Used, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := NewLink()
				l.SetStill(c.still)
				expectRest(t, l, time.Second) // the console has just been opened
				time.Sleep(quietAfter)
				if c.stir != nil {
					time.AfterFunc(2*time.Second, func() { c.stir(l) })
				}
				expectRest(t, l, c.want)
			})
		})
	}
}

func expectRest(t *testing.T, l *Link, want time.Duration) {
	t.Helper()
	began := time.Now()
	if err := l.Rest(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if got := time.Since(began); got != want {
		t.Errorf("rested for %s, want %s", got, want)
	}
}
