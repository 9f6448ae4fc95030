package sources

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// describe looks at some of the open runs: those that were being retried and those that
// were not looked at for longest.
func (r *runsReader) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, runs.DescribeTimeout)
	defer cancel()
	for _, row := range r.retries.Next(r.list.Rows()) {
		answer, err := r.c.DescribeWorkflowExecution(ctx, row.WorkflowID, row.RunID)
		if err != nil {
			if !cluster.NotFound(err) {
				return // out of time, or away: the rest has its turn next time
			}
			continue
		}
		r.retries.Known[row.RunID] = tryingOf(answer, r.s.now())
	}
}

// tryingOf is the pending activity that was tried most often.
func tryingOf(d *workflowservice.DescribeWorkflowExecutionResponse, at time.Time) runs.Trying {
	t := runs.Trying{At: at}
	for _, a := range d.GetPendingActivities() {
		p := histories.PendingOf(a)
		if p.Attempt > 1 && cmp.Or(cmp.Compare(p.Attempt, t.Attempt), cmp.Compare(p.LastError, t.LastError)) > 0 {
			t.Attempt, t.LastError = p.Attempt, p.LastError
		}
	}
	return t
}

// ListRetrying is [List] for the open runs that have an activity which is being tried
// again. Each open run is a call, as visibility does not tell; at most 10,000 are looked
// at.
func ListRetrying(ctx context.Context, c client.Client, query string, limit int, fn func(runs.Run) error) error {
	given := 0
	err := runs.List(ctx, c, runs.And(query, `ExecutionStatus = "Running"`), runs.DescribeAll, func(r runs.Run) error {
		d, err := c.DescribeWorkflowExecution(ctx, r.WorkflowID, r.RunID)
		if cluster.NotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		t := tryingOf(d, r.Start)
		if t.Attempt <= 1 {
			return nil
		}
		r.Attempt, r.LastError = t.Attempt, t.LastError
		if err := fn(r); err != nil {
			return err
		}
		if given++; limit > 0 && given >= limit {
			return runs.ErrEnough
		}
		return nil
	})
	if errors.Is(err, runs.ErrEnough) {
		return nil
	}
	return err
}
