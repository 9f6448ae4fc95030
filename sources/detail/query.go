package detail

import (
	"context"
	"fmt"
	"time"

	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// queryLoop queries an open run's worker after each change.
func (w *watcher) queryLoop(ctx context.Context) {
	repeat(ctx, w.asks, func() {
		w.mu.Lock()
		fresh := w.worker.fresh
		w.worker.fresh = false
		w.mu.Unlock()
		if fresh {
			w.ask(ctx)
		}
	})
}

// ask updates the detail: from the run's worker while the run is open, from the fold if it is closed or the
// worker does not answer in time.
func (w *watcher) ask(ctx context.Context) {
	w.mu.Lock()
	open, of, foreign := w.detail.Close.IsZero(), w.of, w.state != nil
	if open {
		w.worker.asking = time.Now()
	}
	w.mu.Unlock()
	var take func(*draft)
	var offers *Offers
	if open {
		ctx, cancel := context.WithTimeout(ctx, cluster.QueryTimeout)
		defer cancel()
		if foreign {
			offers, _ = ReadOffers(ctx, w.c, w.id.WorkflowID, w.id.RunID) // without an answer nothing is shown
		}
		if offers == nil || offers.contract() {
			take = of.query(ctx, w.query)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.worker.asking = time.Time{}
	w.worker.changed = true
	w.offers = offers
	w.touch()
	_, complete := of.(blueprintRun) // its history contains all facts
	complete = complete || offers != nil && !offers.contract()
	// An answer from before the close is older than the history.
	w.worker.live = take != nil && w.detail.Close.IsZero()
	if w.worker.live {
		take(&w.detail)
		w.worker.changed = false
	} else if open && !complete { // the next event may be far away
		time.AfterFunc(askAgain, func() {
			w.mu.Lock()
			w.worker.fresh = w.worker.fresh || w.detail.Close.IsZero()
			w.mu.Unlock()
			cluster.Signal(w.asks)
		})
	}
}

// askAgain is the time before a worker that did not answer is queried again.
const askAgain = 5 * time.Second

// takeFold sets the detail from the fold, unless a worker that answered last time may still answer. The lock
// must be held.
func (w *watcher) takeFold() {
	worker := &w.worker
	mayAnswer := worker.live && (worker.asking.IsZero() || time.Since(worker.asking) < cluster.QueryPatience)
	if !worker.changed || w.detail.Close.IsZero() && mayAnswer {
		return
	}
	worker.changed, w.dirty = false, true
	w.detail.From = runs.FromHistory
	w.of.take(&w.detail)
}

// query calls one query.
func (w *watcher) query(ctx context.Context, name string, answer any) error {
	v, err := w.c.QueryWorkflow(ctx, w.id.WorkflowID, w.id.RunID, name)
	if err != nil {
		return err
	}
	return v.Get(answer)
}

// settleOld reads the bullets that the run's operations replaced, once for each delta. It reads files, so it
// does not hold the lock.
func (w *watcher) settleOld(ctx context.Context) {
	w.mu.Lock()
	delta := w.detail.Delta
	key := delta.PlaybookBefore + " " + delta.PlaybookAfter + " " + fmt.Sprint(len(delta.Operations))
	known := key == w.oldBulletsOf
	w.oldBulletsOf = key
	w.mu.Unlock()
	if known || len(delta.Operations) == 0 {
		return
	}
	old := histories.OldBullets(ctx, w.link.Deps, delta)
	w.mu.Lock()
	w.detail.OldBullets = old
	w.touch()
	w.mu.Unlock()
}
