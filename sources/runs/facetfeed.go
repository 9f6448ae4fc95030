package runs

import (
	"context"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/feed"
)

// FacetFeed counts the runs of the list's query by the values of their attributes while the counts are shown.
type FacetFeed struct {
	*feed.Feed[struct{}, *Facets]
	link  *cluster.Link
	list  *ListFeed
	known KnownValues // values seen in any list; only the reader uses it
}

// NewFacetFeed returns a feed of the values in a list of runs.
func NewFacetFeed(link *cluster.Link, list *ListFeed) *FacetFeed {
	f := &FacetFeed{link: link, list: list, known: Known()}
	f.Feed = feed.New(link.Wake, f.read)
	f.Want(struct{}{})
	return f
}

// read counts when the query or the list has changed, and at least every facetLatest.
func (f *FacetFeed) read(ctx context.Context, _ struct{}, publish func(*Facets)) {
	f.learn(ctx)
	var at time.Time
	var of, query string
	for first := true; ; first = false {
		l := f.list.Value()
		for _, r := range l.Rows {
			f.known.Add(r)
		}
		age, now := f.link.Now().Sub(at), fingerprint(l.Rows)
		if first || query != l.Query || age >= facetLatest || age >= facetEvery && of != now {
			f.count(ctx, l.Query, publish)
			at, of, query = f.link.Now(), now, l.Query
		}
		if cluster.Sleep(ctx, facetPollRate) != nil {
			return
		}
	}
}

// learn adds the values of the newest experiments.
func (f *FacetFeed) learn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	_ = Learn(ctx, f.link.Client, f.known)
}

func (f *FacetFeed) count(ctx context.Context, query string, publish func(*Facets)) {
	newest := func(query string) string { return newestOnly(f.link, query) }
	fresh, err := countFacets(ctx, f.link.Client, query, newest, f.known)
	if ctx.Err() != nil || f.list.Value().Query != query {
		return
	}
	if err != nil {
		old := Facets{Query: query}
		if last := f.Value(); last != nil {
			old = *last
		}
		old.Err = cluster.PlainError(err)
		publish(&old)
		return
	}
	fresh.Counted = f.link.Now()
	publish(fresh)
}
