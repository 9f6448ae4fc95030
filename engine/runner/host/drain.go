package host

import (
	"context"
	"fmt"
	"slices"
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
	waits, enough := context.WithCancel(ctx)
	defer enough()
	select {
	case <-s.whenDone(waits):
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

// How often is asked whether agents' runs have ended, and how often it is asked in vain.
const (
	agentsEvery = 500 * time.Millisecond
	agentsVain  = 5
)

// whenDone is closed when no program runs any more, and no run of an agent that was given to
// this runner.
func (s *served) whenDone(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-s.whenIdle():
			s.h.agentsEnd(ctx)
		case <-ctx.Done():
		}
	}()
	return done
}

// agentsEnd waits until the dispatcher knows of no run that this runner has. What agents do is
// not done in this process, so that nobody else here knows.
func (h *Host) agentsEnd(ctx context.Context) {
	if !slices.ContainsFunc(h.o.Capabilities.ExecutorTypes, func(kind string) bool { return runner.Agent(kind) != "" }) {
		return
	}
	for vain := 0; vain < agentsVain; {
		busy, err := h.busy(ctx)
		switch {
		case err != nil:
			vain++
		case busy == 0:
			return
		default:
			vain = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(agentsEvery):
		}
	}
}

// busy is how many runs the dispatcher holds this runner to have.
func (h *Host) busy(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, infoWithin)
	defer cancel()
	var view runner.View
	answer, err := h.o.Client.QueryWorkflow(ctx, runner.DispatcherID, "", runner.QueryDispatcher, runner.ViewOptions{Pending: 1})
	if err == nil {
		err = answer.Get(&view)
	}
	for _, r := range view.Runners {
		if r.ID == h.o.ID {
			return r.Busy, err
		}
	}
	return 0, err
}
