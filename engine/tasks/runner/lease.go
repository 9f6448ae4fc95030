package runner

import (
	"fmt"
	"strconv"
	"time"

	"acescope/engine/ace"
)

// Input is the input of a runner's workflow.
type Input struct {
	RunnerID string      `json:"runner_id"`
	Carried  *LeaseState `json:"carried,omitempty"` // state of the previous run of the workflow
}

// LeaseState is the state of a runner's workflow. It is pure, and not safe for concurrent use.
type LeaseState struct {
	Info     Info `json:"info"`
	Stale    bool `json:"stale,omitempty"`
	Draining bool `json:"drains,omitempty"`
	Gone     bool `json:"gone,omitempty"`
	// Pending are the notices to send to the dispatcher, in order.
	Pending Notices `json:"untold,omitempty"`
}

// Registered reports whether a process has ever registered.
func (s *LeaseState) Registered() bool { return s.Info.Lease.Epoch > 0 }

// Alive reports whether the process is assumed to be alive.
func (s *LeaseState) Alive() bool { return s.Registered() && !s.Stale && !s.Gone }

// Check returns an error if a registration is refused. held is set if it is refused because another process
// is the runner.
func (s *LeaseState) Check(id string, r Registration) (err error, held bool) {
	if err := r.Check(); err != nil {
		return err, false
	}
	if r.ID != id {
		return fmt.Errorf("this is runner %s, not %s", id, r.ID), false
	}
	if have := s.Info.Registration; s.Alive() && have.Token != r.Token && have.Token != r.LastToken {
		return fmt.Errorf("runner %s is already running: pid %d on %s, since %s; stop it, or choose another --id",
			id, have.PID, have.Capabilities.Hostname, s.Info.Registered.UTC().Format(time.RFC3339)), true
	}
	return nil, false
}

// Register applies a registration that passed Check.
func (s *LeaseState) Register(r Registration, now time.Time) Lease {
	if r.HeartbeatMS <= 0 {
		r.HeartbeatMS = DefaultStaleAfter.Milliseconds()
	}
	if r.RemoveMS <= 0 {
		r.RemoveMS = DefaultRemoveAfter.Milliseconds()
	}
	if s.Registered() && !s.Gone && r.Token == s.Info.Registration.Token {
		return s.registerAgain(r, now)
	}
	epoch := max(s.Info.Lease.Epoch+1, now.UnixMilli())
	s.Info = Info{Registration: r, Registered: now,
		Lease: Lease{RunnerID: r.ID, Epoch: epoch, Queue: "runner." + r.ID + "." +
			strconv.FormatInt(epoch, 10)}}
	s.Stale, s.Draining, s.Gone = false, false, false
	s.setStatus(now, "")
	s.notify(Registered)
	return s.Info.Lease
}

// registerAgain applies a registration of the same process.
func (s *LeaseState) registerAgain(r Registration, now time.Time) Lease {
	if !sameRegistration(r, s.Info.Registration) {
		s.Info.Registration = r
		s.notify(Registered)
	}
	if s.Stale {
		s.Stale = false
		s.setStatus(now, "")
		s.notify(Recovered)
	}
	return s.Info.Lease
}

// sameRegistration reports whether two registrations are equal in all values that the dispatcher uses.
func sameRegistration(a, b Registration) bool {
	x, y := a.Capabilities.normal(), b.Capabilities.normal()
	return a.PID == b.PID && a.Version == b.Version && a.SessionQueue == b.SessionQueue &&
		x.AnyProject == y.AnyProject && x.Slots == y.Slots &&
		groupKey(Requirements{x.Hostname, x.ProjectDir, "", x.Tags}, x.ExecutorTypes) ==
			groupKey(Requirements{y.Hostname, y.ProjectDir, "", y.Tags}, y.ExecutorTypes)
}

// Renotify queues the notices that a new dispatcher needs.
func (s *LeaseState) Renotify() {
	if !s.Registered() || s.Gone {
		return
	}
	s.notify(Registered)
	if s.Stale {
		s.notify(WentStale)
	}
	if s.Draining {
		s.notify(DrainStarted)
	}
}

// MarkStale applies the loss of the lease.
func (s *LeaseState) MarkStale(reason string, now time.Time) {
	if s.Alive() {
		s.Stale = true
		s.setStatus(now, reason)
		s.notify(WentStale)
	}
}

// RemoveAt returns when a stale runner is removed.
func (s *LeaseState) RemoveAt() time.Time {
	return s.Info.Since.Add(time.Duration(s.Info.Registration.RemoveMS) * time.Millisecond)
}

// CheckNote returns an error if the runner is gone, or the process that requests an update is no longer the
// runner.
func (s *LeaseState) CheckNote(n Note) error {
	have := s.Info.Registration
	switch {
	case !s.Registered() || s.Gone:
		return fmt.Errorf("runner %s is gone", have.ID)
	case n.Token != "" && n.Token != have.Token:
		return fmt.Errorf("runner %s is another process now: pid %d on %s", have.ID, have.PID,
			have.Capabilities.Hostname)
	}
	return nil
}

// Drain stops the assignment of runs to the runner.
func (s *LeaseState) Drain(n Note, now time.Time) {
	if s.Draining || s.Gone {
		return
	}
	s.Draining = true
	if !s.Stale {
		s.setStatus(now, n.Reason)
	}
	s.notify(DrainStarted)
}

// Remove removes a stale runner; its runs are lost.
func (s *LeaseState) Remove(reason string, now time.Time) { s.end(Removed, reason, now) }

// Leave ends the runner; its programs have ended.
func (s *LeaseState) Leave(reason string, now time.Time) { s.end(Left, reason, now) }

func (s *LeaseState) end(kind NoticeKind, reason string, now time.Time) {
	if !s.Registered() || s.Gone {
		return
	}
	s.Gone = true
	s.setStatus(now, reason)
	s.notify(kind)
}

func (s *LeaseState) setStatus(now time.Time, reason string) {
	const maxReason = 500
	s.Info.Status = statusOf(s.Gone, s.Stale, s.Draining)
	s.Info.Since = now
	s.Info.Reason = ace.Cut(reason, maxReason)
}

func (s *LeaseState) notify(kind NoticeKind) {
	n := Notice{Kind: kind, Runner: s.Info.Registration.ID, Epoch: s.Info.Lease.Epoch}
	if kind == Registered {
		reg := s.Info.Registration
		n.Registration = &reg
		n.Queue = s.Info.Lease.Queue
	}
	s.Pending = append(s.Pending, n)
}
