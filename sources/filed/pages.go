package filed

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
)

const (
	// eventPage is how many events a page has at most.
	eventPage = 1000
	// pollFor is how long a call waits for events that never come, as a server does.
	pollFor = 20 * time.Second
)

// history gives a page of events, the oldest first. Whoever waits for more of a run that
// its file ends before is told why there is none.
func (f *Files) history(ctx context.Context, q *workflowservice.GetWorkflowExecutionHistoryRequest, out *workflowservice.GetWorkflowExecutionHistoryResponse) error {
	r, err := f.wanted(ctx, q.GetExecution())
	if err != nil {
		return err
	}
	n := len(r.events)
	if q.GetHistoryEventFilterType() == enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT {
		out.History = &historypb.History{}
		if !r.open() {
			out.History.Events = r.events[n-1:]
			return nil
		}
		return waitFor(ctx, q.GetWaitNewEvent())
	}
	from, err := place(q.GetNextPageToken(), 0, n)
	if err != nil {
		return err
	}
	follows := q.GetWaitNewEvent() && r.open()
	if from == n && n > 0 && follows {
		if r.broken != "" {
			return serviceerror.NewFailedPrecondition(r.broken)
		}
		if err := waitFor(ctx, true); err != nil {
			return err
		}
	}
	to := min(from+pageSize(q.GetMaximumPageSize()), n)
	out.History = &historypb.History{Events: slices.Clone(r.events[from:to])}
	if to < n || follows {
		out.NextPageToken = token(to)
	}
	return nil
}

// reverse gives a page of events, the newest first.
func (f *Files) reverse(ctx context.Context, q *workflowservice.GetWorkflowExecutionHistoryReverseRequest, out *workflowservice.GetWorkflowExecutionHistoryReverseResponse) error {
	r, err := f.wanted(ctx, q.GetExecution())
	if err != nil {
		return err
	}
	to, err := place(q.GetNextPageToken(), len(r.events), len(r.events))
	if err != nil {
		return err
	}
	from := max(to-pageSize(q.GetMaximumPageSize()), 0)
	page := slices.Clone(r.events[from:to])
	slices.Reverse(page)
	out.History = &historypb.History{Events: page}
	if from > 0 {
		out.NextPageToken = token(from)
	}
	return nil
}

// waitFor waits as long as a server does, or not at all.
func waitFor(ctx context.Context, wait bool) error {
	if !wait {
		return nil
	}
	timer := time.NewTimer(pollFor)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func pageSize(asked int32) int {
	if asked <= 0 || asked > eventPage {
		return eventPage
	}
	return int(asked)
}

func token(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// place is the index that a token names.
func place(token []byte, none, n int) (int, error) {
	if len(token) == 0 {
		return none, nil
	}
	if len(token) == 8 {
		if at := binary.BigEndian.Uint64(token); at <= uint64(n) {
			return int(at), nil
		}
	}
	return 0, serviceerror.NewInvalidArgument("invalid next page token")
}
