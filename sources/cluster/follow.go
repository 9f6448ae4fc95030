package cluster

import (
	"context"
	"errors"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// RetryDelay is the time before the first retry; a follower doubles it up to maxRetryDelay.
const (
	RetryDelay    = 200 * time.Millisecond
	maxRetryDelay = 5 * time.Second
)

// Follow calls fn for every event of a run, recorded and new, in order and once each, until the run closes.
// It retries while the server is unreachable, until ctx ends. away receives each failure, and nil when the
// server answers again; a repeated failure is received once. away may be nil.
func Follow(ctx context.Context, c client.Client, namespace, workflowID, runID string,
	away func(error), fn func(*historypb.HistoryEvent) error) error {
	f := follower{Pages: Pages{c, namespace, workflowID, runID}, away: away}
	for {
		events, more, err := f.next(ctx)
		for _, e := range events {
			if err := fn(e); err != nil {
				return err
			}
		}
		if err != nil || !more {
			return err
		}
	}
}

// follower is a position in the history of a run.
type follower struct {
	Pages
	away  func(error)
	token []byte
	last  int64  // id of the last event returned
	lost  string // the failure that away received last, "" while the server answers
	delay time.Duration
	sleep func(context.Context, time.Duration) error // for tests; nil for Sleep
}

// pause waits before another attempt, longer each time until there is progress.
func (f *follower) pause(ctx context.Context) error {
	f.delay = min(max(2*f.delay, RetryDelay), maxRetryDelay)
	if f.sleep != nil {
		return f.sleep(ctx, f.delay)
	}
	return Sleep(ctx, f.delay)
}

// next returns the new events of the next page, and false after the last page.
func (f *follower) next(ctx context.Context) (events []*historypb.HistoryEvent, more bool, err error) {
	events, token, err := f.Forward(ctx, f.token, true)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, false, err
	case TimedOut(err) && endsWithin(ctx, RetryDelay): // the server ends a call shortly before its deadline
		return nil, true, f.pause(ctx)
	case Temporary(err):
		return nil, true, f.wait(ctx, err)
	case f.token != nil && f.RunID != "" && is[*serviceerror.InvalidArgument](err):
		f.token = nil // the page token is refused, perhaps after a reset: start over and skip known events
		return nil, true, f.pause(ctx)
	default:
		return nil, false, err
	}
	f.back()
	for len(events) > 0 && events[0].GetEventId() <= f.last {
		events = events[1:]
	}
	if len(events) > 0 {
		f.last = events[len(events)-1].GetEventId()
		f.delay = 0
	}
	f.token = token
	return events, len(token) > 0, nil
}

// endsWithin reports whether ctx has a deadline that soon.
func endsWithin(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < d
}

// wait reports a failure, but not its repetitions, and returns when the server answers a description of the
// run again. A poll would return only after the next event.
func (f *follower) wait(ctx context.Context, err error) error {
	for {
		if text := PlainError(err); text != f.lost {
			f.lost = text
			if f.away != nil {
				f.away(err)
			}
		}
		if err := f.pause(ctx); err != nil {
			return err
		}
		asking, cancel := context.WithTimeout(ctx, CallTimeout)
		_, err = f.C.DescribeWorkflowExecution(asking, f.WorkflowID, f.RunID)
		cancel()
		if err == nil || !Temporary(err) {
			f.back()
			f.delay = 0
			return nil
		}
	}
}

func (f *follower) back() {
	if f.lost != "" && f.away != nil {
		f.away(nil)
	}
	f.lost = ""
}

// Temporary reports whether to retry: the server is unreachable or overloaded.
func Temporary(err error) bool { return Unreachable(err) || is[*serviceerror.ResourceExhausted](err) }

// Unreachable reports whether an error means that the server cannot be reached.
func Unreachable(err error) bool {
	return TimedOut(err) || is[*serviceerror.Unavailable](err) || is[*serviceerror.Canceled](err)
}

// TimedOut reports whether an error means that a call took too long.
func TimedOut(err error) bool {
	return is[*serviceerror.DeadlineExceeded](err) || errors.Is(err, context.DeadlineExceeded)
}

// NotFound reports whether an error means that a run does not exist.
func NotFound(err error) bool { return is[*serviceerror.NotFound](err) }

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
