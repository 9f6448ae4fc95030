package cluster

import (
	"context"
	"errors"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// RetryDelay is how long a follower waits before it asks a server again that is away.
const RetryDelay = 200 * time.Millisecond

// Follow calls fn for every event of a run, the recorded ones first and then each as it
// happens, until the run closes. A server that goes away is asked again until it is
// back or ctx ends, and the reading goes on where it stopped; no event is given twice,
// and they come in order. away, where it is not nil, is told of each failure and, with
// nil, of recovery.
func Follow(ctx context.Context, c client.Client, namespace, workflowID, runID string, away func(error), fn func(*historypb.HistoryEvent) error) error {
	each := func(events []*historypb.HistoryEvent) error {
		for _, e := range events {
			if err := fn(e); err != nil {
				return err
			}
		}
		return nil
	}
	f := Follower{Pages: Pages{c, namespace, workflowID, runID}, Away: away, Fn: each}
	for {
		more, err := f.Page(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// Follower is where a [Follow] stands.
type Follower struct {
	Pages
	Away  func(error)
	Fn    func([]*historypb.HistoryEvent) error // takes a page
	token []byte
	last  int64 // event given last
	lost  bool
}

// Page reads a page and gives its events; false after the last one.
func (f *Follower) Page(ctx context.Context) (bool, error) {
	events, token, err := f.Forward(ctx, f.token, true)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return false, err
	case Passing(err):
		return true, f.wait(ctx, err)
	case f.token != nil && f.RunID != "" && refused(err):
		f.token = nil // from the start again, without those that were given
		return true, nil
	default:
		return false, err
	}
	f.back()
	for len(events) > 0 && events[0].GetEventId() <= f.last {
		events = events[1:]
	}
	if len(events) > 0 {
		f.last = events[len(events)-1].GetEventId()
		if err := f.Fn(events); err != nil {
			return false, err
		}
	}
	f.token = token
	return len(token) > 0, nil
}

// wait tells of a failure and returns when the server answers again. It asks for
// something that is answered at once: a poll would tell only when the run goes on.
func (f *Follower) wait(ctx context.Context, err error) error {
	for {
		if f.lost = true; f.Away != nil {
			f.Away(err)
		}
		select {
		case <-time.After(RetryDelay):
		case <-ctx.Done():
			return ctx.Err()
		}
		asking, cancel := context.WithTimeout(ctx, CallTimeout)
		_, err = f.C.DescribeWorkflowExecution(asking, f.WorkflowID, f.RunID)
		cancel()
		if err == nil || !Passing(err) {
			f.back()
			return nil
		}
	}
}

func (f *Follower) back() {
	if f.lost && f.Away != nil {
		f.Away(nil)
	}
	f.lost = false
}

// Passing tells whether to ask again: the server is away or has too much to do.
func Passing(err error) bool {
	var exhausted *serviceerror.ResourceExhausted
	return Away(err) || errors.As(err, &exhausted)
}

// refused tells whether a server does not take a token, for instance since the history
// has another branch now.
func refused(err error) bool {
	var invalid *serviceerror.InvalidArgument
	return errors.As(err, &invalid)
}

// Away tells whether an error means that the server cannot be reached now, so that
// asking again may help.
func Away(err error) bool {
	var unavailable *serviceerror.Unavailable
	var deadline *serviceerror.DeadlineExceeded
	var canceled *serviceerror.Canceled
	return errors.As(err, &unavailable) || errors.As(err, &deadline) || errors.As(err, &canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

// NotFound tells whether an error means that a run does not exist.
func NotFound(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}
