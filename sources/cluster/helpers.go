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
)

func First[T any](list []*T) *T {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func Closing(t enumspb.EventType) bool {
	switch t {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return true
	}
	return false
}

func Or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func Join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}

// Cut is at most limit bytes of a text, in a string of its own.
func Cut(s string, limit int) string {
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

func Drain(iter client.HistoryEventIterator, last *int64, fn func(*historypb.HistoryEvent) error) error {
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return err
		}
		if e.GetEventId() <= *last {
			continue
		}
		*last = e.GetEventId()
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// PlainError is an error's text in one line, without the wrapping that gRPC adds.
func PlainError(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if _, after, ok := strings.Cut(text, "desc = "); ok {
		text = after
	}
	if text == context.DeadlineExceeded.Error() {
		return "no answer in time"
	}
	return text
}

func TookTooLong(err error) bool {
	var deadline *serviceerror.DeadlineExceeded
	return errors.As(err, &deadline) || errors.Is(err, context.DeadlineExceeded)
}

func Took(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func Clock(until, now time.Time) time.Time {
	if until.IsZero() {
		return now
	}
	return until
}

// Time limits and rhythms that readers share.
const (
	CallTimeout   = 3 * time.Second // of one call to the server
	QueryTimeout  = 2 * time.Second
	AskTimeout    = time.Second
	PublishEvery  = 30 * time.Millisecond  // at most so often a reader publishes what a history says
	QueryPatience = 150 * time.Millisecond // with a worker that answered the last query
	CursorRest    = 50 * time.Millisecond  // before a row under the cursor is read
)

// MaxEvents bounds the events of one history that are read.
const MaxEvents = 250_000

func Signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// DefaultInterval is how often the list of runs is read.
const DefaultInterval = 2 * time.Second
