package host

import (
	"context"
	"fmt"
	"time"

	"acescope/engine/runner"
)

// drain lets the runs under way end, takes no more, and leaves.
func (h *Host) drain(s *served, force <-chan struct{}) error {
	ctx := context.Background()
	if err := h.update(ctx, runner.UpdateDrain, h.note("it is being ended")); err != nil {
		h.o.Logger.Warn("the runner could not say that it drains", "runner", h.o.ID, "error", err)
	}
	s.mu.Lock()
	runs := s.runs
	s.mu.Unlock()
	if runs > 0 {
		h.tell(Event{Kind: Drains, Lease: s.lease, Text: fmt.Sprintf("no more runs are taken; those under way are waited for: %d", runs)})
	}
	var over <-chan time.Time
	if h.o.Drain > 0 {
		timer := time.NewTimer(h.o.Drain)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-s.whenIdle():
	case <-force:
	case <-over:
	case <-s.lost:
	}
	s.mu.Lock()
	s.leaves = true
	s.mu.Unlock()
	s.end()
	<-s.whenIdle()
	err := h.update(ctx, runner.UpdateLeave, h.note("it has ended"))
	s.stop()
	if err != nil {
		h.o.Logger.Warn("the runner could not say that it leaves", "runner", h.o.ID, "error", err)
	}
	h.tell(Event{Kind: Left, Lease: s.lease})
	return nil
}
