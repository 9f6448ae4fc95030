package runs

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// countKey identifies the list that the counts belong to.
type countKey struct {
	at     time.Time
	newest string
}

func fingerprint(rows []Run) string {
	var b strings.Builder
	for _, r := range rows[:min(len(rows), scrollPage)] {
		b.WriteString(r.RunID)
		b.WriteString(string(r.Exit))
	}
	return b.String()
}

// CountOutcomes counts the runs that match a query: all, and by outcome. It makes three to six calls, because
// the server groups only by its own status, which does not distinguish wrong from correct answers. A server
// without the contract's attribute yields its own status only.
func CountOutcomes(ctx context.Context, c client.Client, query string) (int64, map[ace.ExitStatus]int64, error) {
	is := func(exits ...ace.ExitStatus) (int64, error) {
		return Count(ctx, c, And(query, equals(ace.AttrExit, "=", exits)))
	}
	total, counts, err := countByStatus(ctx, c, query)
	if err != nil && badQuery(err) {
		return countEach(ctx, c, query, is) // an old server, or an invalid query
	}
	if err != nil {
		return 0, nil, err
	}
	wrong, err := is(ace.Wrong)
	if err != nil {
		if badQuery(err) {
			err = nil // the attribute does not exist
		}
		return total, counts, err
	}
	failed, err := is(failedOutcomes...)
	if err != nil {
		return 0, nil, err
	}
	counts[ace.Wrong] = wrong
	counts[ace.Success] -= wrong
	if failed == 0 {
		return total, counts, nil
	}
	return total, counts, countFailed(ctx, c, query, failed, counts, is)
}

// countEach counts each outcome separately, for servers that cannot group.
func countEach(ctx context.Context, c client.Client, query string, is func(...ace.ExitStatus) (int64, error)) (int64, map[ace.ExitStatus]int64, error) {
	total, err := Count(ctx, c, query)
	counts := map[ace.ExitStatus]int64{}
	for _, exit := range ace.ExitStatuses() {
		if err == nil {
			counts[exit], err = is(exit)
		}
	}
	return total, counts, err
}

// countFailed counts failed outcomes: by the attribute, and by the server's status for runs without it.
func countFailed(ctx context.Context, c client.Client, query string, failed int64, counts map[ace.ExitStatus]int64,
	is func(...ace.ExitStatus) (int64, error)) error {
	var ended int64
	for _, exit := range failedOutcomes {
		ended += counts[exit]
	}
	silent := map[ace.ExitStatus]int64{}
	if ended != failed {
		var err error
		_, silent, err = countByStatus(ctx, c, And(query, `ExecutionStatus != "Running" AND (ExitStatus = "running" OR ExitStatus IS NULL)`))
		if err != nil {
			return err
		}
	}
	rest := failed
	for i, exit := range failedOutcomes {
		n := rest
		if i < len(failedOutcomes)-1 {
			var err error
			if n, err = is(exit); err != nil {
				return err
			}
		}
		ended -= silent[exit]
		rest -= n
		counts[exit] = n + silent[exit]
	}
	counts[ace.Success] -= max(failed-ended, 0) // completed runs whose attribute says that they failed
	return nil
}

// failedOutcomes holds the outcomes besides success and wrong.
var failedOutcomes = []ace.ExitStatus{ace.Failed, ace.Canceled, ace.Timeout}

// countByStatus counts the runs: all, and by the outcome that follows from the server's status.
func countByStatus(ctx context.Context, c client.Client, query string) (int64, map[ace.ExitStatus]int64, error) {
	group := "(" + withoutHousekeeping(query) + ") GROUP BY ExecutionStatus"
	r, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: group})
	if err != nil {
		return 0, nil, err
	}
	counts := map[ace.ExitStatus]int64{}
	for _, g := range r.GetGroups() {
		var name string
		if len(g.GetGroupValues()) != 1 || json.Unmarshal(history.PayloadJSON(g.GetGroupValues()[0]), &name) != nil {
			continue
		}
		if status, err := enumspb.WorkflowExecutionStatusFromString(name); err == nil {
			counts[exitOfStatus(status)] += g.GetCount()
		}
	}
	return r.GetCount(), counts, nil
}

func badQuery(err error) bool {
	var invalid *serviceerror.InvalidArgument
	return errors.As(err, &invalid)
}
