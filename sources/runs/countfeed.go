package runs

import (
	"context"
	"maps"
	"strings"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// CountFeed counts the runs of several queries while the counts are shown. Its value has the number of runs
// by query, without the queries that the server cannot count.
type CountFeed struct {
	*feed.Feed[string, map[string]int64]
	link *cluster.Link
	list *ListFeed
}

// NewCountFeed returns a feed that counts nothing yet.
func NewCountFeed(link *cluster.Link, list *ListFeed) *CountFeed {
	f := &CountFeed{link: link, list: list}
	f.Feed = feed.New(link.Wake, f.read)
	return f
}

// Count sets the queries to count. None of them has a line break.
func (f *CountFeed) Count(queries []string) { f.Refine(strings.Join(queries, "\n")) }

// Intervals of counting.
const (
	countsEvery  = 2 * time.Second  // shortest, if the list has changed
	countsLatest = 30 * time.Second // longest
)

// read counts when the list has changed, and at least every countsLatest.
func (f *CountFeed) read(ctx context.Context, queries string, publish func(map[string]int64)) {
	var at time.Time
	var of string
	for {
		l := f.list.Value()
		age, now := f.link.Now().Sub(at), l.Query+"\n"+fingerprint(l.Rows)
		if at.IsZero() || age >= countsLatest || age >= countsEvery && of != now {
			f.count(ctx, strings.Split(queries, "\n"), publish)
			at, of = f.link.Now(), now
		}
		if cluster.Sleep(ctx, facetPollRate) != nil {
			return
		}
	}
}

// count counts each query. A query that cannot be counted has no count.
func (f *CountFeed) count(ctx context.Context, queries []string, publish func(map[string]int64)) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	counts := make(map[string]int64, len(queries))
	for _, q := range queries {
		if n, err := Count(ctx, f.link.Client, newestOnly(f.link, q)); err == nil && n >= 0 {
			counts[q] = n
		}
	}
	if ctx.Err() == nil && !maps.Equal(counts, f.Value()) {
		publish(counts)
	}
}
