package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"acescope/engine/ace"
	"acescope/engine/runner"
	"acescope/engine/session"
)

// MaxClaims is how often a run is given to a runner at most.
const MaxClaims = 3

// NotBegunAfter is how long a runner has to take up a run that it was given, before the run
// asks for another one.
const NotBegunAfter = 30 * time.Second

// HeartbeatTimeout is after how long without a word of the runner an execution is given up.
const HeartbeatTimeout = 5 * time.Second

// fold takes one fact in. What the state refers to is replaced, never written to.
func (s *State) fold(f Fact) {
	switch f.Kind {
	case FactStarted:
		s.start(*f.Input)
	case FactClaimed:
		s.heed(s.fits(*f.Claimed), func() { s.claim(*f.Claimed) })
	case FactBegan:
		s.heed(s.inForce(f.Began.Claim, f.Began.Try) && s.Began == nil, func() { s.begin(*f.Began) })
	case FactReport:
		s.heed(s.ours(*f.Report), func() { s.report(*f.Report) })
	case FactUnmatched:
		s.heed(s.waits(*f.Unmatched), func() { s.unmatched(*f.Unmatched) })
	case FactAnswered:
		s.answered(f)
	case FactLost:
		s.heed(s.inForce(f.Lost.Claim, s.Try) && f.Lost.RunnerID == s.Claim.RunnerID, func() { s.lost(f.Lost.Message) })
	case FactTold:
		s.Told = cmp.Or(s.Told, f.Told)
	case FactStopRequested:
		s.stop(*f.Stop)
	case FactCancelRequested:
		s.stop(StopRequest{Reason: stopCancelled})
	case FactClosed:
		s.close(f)
	default:
		s.foldOpen(f)
	}
}

// foldOpen takes in what counts only while the run is open.
func (s *State) foldOpen(f Fact) {
	if s.Status.Over() {
		return
	}
	switch f.Kind {
	case FactGiven:
		s.given = true
	case FactEnded:
		s.ended(f)
	case FactSessionBegan:
		if s.Status == Claimed {
			s.Status = Running
		}
	case FactSessionGone:
		if s.claimed() {
			s.noSession(*f.Failure)
		}
	case FactTimeUp:
		s.TimedOut, s.Status = true, Stopping
	case FactGivenUp:
		s.stopped("its session did not answer any more")
	case FactUntold:
		if s.Status == Pending { // else it heard of the run all the same
			s.fail(Internal, "the dispatcher could not be told: "+f.Failure.Message)
		}
	}
}

// heed does what a signal asks for where it fits, else counts it.
func (s *State) heed(fits bool, do func()) {
	if !fits {
		s.Ignored++
		return
	}
	do()
}

func (s *State) start(in Input) {
	*s = State{Input: in, Status: Pending, Try: 1, Exit: ace.Running}
	if in.Queue != "" {
		s.Status, s.Claim = Claimed, &runner.Claim{Try: 1, Queue: in.Queue}
	}
}

// claimed tells whether a claim is in force.
func (s *State) claimed() bool { return s.Claim != nil && !s.Status.Over() }

func (s *State) inForce(claim int64, try int) bool {
	return s.claimed() && s.Claim.Number == claim && s.Try == try
}

// fits tells whether a claim answers what the run asked for last. One that the run had
// before does not come back.
func (s *State) fits(c runner.Claim) bool {
	return s.Status == Pending && c.Try == s.Try && c.Queue != "" && c.RunnerID != "" &&
		!slices.ContainsFunc(s.Moves, func(m MoveRecord) bool { return m.Claim >= c.Number })
}

// waits tells whether the run waits for what it is told that it does not get.
func (s *State) waits(u runner.Unmatched) bool { return s.Status == Pending && u.Try == s.Try }

// answered takes in the dispatcher's answer. One that comes too late, since the same was told
// by a signal or the run is being stopped, is nobody's fault and not counted.
func (s *State) answered(f Fact) {
	switch {
	case f.Claimed != nil:
		if s.fits(*f.Claimed) {
			s.claim(*f.Claimed)
		}
	case s.waits(*f.Unmatched):
		s.unmatched(*f.Unmatched)
	}
}

func (s *State) claim(c runner.Claim) {
	s.Status, s.Claim = Claimed, &c
	if !c.At.IsZero() {
		s.TimeoutAt = c.At.Add(s.TimeLimit())
	}
}

func (s *State) begin(b Began) {
	s.Began = &b
	if s.Status == Claimed {
		s.Status = Running
	}
	if !b.At.IsZero() {
		s.TimeoutAt = b.At.Add(s.TimeLimit())
	}
}

// TimeLimit is how long the run may take.
func (s *State) TimeLimit() time.Duration {
	if b := s.Input.Blueprint; b != nil && b.TimeoutSeconds > 0 {
		return time.Duration(b.TimeoutSeconds) * time.Second
	}
	return DefaultTimeout * time.Second
}

// ByActivity tells whether the run is executed by [ActivityExecute]; otherwise it is a
// message to an agent session.
func (s *State) ByActivity() bool {
	return s.Input.Program() || s.Input.Queue != "" || runner.Agent(s.Input.Demands.ExecutorType) == ""
}

// ended takes in what came of the execution under the claim in force.
func (s *State) ended(f Fact) {
	if !s.claimed() || s.Claim.Number != f.Claim || !s.ByActivity() {
		return
	}
	if f.Result != nil {
		s.end(*f.Result)
		return
	}
	switch failure := *f.Failure; {
	case failure.Kind == ace.Timeout && failure.Type == timeoutToStart:
		s.notBegun(fmt.Sprintf("%s did not take it up within %s", s.where(), s.BeginWithin()))
	case failure.Type == TypeNotBegun:
		s.notBegun(failure.Message)
	case failure.Type == TypeRunnerLost:
		s.lost(failure.Message)
	case failure.Kind == ace.Timeout && failure.Type == timeoutToClose:
		s.fail(Timeout, fmt.Sprintf("it did not end within %s", s.TimeLimit()))
	case failure.Kind == ace.Timeout:
		s.lost(fmt.Sprintf("%s did not answer any more: no heartbeat for %s", s.where(), HeartbeatTimeout))
	case s.Stop != nil || failure.Kind == ace.Cancelled:
		s.stopped("")
	default:
		s.fail(reasonOf(failure.Type), failure.Message)
	}
}

// Types of the failures of an activity that ran out of a time.
const (
	timeoutToStart = "ScheduleToStart"
	timeoutToClose = "StartToClose"
)

// where is the runner in words.
func (s *State) where() string {
	if s.Claim.RunnerID == "" {
		return "the worker of task queue " + s.Claim.Queue
	}
	return "runner " + s.Claim.RunnerID
}

// notBegun is a claim that the runner did not take up: the program cannot have run, so that
// another runner may have it.
func (s *State) notBegun(why string) {
	switch {
	case s.Stop != nil:
		s.stopped("")
	case s.Input.Queue != "":
		s.fail(NoRunner, why)
	case !s.again(why):
		s.fail(RunnerLost, why)
	}
}

// BeginWithin is how long the execution under the claim in force may wait for its runner.
func (s *State) BeginWithin() time.Duration {
	if s.Input.Queue != "" {
		return s.MatchWithin()
	}
	return NotBegunAfter
}

// MatchWithin is how long the run waits for a runner.
func (s *State) MatchWithin() time.Duration {
	return time.Duration(cmp.Or(s.Input.MatchWithin, DefaultMatchWithin)) * time.Second
}

// lost is a runner that is gone with the run.
func (s *State) lost(why string) {
	b := s.Input.Blueprint
	switch {
	case s.Stop != nil:
		s.stopped(why)
	case b != nil && b.OnRunnerLoss == Move && b.Idempotent && s.Input.Program() && s.Input.Queue == "" && s.again(why):
	case s.Input.Program():
		s.fail(RunnerLost, why+"; the program may have run")
	default:
		s.fail(RunnerLost, why)
	}
}

// again asks for another runner; false where there were enough.
func (s *State) again(why string) bool {
	if len(s.Moves)+1 >= MaxClaims {
		return false
	}
	s.Moves = append(slices.Clone(s.Moves), MoveRecord{Claim: s.Claim.Number, Runner: s.Claim.RunnerID, Queue: s.Claim.Queue, Why: why})
	s.Status, s.Claim, s.Began, s.given, s.TimeoutAt = Pending, nil, nil, false, time.Time{}
	s.Try++
	return true
}

func (s *State) unmatched(u runner.Unmatched) {
	reason := Reason(u.Reason)
	if reason != QueueFull && reason != BadDemands {
		reason = NoRunner
	}
	s.fail(reason, u.Message)
}

// ours tells whether a report is that of the run's own message.
func (s *State) ours(r session.Report) bool {
	return s.claimed() && !s.ByActivity() && r.MessageID == s.Input.RunID && r.SessionID == s.Input.SessionID
}

func (s *State) noSession(f ace.Failure) {
	if s.Stop != nil {
		s.stopped("")
		return
	}
	s.fail(SessionEnded, f.Message)
}

// stopCancelled is why a run stops whose workflow is cancelled.
const stopCancelled = "cancelled"

// stop stops the run at once where nobody executes it yet, and else begins to.
func (s *State) stop(r StopRequest) {
	switch {
	case s.Status.Over() || s.Stop != nil:
	case !s.given:
		s.Stop = &r
		s.stopped("")
	default:
		s.Stop, s.Status = &r, Stopping
	}
}

// close takes in how the server closed the workflow, where the run had not ended by itself.
func (s *State) close(f Fact) {
	if s.Status.Over() || s.Status == "" {
		return
	}
	switch {
	case f.Exit == ace.Cancelled:
		s.stopped("")
	case f.Failure != nil:
		s.fail(Terminated, f.Failure.Message)
	default:
		s.fail(Terminated, "its workflow ended without a result")
	}
	s.Exit = f.Exit
}
