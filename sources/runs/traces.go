package runs

import (
	"context"
	"slices"
	"time"

	"acescope/sources/cluster"
)

// Traces reads and keeps what the agents of runs did whose memo does not say it.
type Traces interface {
	// Fill sets what is known of a run. It does no I/O.
	Fill(*Run)
	// Unread returns, in their order, the runs to read among the first most ones that have to be read or are
	// known. more reports that there are others.
	Unread(list []Run, most int) (unread []Run, more bool)
	// Read reads the histories of runs. done is called after each, from any goroutine; it may be nil.
	Read(ctx context.Context, list []Run, done func()) error
	// Save keeps what was read for other processes.
	Save() error
}

// Bounds of reading histories for a list.
const (
	maxTraced  = 1000                   // newest runs, besides those on the screen
	traceBatch = 32                     // histories that are read before the list is published
	traceQuiet = 500 * time.Millisecond // after which the progress is published
	saveEvery  = 10 * time.Second
)

// TraceProgress says how far the reading of histories has come.
type TraceProgress struct {
	Done, Total int  // histories; zero unless the reading takes long
	Bounded     bool // those of older runs are not read
}

// traceReader reads histories for a list, batch by batch. It belongs to one goroutine.
type traceReader struct {
	traces Traces
	began  time.Time // of the batches without a pause
	done   int
	saved  time.Time
}

// batch reads the next histories for runs and returns the progress. It returns false if nothing was left to
// read.
func (t *traceReader) batch(ctx context.Context, list []Run) (p TraceProgress, ok bool, err error) {
	unread, more := t.traces.Unread(list, maxTraced)
	p.Bounded = more
	if len(unread) == 0 {
		t.done = 0
		return p, false, nil
	}
	if t.done == 0 {
		t.began = time.Now()
	}
	batch := unread[:min(len(unread), traceBatch)]
	if err = t.traces.Read(ctx, batch, nil); err != nil {
		t.done = 0
		return p, false, err
	}
	if t.done += len(batch); time.Since(t.began) >= traceQuiet && len(unread) > len(batch) {
		p.Done, p.Total = t.done, t.done+len(unread)-len(batch)
	}
	return p, true, nil
}

// save keeps what was read if it was not kept for a while, or now.
func (t *traceReader) save(now bool) {
	if now || time.Since(t.saved) >= saveEvery {
		t.saved = time.Now()
		_ = t.traces.Save() // otherwise the next process reads the histories again
	}
}

// Show names the runs on the screen, by run ID. The histories of these runs are read first, then those of the
// other loaded ones. Nothing is read while no run is shown.
func (f *ListFeed) Show(runIDs []string) {
	f.mu.Lock()
	changed := !slices.Equal(f.shown, runIDs)
	f.shown = runIDs
	f.mu.Unlock()
	if changed {
		cluster.Signal(f.unread)
	}
}

// readTraces reads the histories of the list in the background until ctx ends.
func (f *ListFeed) readTraces(ctx context.Context) {
	t := traceReader{traces: f.Traces}
	defer t.save(true)
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.unread:
		}
		for reads := true; reads && ctx.Err() == nil; {
			reads = f.readBatch(ctx, &t)
		}
		t.save(false)
	}
}

// readBatch reads some histories and publishes the list with them. It returns false if nothing was left.
func (f *ListFeed) readBatch(ctx context.Context, t *traceReader) bool {
	f.mu.Lock()
	shown := f.shown
	f.mu.Unlock()
	list := f.cell.Value()
	if len(shown) == 0 || NeedsTraces(list.Query) { // the search reads them
		return false
	}
	p, ok, err := t.batch(ctx, shownFirst(list.Rows, shown))
	if err != nil || !ok && p == list.Traces {
		return false
	}
	f.cell.Update(func(l *RunList) {
		if l.Traces = p; !ok {
			return
		}
		l.Rows = slices.Clone(l.Rows)
		for i := range l.Rows {
			f.Traces.Fill(&l.Rows[i])
		}
	})
	return ok
}

// shownFirst returns the runs with those on the screen first.
func shownFirst(rows []Run, shown []string) []Run {
	on := map[string]bool{}
	for _, id := range shown {
		on[id] = true
	}
	first, others := make([]Run, 0, len(rows)), make([]Run, 0, len(rows))
	for _, r := range rows {
		if on[r.RunID] {
			first = append(first, r)
		} else {
			others = append(others, r)
		}
	}
	return append(first, others...)
}

// readTraces reads the histories that the query needs, and publishes what they select on the way.
func (r *runsReader) readTraces(ctx context.Context) error {
	if r.feed.Traces == nil || !NeedsTraces(r.query) {
		return nil
	}
	t := traceReader{traces: r.feed.Traces}
	defer t.save(true)
	for {
		p, ok, err := t.batch(ctx, r.list.rows)
		if r.traced = p; err != nil || !ok {
			return err
		}
		r.publish()
	}
}
