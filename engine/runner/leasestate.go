package runner

import (
	"fmt"
	"strconv"
	"time"
)

// Input is what a runner's workflow is started with.
type Input struct {
	RunnerID string `json:"runner_id"`
	// Carried is what was known when an earlier run of the workflow continued as this one.
	Carried *LeaseState `json:"carried,omitempty"`
}

// ErrTypeHeld is the type of the error by which a registration is refused since another
// process is the runner; its detail is the [Info] of that one.
const ErrTypeHeld = "RunnerHeld"

// LeaseState is what a runner's workflow knows. It is pure, and not safe for concurrent use.
type LeaseState struct {
	Info   Info `json:"info"`
	Stale  bool `json:"stale,omitempty"`
	Drains bool `json:"drains,omitempty"`
	Gone   bool `json:"gone,omitempty"`
	// Untold is what the dispatcher is to hear, in order.
	Untold Notices `json:"untold,omitempty"`
}

// Known tells whether a process was ever registered.
func (s *LeaseState) Known() bool { return s.Info.Lease.Epoch > 0 }

// Alive tells whether a process is held to live.
func (s *LeaseState) Alive() bool { return s.Known() && !s.Stale && !s.Gone }

// Check says in one sentence why a registration is refused, nil where it is not. held tells
// that it is since another process is the runner.
func (s *LeaseState) Check(id string, r Registration) (err error, held bool) {
	if err := r.Check(); err != nil {
		return err, false
	}
	if r.ID != id {
		return fmt.Errorf("this is runner %s, not %s", id, r.ID), false
	}
	if i := s.Info; s.Alive() && i.Registration.Token != r.Token {
		return fmt.Errorf("runner %s is another process already: pid %d on %s, since %s; stop that one, or choose another --id",
			id, i.Registration.PID, i.Registration.Capabilities.Hostname, i.Registered.UTC().Format(time.RFC3339)), true
	}
	return nil, false
}

// Register takes in a registration that was checked.
func (s *LeaseState) Register(r Registration, now time.Time) Lease {
	r.HeartbeatMS, r.RemoveMS = orElse(r.HeartbeatMS, Stale), orElse(r.RemoveMS, Remove)
	if s.Known() && !s.Gone && r.Token == s.Info.Registration.Token {
		return s.again(r, now)
	}
	epoch := max(s.Info.Lease.Epoch+1, now.UnixMilli())
	s.Info = Info{Registration: r, Registered: now, Reason: "",
		Lease: Lease{RunnerID: r.ID, Epoch: epoch, Queue: "runner." + r.ID + "." + strconv.FormatInt(epoch, 10)}}
	s.Stale, s.Drains, s.Gone = false, false, false
	s.turn(now, "")
	s.tell(Registered)
	return s.Info.Lease
}

// again is a registration of the process that is the runner already.
func (s *LeaseState) again(r Registration, now time.Time) Lease {
	if !same(r, s.Info.Registration) {
		s.Info.Registration = r
		s.tell(Registered)
	}
	if s.Stale {
		s.Stale = false
		s.turn(now, "")
		s.tell(CameBack)
	}
	return s.Info.Lease
}

func orElse(ms int64, otherwise time.Duration) int64 {
	if ms > 0 {
		return ms
	}
	return otherwise.Milliseconds()
}

// same tells whether nothing changed that the dispatcher goes by or shows.
func same(a, b Registration) bool {
	x, y := a.Capabilities.normal(), b.Capabilities.normal()
	return a.PID == b.PID && a.Version == b.Version && a.SessionQueue == b.SessionQueue && x.AnyProject == y.AnyProject && x.Slots == y.Slots &&
		keyOf(Demands{x.Hostname, x.ProjectDir, "", x.Tags}, x.ExecutorTypes) == keyOf(Demands{y.Hostname, y.ProjectDir, "", y.Tags}, y.ExecutorTypes)
}

// Lose takes in that the lease was lost.
func (s *LeaseState) Lose(reason string, now time.Time) {
	if s.Alive() {
		s.Stale = true
		s.turn(now, reason)
		s.tell(WentStale)
	}
}

// RemoveAt is when a runner that is stale is given up.
func (s *LeaseState) RemoveAt() time.Time {
	return s.Info.Since.Add(time.Duration(s.Info.Registration.RemoveMS) * time.Millisecond)
}

// CheckNote says why what a process asks for is refused: it is not the runner's any more.
func (s *LeaseState) CheckNote(n Note) error {
	switch {
	case !s.Known() || s.Gone:
		return fmt.Errorf("runner %s is gone", s.Info.Registration.ID)
	case n.Token != "" && n.Token != s.Info.Registration.Token:
		return fmt.Errorf("runner %s is another process now: pid %d on %s", s.Info.Registration.ID, s.Info.Registration.PID, s.Info.Registration.Capabilities.Hostname)
	}
	return nil
}

// Drain lets the runner get no more runs.
func (s *LeaseState) Drain(n Note, now time.Time) {
	if s.Drains || s.Gone {
		return
	}
	s.Drains = true
	if !s.Stale {
		s.turn(now, n.Reason)
	}
	s.tell(Drains)
}

// Remove gives the runner up, or lets it go.
func (s *LeaseState) Remove(reason string, now time.Time) {
	if !s.Known() || s.Gone {
		return
	}
	s.Gone = true
	s.turn(now, reason)
	s.tell(Removed)
}

// turn is a new status.
func (s *LeaseState) turn(now time.Time, reason string) {
	s.Info.Status, s.Info.Since, s.Info.Reason = Online, now, cut(reason)
	switch {
	case s.Gone:
		s.Info.Status = Gone
	case s.Stale:
		s.Info.Status = StaleNow
	case s.Drains:
		s.Info.Status = Draining
	}
}

// cut bounds a reason, which anybody may give.
func cut(reason string) string {
	const most = 500
	if len(reason) > most {
		return short(reason[:most])
	}
	return reason
}

func (s *LeaseState) tell(kind NoticeKind) {
	n := Notice{Kind: kind, Runner: s.Info.Registration.ID, Epoch: s.Info.Lease.Epoch}
	if kind == Registered {
		reg := s.Info.Registration
		n.Registration, n.Queue = &reg, s.Info.Lease.Queue
	}
	s.Untold = append(s.Untold, n)
}
