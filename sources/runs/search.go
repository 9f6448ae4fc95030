package runs

import (
	"context"
)

// maxSearched bounds the runs that a search for a text or a cost holds in memory, about 1.5 kB each.
const maxSearched = 20_000

// pastSearch holds the runs that an earlier search has read, for the next one: all runs once a search has
// read them, otherwise those of the last search.
type pastSearch struct {
	base string // the server's part of its query
	list window
}

// whole reports whether it has all runs.
func (p *pastSearch) whole() bool { return p.base == "" && p.list.whole && !p.list.more() }

// searching reports whether the query has conditions that few runs may meet and that the server cannot
// evaluate. The list then holds all runs that the server selects, and those that the query selects are
// published.
func (r *runsReader) searching() bool { return r.parts.searches }

// base returns the query whose runs the list holds.
func (r *runsReader) base() string {
	if r.searching() {
		return r.parts.server
	}
	return r.query
}

// turn begins another query. A search uses what an earlier one of the same runs, or of all runs, has read.
func (r *runsReader) turn(query string) {
	if r.searching() && (r.base() == "" || !r.past.whole()) {
		r.past = pastSearch{r.base(), r.list}
	}
	r.query, r.live, r.counts, r.slow = query, map[string]progress{}, countKey{}, 0
	r.newest = nil
	r.parts, _ = divide(query) // reading the first page returns the error
	r.list = window{whole: r.searching()}
	if !r.searching() {
		return
	}
	if matches, ok := matcher(r.base()); ok && r.past.whole() {
		r.parts = selection{keep: append(r.parts.keep, matches), searches: true}
	}
	if r.past.list.whole && r.past.base == r.base() {
		r.list = r.past.list
	}
}

// search publishes what is found in memory, then reads what is new and what is left, and publishes on the
// way.
func (r *runsReader) search(ctx context.Context) error {
	if len(r.list.rows) > 0 {
		r.publish()
	}
	err := r.list.refresh(ctx, r.page)
	for err == nil && r.unsearched() {
		r.publish()
		err = r.list.down(ctx, r.page, PageSize)
	}
	return err
}

// unsearched reports whether the search must read on.
func (r *runsReader) unsearched() bool { return r.list.more() && len(r.list.rows) < maxSearched }

// searched sets how far a search has come.
func (r *runsReader) searched(l *RunList) {
	if !r.searching() {
		return
	}
	l.Searched = int64(len(r.list.rows))
	l.More = r.unsearched()
	l.Bounded = r.list.more() && !l.More
}

// selected returns copies of the held rows that belong to the list, with what was read besides visibility.
func (r *runsReader) selected() []Run {
	rows := make([]Run, 0, min(len(r.list.rows), maxHeld))
	for i := range r.list.rows {
		row := r.list.rows[i]
		r.fill(&row)
		if !r.searching() || r.parts.keeps(&row) {
			rows = append(rows, row)
		}
	}
	return rows
}
