package host

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/runner"
)

// beats is how many heartbeats fit into the time after which a runner is stale.
const beats = 2

// leaseAgain is how long is waited, when the lease is not held any more, for it to be given
// to this process again.
const leaseAgain = 2 * time.Second

// hold holds the lease. Its heartbeats tell that this process lives.
func (s *served) hold(ctx context.Context, in runner.LeaseInput) error {
	if in.Token != s.h.token || in.Lease.Epoch != s.lease.Epoch {
		return temporal.NewNonRetryableApplicationError("the lease is another process's", "NotMine", nil)
	}
	s.mu.Lock()
	s.leases++
	s.mu.Unlock()
	defer s.unhold()
	tick := time.NewTicker(s.h.o.Stale / beats)
	defer tick.Stop()
	activity.RecordHeartbeat(ctx)
	for {
		select {
		case <-tick.C:
			activity.RecordHeartbeat(ctx)
			go s.lookDrained(ctx)
		case <-ctx.Done():
			return ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return nil
		}
	}
}

// unhold notes that the lease is not held by this activity any more. Where none holds it
// soon, and nobody wanted that, it is lost.
func (s *served) unhold() {
	s.mu.Lock()
	s.leases--
	s.mu.Unlock()
	if !s.unheld() {
		return
	}
	time.AfterFunc(leaseAgain, func() {
		if s.unheld() && !s.lookDrained(s.life) {
			s.say(fmt.Sprintf("runner %s has lost its lease: its runs are ended, and it registers again", s.h.o.ID))
		}
	})
}

// unheld tells whether no activity holds the lease, and nobody wanted that.
func (s *served) unheld() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases == 0 && !s.leaves
}

func (s *served) say(why string) {
	select {
	case s.lost <- why:
	default: // said before
	}
}

// lookDrained asks whether somebody wants the runner to drain, and sees to it then.
func (s *served) lookDrained(ctx context.Context) bool {
	info, err := s.h.info(ctx)
	if err != nil || info.Status != runner.Draining || info.Lease.Epoch != s.lease.Epoch {
		return false
	}
	s.asked.Do(func() { close(s.drained) })
	return true
}
