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

// Counting is which list the counts are of.
type Counting struct {
	At     time.Time
	Newest string
}

func Fingerprint(rows []Run) string {
	var b strings.Builder
	for _, r := range rows[:min(len(rows), ListPage)] {
		b.WriteString(r.RunID)
		b.WriteString(string(r.Exit))
	}
	return b.String()
}

// CountOutcomes counts the runs that match a query, all and by outcome. It takes three
// calls where nothing ended badly, else up to six: the server groups by its own status,
// which does not tell a wrong answer from a right one, and not by the attribute that
// does. On a server without the attribute its own status is all there is.
func CountOutcomes(ctx context.Context, c client.Client, query string) (int64, map[ace.ExitStatus]int64, error) {
	is := func(exits ...ace.ExitStatus) (int64, error) {
		return Count(ctx, c, And(query, ace.AttrExit+" IN ("+quoted(exits)+")"))
	}
	total, counts, err := countByStatus(ctx, c, query)
	if err != nil && badQuery(err) {
		return countEach(ctx, c, query, is) // an old server, or the query itself is wrong
	}
	if err != nil {
		return 0, nil, err
	}
	wrong, err := is(ace.Wrong)
	if err != nil {
		if badQuery(err) {
			err = nil // there is no such attribute
		}
		return total, counts, err
	}
	said, err := is(endedBadly...)
	if err != nil {
		return 0, nil, err
	}
	counts[ace.Wrong] = wrong
	counts[ace.Success] -= wrong
	if said == 0 {
		return total, counts, nil
	}
	return total, counts, countBad(ctx, c, query, said, counts, is)
}

// countEach counts outcome by outcome, on a server that does not group.
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

// countBad tells apart how runs ended badly: as they said themselves, and where one said
// nothing, as its server did.
func countBad(ctx context.Context, c client.Client, query string, said int64, counts map[ace.ExitStatus]int64,
	is func(...ace.ExitStatus) (int64, error)) error {
	var ended int64
	for _, exit := range endedBadly {
		ended += counts[exit]
	}
	silent := map[ace.ExitStatus]int64{}
	if ended != said {
		var err error
		_, silent, err = countByStatus(ctx, c, And(query, `ExecutionStatus != "Running" AND (ExitStatus = "running" OR ExitStatus IS NULL)`))
		if err != nil {
			return err
		}
	}
	rest := said
	for i, exit := range endedBadly {
		n := rest
		if i < len(endedBadly)-1 {
			var err error
			if n, err = is(exit); err != nil {
				return err
			}
		}
		ended -= silent[exit]
		rest -= n
		counts[exit] = n + silent[exit]
	}
	counts[ace.Success] -= max(said-ended, 0) // these completed, and say that they did not end well
	return nil
}

// endedBadly are the outcomes besides success and wrong.
var endedBadly = []ace.ExitStatus{ace.Failed, ace.Canceled, ace.Timeout}

func quoted[S ~string](values []S) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, Quote(string(v)))
	}
	return strings.Join(parts, ", ")
}

// countByStatus counts runs, all and by what the server's own status says of the outcome.
func countByStatus(ctx context.Context, c client.Client, query string) (int64, map[ace.ExitStatus]int64, error) {
	group := "(" + work(query) + ") GROUP BY ExecutionStatus"
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
