package sources

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// Bounds of looking for runs that are being retried.
const (
	describeWithin  = 200 // the first open runs that are looked at over time
	describeAtMost  = 24  // at each reading
	describeTimeout = time.Second
)

// RetryState says how far the looking for retries has come.
type RetryState struct {
	Open     int // open runs that are looked at in turn
	LookedAt int // of these, at least once
	Retrying int // of these, being retried when they were last looked at
}

// retries is what is known of open runs' pending activities, which visibility does not
// tell. It belongs to the list reader.
type retries struct {
	known map[string]trying // by run id
	open  int
}

type trying struct {
	at        time.Time
	attempt   int32 // above 1 where it is being retried
	lastError string
}

func (t *retries) state() RetryState {
	s := RetryState{Open: t.open, LookedAt: len(t.known)}
	for _, k := range t.known {
		if k.attempt > 1 {
			s.Retrying++
		}
	}
	return s
}

// describe looks at some of the open runs: those that were being retried and those that
// were not looked at for longest.
func (r *runsReader) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	for _, row := range r.retries.next(r.list.rows()) {
		answer, err := r.c.DescribeWorkflowExecution(ctx, row.WorkflowID, row.RunID)
		if err != nil {
			if !NotFound(err) {
				return // out of time, or away: the rest has its turn next time
			}
			continue
		}
		r.retries.known[row.RunID] = tryingOf(answer, r.s.now())
	}
}

// next picks whom to look at, and forgets runs that are no longer open.
func (t *retries) next(rows []Run) []Run {
	var open []Run
	known := map[string]trying{}
	for _, row := range rows {
		if !row.Open() || len(open) >= describeWithin {
			break
		}
		open = append(open, row)
		if k, ok := t.known[row.RunID]; ok {
			known[row.RunID] = k
		}
	}
	t.known, t.open = known, len(open)
	slices.SortStableFunc(open, func(a, b Run) int { return known[a.RunID].at.Compare(known[b.RunID].at) })
	again, others := []Run{}, []Run{}
	for _, row := range open {
		if known[row.RunID].attempt > 1 && len(again) < describeAtMost/2 {
			again = append(again, row)
		} else {
			others = append(others, row)
		}
	}
	return append(again, others[:min(len(others), describeAtMost-len(again))]...)
}

// tryingOf is the pending activity that was tried most often.
func tryingOf(d *workflowservice.DescribeWorkflowExecutionResponse, at time.Time) trying {
	t := trying{at: at}
	for _, a := range d.GetPendingActivities() {
		p := pendingOf(a)
		if p.Attempt > 1 && cmp.Or(cmp.Compare(p.Attempt, t.attempt), cmp.Compare(p.LastError, t.lastError)) > 0 {
			t.attempt, t.lastError = p.Attempt, p.LastError
		}
	}
	return t
}

// describeAll bounds the open runs that [ListRetrying] looks at.
const describeAll = 10_000

// ListRetrying is [List] for the open runs that have an activity which is being tried
// again. Each open run is a call, as visibility does not tell; at most 10,000 are looked
// at.
func ListRetrying(ctx context.Context, c client.Client, query string, limit int, fn func(Run) error) error {
	given := 0
	err := List(ctx, c, And(query, `ExecutionStatus = "Running"`), describeAll, func(r Run) error {
		d, err := c.DescribeWorkflowExecution(ctx, r.WorkflowID, r.RunID)
		if NotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		t := tryingOf(d, r.Start)
		if t.attempt <= 1 {
			return nil
		}
		r.Attempt, r.LastError = t.attempt, t.lastError
		if err := fn(r); err != nil {
			return err
		}
		if given++; limit > 0 && given >= limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

var errEnough = errors.New("enough")
