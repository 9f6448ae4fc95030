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
		b.WriteString(string(r.Status))
		b.WriteString(string(r.Verdict))
	}
	return b.String()
}

// Counts is the number of runs of a list: all, by status, and those with a wrong answer.
type Counts struct {
	Total  int64
	Status map[ace.Status]int64
	Wrong  int64
}

// CountRuns counts the runs that match a query. It makes two calls; on a server that cannot group, one more
// for each status. The total is -1 if the server cannot count the runs; see [VerdictCondition].
func CountRuns(ctx context.Context, c client.Client, query string) (Counts, error) {
	if s, err := divide(query); err != nil || !s.exact() {
		return Counts{Total: -1}, err
	}
	counts, err := countByStatus(ctx, c, query)
	if err != nil && badQuery(err) {
		counts, err = countEach(ctx, c, query) // an old server, or an invalid query
	}
	if err != nil {
		return Counts{}, err
	}
	wrong := history.AttrStatus + ` = "Completed" AND ` +
		equals(ace.AttrExit, "=", []ace.ExitStatus{ace.ExitWrong})
	counts.Wrong, err = Count(ctx, c, And(query, wrong))
	if badQuery(err) {
		err = nil // the attribute does not exist
	}
	return counts, err
}

// countsOf counts the runs of a list that is completely loaded.
func countsOf(rows []Run) Counts {
	counts := Counts{Total: int64(len(rows)), Status: map[ace.Status]int64{}}
	for _, r := range rows {
		counts.Status[r.Status]++
		if r.Status == ace.Completed && r.Verdict == ace.Wrong {
			counts.Wrong++
		}
	}
	return counts
}

// countEach counts each status separately.
func countEach(ctx context.Context, c client.Client, query string) (Counts, error) {
	total, err := Count(ctx, c, query)
	counts := Counts{Total: total, Status: map[ace.Status]int64{}}
	for _, s := range ace.Statuses() {
		if err == nil {
			is := equals(history.AttrStatus, "=", []string{history.ExecutionStatus(s)})
			counts.Status[s], err = Count(ctx, c, And(query, is))
		}
	}
	return counts, err
}

func countByStatus(ctx context.Context, c client.Client, query string) (Counts, error) {
	group := "(" + withoutHousekeeping(query) + ") GROUP BY " + history.AttrStatus
	r, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: group})
	if err != nil {
		return Counts{}, err
	}
	counts := Counts{Total: r.GetCount(), Status: map[ace.Status]int64{}}
	for _, g := range r.GetGroups() {
		var name string
		if len(g.GetGroupValues()) != 1 || json.Unmarshal(history.PayloadJSON(g.GetGroupValues()[0]),
			&name) != nil {
			continue
		}
		if status, err := enumspb.WorkflowExecutionStatusFromString(name); err == nil {
			counts.Status[history.StatusOf(status)] += g.GetCount()
		}
	}
	return counts, nil
}

func badQuery(err error) bool {
	var invalid *serviceerror.InvalidArgument
	return errors.As(err, &invalid)
}
