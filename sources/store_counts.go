package sources

import (
	"context"

	"acescope/sources/runs"
)

// count asks how many runs there are by outcome, when the list has changed or the last
// counts are old.
func (r *runsReader) count(ctx context.Context) {
	newest := runs.Fingerprint(r.list.Rows())
	if r.counts.Newest == newest && r.s.now().Sub(r.counts.At) < runs.CountEvery {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.patience())
	defer cancel()
	total, counts, err := runs.CountOutcomes(ctx, r.c, r.s.newest(r.query))
	if err != nil {
		return // the list itself was read: the counts keep their age
	}
	r.counts = runs.Counting{At: r.s.now(), Newest: newest}
	r.s.update(func(snap *Snapshot) {
		if r.s.query == r.query {
			snap.Runs.Total, snap.Runs.Counts = total, counts
		}
	})
}
