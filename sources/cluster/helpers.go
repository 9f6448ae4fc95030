package cluster

import (
	"context"
	"errors"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"acescope/engine/temporal/history"
)

// First returns the first element, or nil.
func First[T any](list []*T) *T {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// ClosesRun reports whether an event of this type is the last of a run.
func ClosesRun(t enumspb.EventType) bool {
	_, closes := history.CloseStatus(t)
	return closes
}

// Join joins two texts with a colon, unless one is empty.
func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}

// Drain calls fn for each event until it returns an error.
func Drain(iter client.HistoryEventIterator, fn func(*historypb.HistoryEvent) error) error {
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return err
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// PlainError returns the text of an error in one line, without gRPC's wrapping, and without the position of an
// error in a query: the server counts in a longer query than the user's. See [QueryErrorAt].
func PlainError(err error) string {
	if err == nil {
		return ""
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if _, after, ok := strings.Cut(text, "desc = "); ok {
		text = after
	}
	if _, invalid := errors.AsType[*serviceerror.InvalidArgument](err); invalid {
		text, _, _ = strings.Cut(text, " at position ")
	}
	if text == context.DeadlineExceeded.Error() {
		return "no answer in time"
	}
	return text
}

// Milliseconds converts a number of milliseconds.
func Milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// Clock returns until, or now if until is zero.
func Clock(until, now time.Time) time.Time {
	if until.IsZero() {
		return now
	}
	return until
}

// Time limits and intervals of all readers.
const (
	CallTimeout   = 3 * time.Second        // of one call to the server
	QueryTimeout  = 2 * time.Second        // of a query to a worker
	AskTimeout    = time.Second            // of a query for one row of a list
	PublishEvery  = 30 * time.Millisecond  // shortest time between two publications of a history
	QueryPatience = 150 * time.Millisecond // before the fold replaces the answers of a worker
	CursorRest    = 50 * time.Millisecond  // of the cursor on a row, before the row is read
)

// MaxEvents bounds the events of one history.
const MaxEvents = 250_000

// Signal puts a token into a channel with one slot, unless it holds one.
func Signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// DefaultInterval is the time between two readings of the list of runs.
const DefaultInterval = 2 * time.Second
