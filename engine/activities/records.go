package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/model"
)

// recordings stores the requests of steps to models.
type recordings struct {
	*inputs
	off bool
}

// attemptsBefore adds the requests of failed attempts to the recorder and returns the record of the last
// failed attempt, or nil. The requests of an attempt whose process was lost are unknown.
func (c *recordings) attemptsBefore(ctx context.Context, recorder *calls.Recorder) *ace.CallLog {
	var log *ace.CallLog
	if recorder == nil || !activity.HasHeartbeatDetails(ctx) ||
		activity.GetHeartbeatDetails(ctx, &log) != nil ||
		log == nil {
		return nil
	}
	list, err := calls.Read(ctx, c.artifacts.Get, *log)
	if err != nil {
		activity.GetLogger(ctx).Warn("the model requests of earlier attempts are not counted", "error", err)
		return nil
	}
	for _, one := range list {
		recorder.Add(one)
	}
	return log
}

// recording returns a context in which providers record their requests.
func (c *recordings) recording(ctx context.Context) (context.Context, *calls.Recorder) {
	if c.off {
		return ctx, nil
	}
	recorder := new(calls.Recorder)
	return calls.WithRecorder(ctx, recorder), recorder
}

// store stores a record. An error does not fail the phase, because a retry would pay for its requests again.
func (c *recordings) store(ctx context.Context, recorder *calls.Recorder) *ace.CallLog {
	log, err := patiently(ctx, func() (*ace.CallLog, error) {
		return recorder.Store(ctx, c.artifacts.PutBytes, c.secrets.Line)
	})
	if err != nil {
		activity.GetLogger(ctx).Warn("the requests to the model were not recorded", "error", err)
		return nil
	}
	return log
}

// redacted returns the result of a step without secrets.
func redacted[T any](secrets *redact.Redactor, result T) T {
	data, err := json.Marshal(result)
	if err != nil {
		return result
	}
	var clean T
	if line := secrets.Line(data); bytes.Equal(line, data) || json.Unmarshal(line, &clean) != nil {
		return result
	}
	return clean
}

// stepError converts a provider's error to an application error with its kind as type, and
// decides whether and when to retry. It stores an unparsable answer as an artifact. The record of the
// requests may be nil.
func (c *recordings) stepError(ctx context.Context, err error, log *ace.CallLog) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		if errors.Is(err, model.ErrPermanent) {
			return permanent(err)
		}
		return err
	}
	o := temporal.ApplicationErrorOptions{NonRetryable: e.Permanent()}
	if !e.Permanent() {
		o.NextRetryDelay = retryDelay(e, activity.GetInfo(ctx).Attempt)
	}
	message := c.secrets.String(e.Message)
	if e.Raw != "" {
		raw := c.secrets.Bytes([]byte(e.Raw))
		if ref, err := c.artifacts.PutBytes(ctx, raw, "text/plain; charset=utf-8"); err == nil {
			message += fmt.Sprintf(" (full answer: artifact %s, %d bytes)", ref.SHA256, ref.Size)
			o.Details = append(o.Details, ref)
		}
	}
	if log != nil {
		o.Details = append(o.Details, log)
	}
	return temporal.NewApplicationErrorWithOptions(message, string(e.Kind), o)
}

// retryDelay returns the delay that the provider requests, or an exponential one.
func retryDelay(e *model.Error, attempt int32) time.Duration {
	if e.RetryAfter > 0 {
		return e.RetryAfter
	}
	first, longest := 5*time.Second, time.Minute
	switch e.Kind {
	case model.NoKey, model.NoAgent, model.NoBlueprint, model.NoGrader, // another worker may have it
		model.GraderFailed:
		first, longest = time.Second, 2*time.Second
	case model.RateLimited:
		first, longest = 15*time.Second, 2*time.Minute
	}
	return min(first<<min(max(attempt-1, 0), 6), longest)
}
