package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"acescope/engine/internal/sleep"
	"acescope/engine/store/bucket"
)

// Pauses between requests to a store that does not answer.
const (
	firstStorePause = 500 * time.Millisecond
	maxStorePause   = 10 * time.Second
)

// patience returns how long an attempt waits for a store that does not answer. The first attempts fail soon,
// so that the list of runs shows the reason. Five attempts wait for eleven minutes in all.
func patience(attempt int32) time.Duration {
	switch attempt {
	case 1:
		return 0
	case 2:
		return 5 * time.Second
	case 3:
		return time.Minute
	}
	return 5 * time.Minute
}

// patiently repeats use until its store answers, but no longer than the [patience] of the attempt.
func patiently[T any](ctx context.Context, use func() (T, error)) (T, error) {
	attempt := int32(1)
	if activity.IsActivity(ctx) {
		attempt = activity.GetInfo(ctx).Attempt
	}
	return patientlyFor(ctx, patience(attempt), use)
}

func patientlyFor[T any](ctx context.Context, patience time.Duration, use func() (T, error)) (T, error) {
	end := time.Now().Add(patience)
	for pause := firstStorePause; ; pause = min(2*pause, maxStorePause) {
		result, err := use()
		if !errors.Is(err, bucket.ErrUnavailable) || time.Now().Add(pause).After(end) {
			return result, err
		}
		if sleep.For(ctx, pause) != nil {
			return result, err
		}
	}
}
