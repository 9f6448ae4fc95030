package sources

import (
	"context"
	"strings"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// checkAttributes says lastingly which search attributes the server lacks. A server that
// does not let us ask is taken to have them.
func (r *runsReader) checkAttributes(ctx context.Context) {
	missing := r.s.Snapshot().Runs.Missing
	every := runs.CheckEvery
	if len(missing) > 0 {
		every = runs.RecheckEvery
	}
	if !r.checked.IsZero() && r.s.now().Sub(r.checked) < every {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cluster.CallTimeout)
	defer cancel()
	fresh, err := runs.MissingAttributes(ctx, r.c, r.namespace)
	if err != nil {
		return
	}
	r.checked = r.s.now()
	if len(fresh) > 0 {
		r.s.SetHealth(runs.AttributesHealth, false, "the server lacks "+strings.Join(fresh, ", ")+": "+ace.SearchAttributesCommand(r.namespace, fresh))
	} else {
		r.s.SetHealth(runs.AttributesHealth, true, "all there")
	}
	r.s.update(func(snap *Snapshot) { snap.Runs.Missing = fresh })
}
