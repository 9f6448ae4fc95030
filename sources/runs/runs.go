package runs

import (
	"context"
	"regexp"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/sources/cluster"
)

// Rhythm of the list reader.
const (
	MaxTimeout = 30 * time.Second // that a query which timed out is given in the end
	CountEvery = 10 * time.Second
	LostRetry  = 300 * time.Millisecond
)

// ListOnce reads one page of the runs that match a query.
func ListOnce(ctx context.Context, c client.Client, query string, size int, token []byte) ([]Run, []byte, error) {
	return ListPageOf(ctx, c, query, size, token, cluster.CallTimeout)
}

func ListPageOf(ctx context.Context, c client.Client, query string, size int, token []byte, timeout time.Duration) ([]Run, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: work(query), PageSize: int32(size), NextPageToken: token})
	if err != nil {
		return nil, nil, err
	}
	infos := answer.GetExecutions()
	runs := make([]Run, 0, len(infos))
	for _, info := range infos {
		runs = append(runs, runOf(info))
	}
	return runs, answer.GetNextPageToken(), nil
}

// Newest narrows a visibility query to the newest of the runs that continue one another as
// new, so that what a person started is listed once. One that speaks of runs as the server
// sees them is left as it is.
func Newest(query string) string {
	if asServer.MatchString(query) {
		return query
	}
	return And(query, `ExecutionStatus != "ContinuedAsNew"`)
}

var asServer = regexp.MustCompile(`(?i)\b(ExecutionStatus|RunId)\b`)

// OfNewest asks for the newest runs only. A query that the server does not take so is asked
// as it is: what is wrong with it is then told in the words of whoever wrote it.
func OfNewest(query, newest string, ask func(query string) error) error {
	err := ask(newest)
	if err != nil && badQuery(err) && newest != query {
		err = ask(query)
	}
	return err
}

// And narrows a visibility query.
func And(query, more string) string {
	if strings.TrimSpace(query) == "" {
		return more
	}
	return "(" + query + ") AND " + more
}
