package sources

import (
	"context"
	"time"

	"acescope/engine/ace"
)

// PartLineage is the lineage of the selected run.
const PartLineage Part = "lineage"

// How often a lineage is read again: while a run in it is open, and while none is.
const (
	lineageEvery  = DefaultInterval
	lineageSeldom = 5 * DefaultInterval
)

// readLineage reads the lineage of the selected run, again and again: forks may be made
// elsewhere.
func (s *Store) readLineage(ctx context.Context, d Deps) {
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
		again := time.NewTimer(t.rest())
		select {
		case <-ctx.Done():
			again.Stop()
			return
		case <-again.C:
		}
	}
}

// lineageNow reads it once. Where that fails, what was read before stays, with the reason.
func (s *Store) lineageNow(ctx context.Context, d Deps, workflowID string, had *LineageTree) *LineageTree {
	asking, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	t, err := ReadLineage(asking, d.Client, workflowID, had)
	if err != nil {
		root, _ := ace.ForkRoot(workflowID)
		t = &LineageTree{Root: root}
		if had != nil {
			*t = *had
		}
		t.Err = plainError(err)
		return t
	}
	t.Updated = s.now()
	return t
}

func (t *LineageTree) rest() time.Duration {
	for i := range t.Nodes {
		if t.Nodes[i].Run.Open() {
			return lineageEvery
		}
	}
	return lineageSeldom
}
