package sources

import (
	"context"
	"time"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
)

// readLineage reads the lineage of the selected run, again and again: forks may be made
// elsewhere.
func (s *Store) readLineage(ctx context.Context, d cluster.Deps) {
	for {
		s.mu.Lock()
		workflowID, had := s.selected.workflowID, s.snap.Lineage
		s.mu.Unlock()
		if workflowID == "" {
			return
		}
		if root, _ := ace.ForkRoot(workflowID); had != nil && had.Root != root {
			had = nil
		}
		t := s.lineageNow(ctx, d, workflowID, had)
		if ctx.Err() != nil {
			return
		}
		s.update(func(snap *Snapshot) { snap.Lineage = t })
		again := time.NewTimer(t.Rest())
		select {
		case <-ctx.Done():
			again.Stop()
			return
		case <-again.C:
		}
	}
}

// lineageNow reads it once. Where that fails, what was read before stays, with the reason.
func (s *Store) lineageNow(ctx context.Context, d cluster.Deps, workflowID string, had *histories.LineageTree) *histories.LineageTree {
	asking, stop := context.WithTimeout(ctx, cluster.CallTimeout)
	defer stop()
	t, err := histories.ReadLineage(asking, d.Client, workflowID, had)
	if err != nil {
		root, _ := ace.ForkRoot(workflowID)
		t = &histories.LineageTree{Root: root}
		if had != nil {
			*t = *had
		}
		t.Err = cluster.PlainError(err)
		return t
	}
	t.Updated = s.now()
	return t
}
