package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"acescope/engine/store/bucket"
)

// Pauses before a store that is away is asked again.
const (
	firstStorePause = 500 * time.Millisecond
	maxStorePause   = 10 * time.Second
)

// patience returns for how long an attempt asks a store that is away. The first ones report it soon, so that
// the list of runs says why nothing happens. Together the attempts at a step that may be tried five times
// wait for six minutes.
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

// patiently calls use until its store answers, for as long as the attempt may wait. It must be possible to
// repeat use.
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
		if sleep(ctx, pause); ctx.Err() != nil {
			return result, err
		}
	}
}
