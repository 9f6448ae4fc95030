package sources

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// readFacets counts while somebody looks: when the query or the list has changed, and now
// and then.
func (s *Store) readFacets(ctx context.Context, d cluster.Deps) {
	known := s.known()
	s.learn(ctx, d.Client, known)
	var at time.Time
	var of, query string
	for first := true; ; first = false {
		l := s.Snapshot().Runs
		for _, r := range l.Rows {
			known.Add(r)
		}
		age, now := s.now().Sub(at), runs.Fingerprint(l.Rows)
		if first || query != l.Query || age >= runs.FacetLatest || age >= runs.FacetEvery && of != now {
			s.countFacets(ctx, d, l.Query, known)
			at, of, query = s.now(), now, l.Query
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(runs.FacetPollRate):
		}
	}
}

// known is what was met before; only the facet reader, of which there is one, adds to it.
func (s *Store) known() runs.KnownValues {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.facets.seen == nil {
		s.facets.seen = runs.Known()
	}
	return s.facets.seen
}

// learn takes up the values of the newest experiments: each task has those of its own.
func (s *Store) learn(ctx context.Context, c client.Client, known runs.KnownValues) {
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	_ = runs.Learn(ctx, c, known)
}

func (s *Store) countFacets(ctx context.Context, d cluster.Deps, query string, known runs.KnownValues) {
	fresh, err := runs.CountFacetsOf(ctx, d.Client, query, s.newest, known)
	if ctx.Err() != nil {
		return
	}
	s.update(func(snap *Snapshot) {
		if snap.Runs.Query != query {
			return
		}
		if err == nil {
			fresh.Counted = s.now()
			snap.Facets = fresh
			return
		}
		old := runs.Facets{Query: query}
		if snap.Facets != nil {
			old = *snap.Facets
		}
		old.Err = cluster.PlainError(err)
		snap.Facets = &old
	})
}

// facetWish is what the facet reader remembers from one look at it to the next.
type facetWish struct {
	seen runs.KnownValues
}
