package traces

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Limits of reading.
const (
	atOnce      = 8                // histories
	readTimeout = time.Minute      // of a history
	openEvery   = 5 * time.Second  // an open run is read again
	openShare   = 20               // times as long as the last reading took
	retryAfter  = 30 * time.Second // after a failure
	rareAfter   = 10 * time.Minute // what is deleted or encoded
)

// Reader reads the histories of one namespace into an index. It implements [runs.Traces].
type Reader struct {
	*Index
	Client    client.Client
	Namespace string
	// Most bounds the histories that are read; negative for no bound.
	Most int64
	// Report receives the first failure to read a history that is not one of the connection; it may be nil.
	Report func(error)

	read, skipped atomic.Int64
	reported      sync.Once
}

// NewReader returns a reader without a bound.
func NewReader(x *Index, c client.Client, namespace string) *Reader {
	return &Reader{Index: x, Client: c, Namespace: namespace, Most: -1}
}

// Fill sets what is known of a run. It does no I/O.
func (r *Reader) Fill(run *runs.Run) { r.fill(r.Namespace, run) }

// Unread returns, in their order, the runs to read among the first most ones that have to be read or are known.
// more reports that there are others.
func (r *Reader) Unread(list []runs.Run, most int) (unread []runs.Run, more bool) {
	now, n := time.Now(), 0
	for i := range list {
		if runs.TypeOf(list[i].Type) != runs.OtherType {
			continue
		}
		r.load()
		e, lacks := r.get(r.Namespace, &list[i], now)
		if !lacks && e == (entry{}) {
			continue
		}
		if n++; n > most {
			return unread, true
		}
		if lacks {
			unread = append(unread, list[i])
		}
	}
	return unread, false
}

// Read reads the histories of runs, several at the same time, beginning with the first. done is called after
// each, from any goroutine; it may be nil. It returns an error only if ctx ends or the server is unreachable.
func (r *Reader) Read(ctx context.Context, list []runs.Run, done func()) error {
	calls, reading := errgroup.WithContext(ctx)
	calls.SetLimit(atOnce)
	for i := range list {
		if reading.Err() != nil {
			break
		}
		calls.Go(func() error {
			err := r.readOne(reading, &list[i])
			if done != nil {
				done()
			}
			return err
		})
	}
	return errors.Join(calls.Wait(), ctx.Err())
}

// readOne reads the history of a run.
func (r *Reader) readOne(ctx context.Context, run *runs.Run) error {
	old, unread := r.get(r.Namespace, run, time.Now())
	if !unread {
		return nil
	}
	if r.Most >= 0 && r.read.Add(1) > r.Most {
		r.skipped.Add(1)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	e, err := r.readEntry(ctx, run, old)
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.Canceled), cluster.Unreachable(err) && !cluster.TimedOut(err):
		return err
	case cluster.NotFound(err): // its history is deleted
		e = entry{Traced: old.Traced, due: time.Now().Add(rareAfter)}
	default:
		if r.Report != nil {
			r.reported.Do(func() { r.Report(fmt.Errorf("history of %s: %w", run.WorkflowID, err)) })
		}
		e = entry{Traced: old.Traced, due: time.Now().Add(retryAfter)}
	}
	r.put(r.Namespace, run.RunID, e)
	return nil
}

// readEntry reads the history of a run unless it is that of an open run that has not grown.
func (r *Reader) readEntry(ctx context.Context, run *runs.Run, old entry) (e entry, err error) {
	began := time.Now()
	if run.Open() {
		d, err := r.Client.DescribeWorkflowExecution(ctx, run.WorkflowID, run.RunID)
		if err != nil {
			return e, err
		}
		e.length = d.GetWorkflowExecutionInfo().GetHistoryLength()
	}
	if run.Open() && e.length == old.length {
		e = old
	} else if e.Traced, err = histories.ReadTrace(ctx, r.Client, run.ID()); err == nil {
		e.close, e.took = run.Close, time.Since(began)
	}
	switch {
	case run.Open():
		e.due = time.Now().Add(max(openEvery, openShare*e.took))
	case e.Encoded:
		e.due = time.Now().Add(rareAfter)
	}
	return e, err
}

// Skipped returns the number of runs that were not read because of Most.
func (r *Reader) Skipped() int64 { return r.skipped.Load() }
