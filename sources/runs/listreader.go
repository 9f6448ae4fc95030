package runs

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
)

// Sizes of the reader of a whole list.
const (
	firstPage     = 50  // rows, so that the first line appears early
	atOnce        = 4   // intervals that are read at the same time
	intervalRows  = 800 // expected in an interval: a page, with room for an uneven rate
	intervalPages = 2   // pages of an interval after which the rest is divided again
	// onePass is the limit up to which a list is read page by page, because intervals would be read in vain.
	onePass = 4 * PageSize
)

// listReader reads a list in the server's order. After the first pages it reads intervals of close times,
// several at the same time, because the server needs long for a page, and finds one by its token among all
// that precede it.
//
// PostgreSQL has no index of close times and would read all its rows for each interval. It has one of
// execution times: a run that closed in an interval and took at most usual began its execution in the interval
// or at most usual before it. The few runs that took longer are read at once, and merged.
type listReader struct {
	selection
	c      client.Client
	traces Traces        // of a query that needs histories, otherwise nil
	enough int           // rows after which a list that is read page by page ends; 0 for all rows, in intervals
	usual  time.Duration // longest duration of the runs in intervals; 0 for any
	long   []Run         // the other runs, without those that were passed on
	wg     sync.WaitGroup
	out    chan<- page
}

// page is a part of a list, or why it could not be read.
type page struct {
	runs []Run
	read int  // rows that the server returned
	rest *cut // of the last page of an interval: where the rest begins, nil if nothing is left
	err  error
}

// cut is a place in a list. The runs after it closed at until or earlier; an interval of length width holds
// about intervalRows of them. Nearly all runs before it took at most usual.
type cut struct {
	until        time.Time
	width, usual time.Duration
}

// readPages sends the pages of a list until one has an error or ctx ends, then closes out.
func (l Reader) readPages(ctx context.Context, query string, limit int, out chan<- page) {
	defer close(out)
	s, err := divide(query)
	if err != nil {
		out <- page{err: err}
		return
	}
	r := &listReader{selection: s, c: l.Client, out: out}
	if NeedsTraces(query) {
		r.traces = l.Traces
	}
	switch {
	case limit == 0 || limit > onePass:
	case s.exact():
		r.enough = limit
	default: // rows are left out
		r.enough = math.MaxInt
	}
	defer r.wg.Wait()
	for until := (time.Time{}); ; {
		// Without a lower bound, an interval has the next runs however long ago they closed.
		_, rest, ok := r.pass(ctx, r.interval(ctx, time.Time{}, until))
		switch {
		case !ok:
			return
		case rest == nil:
			r.send(ctx, page{runs: r.long})
			return
		case until.IsZero():
			r.takeLong(ctx, *rest)
		}
		if until, ok = r.parallel(ctx, *rest); !ok {
			return
		}
	}
}

// parallel reads intervals from a cut on, until one is empty or has far more runs than expected. The runs
// that are left then closed at the returned time or before. It returns false after an error.
func (r *listReader) parallel(ctx context.Context, at cut) (time.Time, bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type interval struct {
		pages <-chan page
		width time.Duration
	}
	var ahead []interval
	for gap := false; !gap || len(ahead) > 0; ahead = ahead[1:] {
		for len(ahead) < atOnce && !gap {
			after := at.until.Add(-at.width)
			ahead = append(ahead, interval{r.interval(ctx, after, at.until), at.width})
			at.until = after
		}
		read, rest, ok := r.pass(ctx, ahead[0].pages)
		switch {
		case !ok:
			return at.until, false
		case rest != nil:
			return rest.until, true
		case read == 0:
			gap = true
		}
		at.width = widthFor(ahead[0].width, read)
	}
	return at.until, true
}

// widthFor returns the width of intervals with intervalRows runs, after one of a width had a number of runs.
func widthFor(width time.Duration, rows int) time.Duration {
	const most = 365 * 24 * time.Hour
	ideal := time.Duration(min(float64(width)*intervalRows/float64(max(rows, 1)), float64(most)))
	return min(max(ideal, width/4, time.Microsecond), 4*width)
}

// pass passes the pages of an interval on. It returns how many rows were read and where the rest begins, and
// false after an error or the end of ctx.
func (r *listReader) pass(ctx context.Context, pages <-chan page) (read int, rest *cut, ok bool) {
	for p := range pages {
		p.runs = r.merged(p.runs)
		if !r.send(ctx, p) || p.err != nil {
			return read, nil, false
		}
		read, rest = read+p.read, p.rest
	}
	return read, rest, ctx.Err() == nil
}

// send passes a page on, and returns false if ctx ends.
func (r *listReader) send(ctx context.Context, p page) bool {
	select {
	case r.out <- p:
		return true
	case <-ctx.Done():
		return false
	}
}

// takeLong reads those runs after a cut that took longer than usual, if they fit on a page. The intervals then
// have the other runs only. Runs without a duration, or with a negative one because of clock skew, are long.
func (r *listReader) takeLong(ctx context.Context, at cut) {
	query := closed(withoutHousekeeping(r.server), "<=", at.until)
	query = And(query, fmt.Sprintf(
		"(ExecutionDuration > %d OR ExecutionDuration < 0 OR ExecutionDuration IS NULL)", at.usual))
	rows, next, err := readRows(ctx, r.c, query, PageSize, nil)
	if err != nil || len(next) > 0 { // the intervals read them, or have the same error
		return
	}
	if rows, err = r.kept(ctx, rows); err == nil {
		r.usual, r.long = at.usual, rows
	}
}

// kept returns the rows that belong to the list. It reads the histories that the query needs.
func (r *listReader) kept(ctx context.Context, rows []Run) ([]Run, error) {
	if r.traces != nil {
		unread, _ := r.traces.Unread(rows, len(rows))
		if err := r.traces.Read(ctx, unread, nil); err != nil {
			return nil, err
		}
		for i := range rows {
			r.traces.Fill(&rows[i])
		}
	}
	return r.of(rows), nil
}

// merged adds the long runs that belong between the runs of the next page, or before them.
func (r *listReader) merged(runs []Run) []Run {
	if len(runs) == 0 || len(r.long) == 0 || compareRuns(r.long[0], runs[len(runs)-1]) > 0 {
		return runs
	}
	last := runs[len(runs)-1]
	n := sort.Search(len(r.long), func(i int) bool { return compareRuns(r.long[i], last) > 0 })
	runs = slices.Concat(r.long[:n], runs)
	r.long = r.long[n:]
	slices.SortFunc(runs, compareRuns)
	return runs
}

// interval reads the runs that closed after one time, and at another or before. A zero time is no bound; runs
// without a close time are in the interval without bounds. At most one page is held.
func (r *listReader) interval(ctx context.Context, after, until time.Time) <-chan page {
	pages, size, left := make(chan page), PageSize, math.MaxInt
	if until.IsZero() {
		size = firstPage
	}
	if r.enough > 0 {
		left = r.enough
	}
	query := r.within(after, until)
	r.wg.Go(func() {
		defer close(pages)
		for n, token := 1, []byte(nil); ; n, size = n+1, PageSize {
			rows, next, err := readRows(ctx, r.c, query, min(size, left), token)
			left -= len(rows)
			p := page{read: len(rows), err: err}
			if n >= intervalPages && len(next) > 0 && r.enough == 0 {
				rows, p.rest = cutOff(rows)
			}
			if p.err == nil {
				p.runs, p.err = r.kept(ctx, rows)
			}
			select {
			case pages <- p:
			case <-ctx.Done():
				return
			}
			if token = next; p.err != nil || p.rest != nil || len(next) == 0 || left <= 0 {
				return
			}
		}
	})
	return pages
}

// within returns the query of the runs of an interval.
func (r *listReader) within(after, until time.Time) string {
	query := closed(closed(withoutHousekeeping(r.server), "<=", until), ">", after)
	if r.usual == 0 {
		return query
	}
	query = narrowed(query, fmt.Sprintf("ExecutionDuration >= 0 AND ExecutionDuration <= %d", r.usual))
	if after.IsZero() {
		return query
	}
	// The database may round times.
	began, closed := after.Add(-r.usual-time.Second), until.Add(time.Second)
	return narrowed(query, "ExecutionTime > "+quoteTime(began)+" AND ExecutionTime <= "+quoteTime(closed))
}

// closed narrows a query to runs that closed before or after a time, unless it is zero.
func closed(query, operator string, at time.Time) string {
	if at.IsZero() {
		return query
	}
	return narrowed(query, "CloseTime "+operator+" "+quoteTime(at))
}

func quoteTime(t time.Time) string { return Quote(t.UTC().Format(time.RFC3339Nano)) }

// usualDuration returns a duration that few runs exceed.
func usualDuration(rows []Run) time.Duration {
	var took []time.Duration
	for _, r := range rows {
		took = append(took, r.Close.Sub(r.Start))
	}
	slices.Sort(took)
	return max(2*took[len(took)*99/100], time.Minute)
}

// cutOff cuts off the runs of a page that closed at the time of the last one, because more may follow. If it
// cannot do that, it returns the page and nil.
func cutOff(rows []Run) ([]Run, *cut) {
	newestFirst := func(a, b Run) int { return b.Close.Compare(a.Close) }
	if len(rows) == 0 || rows[0].Open() || !slices.IsSortedFunc(rows, newestFirst) {
		return rows, nil
	}
	last := rows[len(rows)-1].Close
	n := slices.IndexFunc(rows, func(r Run) bool { return r.Close.Equal(last) })
	if n == 0 {
		return rows, nil
	}
	width := widthFor(rows[0].Close.Sub(last), n)
	return rows[:n], &cut{until: last, width: width, usual: usualDuration(rows)}
}
