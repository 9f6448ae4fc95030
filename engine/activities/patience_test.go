package activities

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"acescope/engine/store/bucket"
)

// A store that is away is asked for as long as the attempt may wait; other errors are not repeated.
func TestPatience(t *testing.T) {
	away, other := fmt.Errorf("%w: away", bucket.ErrUnavailable), errors.New("damaged")
	for _, c := range []struct {
		attempt int32
		away    time.Duration // until then
		err     error         // from then on
		want    error
		within  time.Duration
	}{
		{1, time.Second, nil, away, 0},
		{2, 3 * time.Second, nil, nil, 4 * time.Second},
		{3, 2 * time.Minute, nil, away, time.Minute},
		{4, 4 * time.Minute, nil, nil, 4*time.Minute + maxStorePause},
		{9, time.Hour, nil, away, 5 * time.Minute},
		{4, 0, other, other, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, got := patientlyFor(t.Context(), patience(c.attempt), func() (int, error) {
				if time.Since(began) < c.away {
					return 0, away
				}
				return 1, c.err
			})
			took := time.Since(began)
			if !errors.Is(got, c.want) || took > c.within {
				t.Errorf("attempt %d: %v after %s", c.attempt, got, took)
			}
		})
	}
}
