package activity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/model"
)

// settle makes a provider's error one that Temporal understands: its type says what kind
// it is, whether to try again, and when. What a model said that could not be read is kept
// as an artifact, which the error names.
func (a *Activities) settle(ctx context.Context, err error) error {
	var e *model.Error
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case !errors.As(err, &e):
		if errors.Is(err, model.ErrPermanent) {
			return permanent(err)
		}
		return err
	}
	o := temporal.ApplicationErrorOptions{NonRetryable: e.Permanent()}
	if !e.Permanent() {
		o.NextRetryDelay = nextTry(e, activity.GetInfo(ctx).Attempt)
	}
	message := e.Message
	if e.Raw != "" {
		if ref, err := a.Artifacts.PutBytes(ctx, []byte(e.Raw), "text/plain; charset=utf-8"); err == nil {
			o.Details = []any{ref}
			message += fmt.Sprintf(" (all of it: artifact %s, %d bytes)", ref.SHA256, ref.Size)
		}
	}
	return temporal.NewApplicationErrorWithOptions(message, string(e.Kind), o)
}

// nextTry is how long to wait before a step is tried again: what the server asks for,
// otherwise longer with each attempt.
func nextTry(e *model.Error, attempt int32) time.Duration {
	if e.RetryAfter > 0 {
		return e.RetryAfter
	}
	first, longest := 5*time.Second, time.Minute
	switch e.Kind {
	case model.NoKey, model.NoBlueprint: // another worker may have one
		first, longest = time.Second, 2*time.Second
	case model.RateLimited:
		first, longest = 15*time.Second, 2*time.Minute
	}
	return min(first<<min(max(attempt-1, 0), 6), longest)
}
