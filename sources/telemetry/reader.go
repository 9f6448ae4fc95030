package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// Intervals and bounds of the reader of closed runs.
const (
	readEvery = 5 * time.Second
	// overlap is how far a reading goes back behind the newest known close: visibility lists a run a moment
	// after it closed, and not in order.
	overlap = 15 * time.Second
	// maxCatchUp bounds what a process reads that starts long after its predecessor.
	maxCatchUp = 6 * time.Hour
	batchSize  = 100 // runs whose position is saved at once
	// maxListed bounds the runs of a reading, unless more closed within minWindow.
	maxListed = 10_000
	minWindow = time.Second
)

// reader exports the runs of a namespace as they close. It belongs to one goroutine.
type reader struct {
	deps     cluster.Deps
	position position
	save     func() error // saves the position
	export   func(*record)
	metrics  *Metrics // may be nil
	failures *failures
	log      *slog.Logger
}

// run reads until ctx ends, and then once more, so that the runs that closed last are exported.
func (r *reader) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.failures.report("read closed runs", r.read(ctx))
		_ = cluster.Sleep(ctx, readEvery) // the loop ends with ctx
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRead)
	defer cancel()
	r.failures.report("read the last closed runs", r.read(last))
}

// lastRead bounds the last reading.
const lastRead = 2 * time.Second

// read exports the runs that have closed since the last reading, in the order in which they closed.
func (r *reader) read(ctx context.Context) error {
	began := time.Now()
	for {
		all, err := r.readPart(ctx)
		if err != nil {
			return err
		}
		if all {
			break
		}
	}
	if r.metrics != nil {
		r.metrics.readUntil.Set(float64(began.UnixMilli()) / 1000)
	}
	return nil
}

// readPart exports the first of the runs that have closed since the last reading, and reports whether these
// are all.
func (r *reader) readPart(ctx context.Context) (all bool, err error) {
	until, err := r.window(ctx)
	if err != nil {
		return false, err
	}
	var closed []runs.Run
	query := closedBetween(r.position.Closed.Add(-overlap), until)
	err = runs.List(ctx, r.deps.Client, query, 0, func(row runs.Run) error {
		_, exported := r.position.Runs[row.RunID]
		if !row.Open() && !runs.Housekeeping(row.Type) && !exported {
			closed = append(closed, row)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	slices.SortStableFunc(closed, func(a, b runs.Run) int { return a.Close.Compare(b.Close) })
	for batch := range slices.Chunk(closed, batchSize) {
		if err := r.exportAll(ctx, batch); err != nil {
			return false, err
		}
	}
	if !until.IsZero() && r.position.Closed.Before(until.Add(-time.Nanosecond)) {
		// Other runs closed later, so the server's clock is beyond it.
		r.position.Closed = until.Add(-time.Nanosecond)
	}
	return until.IsZero(), nil
}

// window returns the time before which the next runs closed if not all may be listed at once, otherwise the
// zero time. It compares only times of the server, whose clock may differ from that of this machine.
func (r *reader) window(ctx context.Context) (until time.Time, err error) {
	from := r.position.Closed.Add(time.Nanosecond)
	n, err := runs.Count(ctx, r.deps.Client, closedBetween(from, time.Time{}))
	if err != nil || n <= maxListed {
		return time.Time{}, err
	}
	for length := maxCatchUp; ; {
		until = from.Add(length)
		n, err := runs.Count(ctx, r.deps.Client, closedBetween(from, until))
		switch {
		// or they were deleted meanwhile
		case err == nil && n == 0 && from.Before(time.Now().Add(maxCatchUp)):
			from = until
		case err == nil && n > maxListed && length > minWindow:
			length /= 2
		default:
			return until, err
		}
	}
}

// closedBetween returns the query for the runs that closed from a time on, and before another one unless that
// is zero.
func closedBetween(from, until time.Time) string {
	query := `CloseTime >= "` + from.UTC().Format(time.RFC3339Nano) + `"`
	if !until.IsZero() {
		query += ` AND CloseTime < "` + until.UTC().Format(time.RFC3339Nano) + `"`
	}
	return runs.OfAnyType(query)
}

// exportAll reads the histories of some runs, saves the position behind them, and then exports them: a
// process that is killed in between omits them and does not count them twice.
func (r *reader) exportAll(ctx context.Context, batch []runs.Run) error {
	var records []*record
	var failed error
	for _, row := range batch {
		events, err := r.history(ctx, row)
		if failed = err; err != nil {
			break
		}
		records = append(records, newRecord(row, r.deps.Namespace, events))
		r.position.add(row)
	}
	if len(records) > 0 {
		r.failures.report("save the position of telemetry", r.save())
	}
	for _, c := range records {
		r.export(c)
	}
	return failed
}

// history returns the history of a run. Without a history that can be read, the run is exported as it is
// listed. An error means that the server does not answer.
func (r *reader) history(ctx context.Context, row runs.Run) ([]*historypb.HistoryEvent, error) {
	events, err := cluster.ReadHistory(ctx, r.deps.Client, r.deps.Namespace, row.WorkflowID, row.RunID)
	if err == nil {
		return events, nil
	}
	if ctx.Err() != nil || cluster.Temporary(err) {
		return nil, err
	}
	if r.metrics != nil {
		r.metrics.unread.Inc()
	}
	r.log.Warn("telemetry has no history of a closed run", "workflow", row.WorkflowID, "run", row.RunID,
		"error", err)
	return nil, nil
}

// failures logs each failure and its end, but not repetitions.
type failures struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]string // the failure that was logged, by step
}

func newFailures(log *slog.Logger) *failures { return &failures{log: log, last: map[string]string{}} }

// report logs a failure, or the end of one if err is nil. An end of ctx is no failure.
func (f *failures) report(what string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.last[what]
	switch {
	case errors.Is(err, context.Canceled):
	case err == nil && before != "":
		delete(f.last, what)
		f.log.Info("telemetry works again", "step", what)
	case err != nil && before != cluster.PlainError(err):
		f.last[what] = cluster.PlainError(err)
		f.log.Warn("telemetry failed; it will try again", "step", what, "error", f.last[what])
	}
}
