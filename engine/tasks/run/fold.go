package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/runner"
)

// MaxClaims is the maximum number of times that a run is assigned to a runner.
const MaxClaims = 3

// StartWithin is how long a runner may take to start a run before the run asks for another
// runner.
const StartWithin = 30 * time.Second

// HeartbeatTimeout is how long an execution may go without a heartbeat.
const HeartbeatTimeout = 5 * time.Second

// Failure types of an activity that exceeded a timeout.
const (
	timeoutToStart = "ScheduleToStart"
	timeoutToClose = "StartToClose"
)

// stopCanceled is the reason of the stop when the workflow is canceled.
const stopCanceled = "cancelled"

// fold applies one fact. It replaces slices and pointers of the state and never changes the values that they
// refer to, so copies of the state remain valid.
func (s *State) fold(f Fact) {
	switch f.Kind {
	case FactStarted:
		s.start(*f.Input)
	case FactClaimed:
		s.applyIf(s.accepts(*f.Claimed), func() { s.claim(*f.Claimed) })
	case FactProgramStarted:
		current := s.isCurrent(f.ProgramStart.Claim, f.ProgramStart.Try) && s.ProgramStart == nil
		s.applyIf(current, func() { s.programStarted(*f.ProgramStart) })
	case FactReport:
		s.applyIf(s.isOwn(*f.Report), func() { s.report(*f.Report) })
	case FactUnmatched:
		s.applyIf(s.awaits(*f.Unmatched), func() { s.unmatched(*f.Unmatched) })
	case FactAnswered:
		s.answered(f)
	case FactLost:
		current := s.isCurrent(f.Lost.Claim, s.Try) && f.Lost.RunnerID == s.Claim.RunnerID
		s.applyIf(current, func() { s.lost(f.Lost.Message) })
	case FactParentNotified:
		s.Notified = cmp.Or(s.Notified, f.Notified)
	case FactStopRequested:
		s.stop(*f.Stop)
	case FactCancelRequested:
		s.stop(StopRequest{Reason: stopCanceled})
	case FactClosed:
		s.close(f)
	default:
		s.foldOpen(f)
	}
}

// foldOpen applies a fact that counts only while the run is open.
func (s *State) foldOpen(f Fact) {
	if s.Status.Over() {
		return
	}
	switch f.Kind {
	case FactSubmitted:
		s.submitted = true
	case FactEnded:
		s.executionEnded(f)
	case FactSessionStarted:
		if s.Status == Claimed {
			s.Status = Running
		}
	case FactSessionGone:
		switch {
		case s.Claim == nil:
		case s.Stop != nil:
			s.stopped("")
		default:
			s.fail(SessionEnded, f.Failure.Message)
		}
	case FactTimeLimit:
		s.TimedOut = true
		s.Status = Stopping
	case FactSessionTimeout:
		s.stopped("its session did not answer any more")
	case FactDispatcherFailed:
		if s.Status == Pending { // otherwise the dispatcher knows the run
			s.fail(Internal, "cannot notify the dispatcher: "+f.Failure.Message)
		}
	}
}

// applyIf calls apply if a signal matches the state, otherwise it counts the signal as ignored.
func (s *State) applyIf(matches bool, apply func()) {
	if !matches {
		s.Ignored++
		return
	}
	apply()
}

func (s *State) start(in Input) {
	*s = State{Input: in, Status: Pending, Try: 1, Exit: ace.Running}
	if in.Queue != "" {
		s.Status = Claimed
		s.Claim = &runner.Claim{Try: 1, Queue: in.Queue}
	}
}

// hasClaim reports whether the run is open and claimed.
func (s *State) hasClaim() bool { return s.Claim != nil && !s.Status.Over() }

func (s *State) isCurrent(claim int64, try int) bool {
	return s.hasClaim() && s.Claim.Number == claim && s.Try == try
}

// isOwn reports whether a report is about the run's own message.
func (s *State) isOwn(r session.Report) bool {
	return s.hasClaim() && !s.ByActivity() && r.MessageID == s.Input.RunID && r.SessionID == s.Input.SessionID
}

// accepts reports whether a claim answers the newest request. Its number must be higher than that
// of every claim that the run has lost.
func (s *State) accepts(c runner.Claim) bool {
	return s.Status == Pending && c.Try == s.Try && c.Queue != "" && c.RunnerID != "" &&
		!slices.ContainsFunc(s.Moves, func(m MoveRecord) bool { return m.Claim >= c.Number })
}

// awaits reports whether u answers the newest request.
func (s *State) awaits(u runner.Unmatched) bool { return s.Status == Pending && u.Try == s.Try }

// answered applies the dispatcher's answer. A late answer is legitimate, since a signal may
// have reported the same, or the run may be stopping: it does not count as ignored.
func (s *State) answered(f Fact) {
	switch {
	case f.Claimed != nil:
		if s.accepts(*f.Claimed) {
			s.claim(*f.Claimed)
		}
	case s.awaits(*f.Unmatched):
		s.unmatched(*f.Unmatched)
	}
}

func (s *State) claim(c runner.Claim) {
	s.Status = Claimed
	s.Claim = &c
	s.limitFrom(c.At)
}

func (s *State) programStarted(b ProgramStart) {
	s.ProgramStart = &b
	if s.Status == Claimed {
		s.Status = Running
	}
	if s.TimeoutAt.IsZero() { // without a dispatcher, and by the clock of the runner's machine
		s.limitFrom(b.At)
	}
}

func (s *State) limitFrom(at time.Time) {
	if !at.IsZero() {
		s.TimeoutAt = at.Add(s.TimeLimit())
	}
}

// TimeLimit returns how long the run may take.
func (s *State) TimeLimit() time.Duration {
	if b := s.Input.Blueprint; b != nil && b.TimeoutSeconds > 0 {
		return time.Duration(b.TimeoutSeconds) * time.Second
	}
	return DefaultTimeout * time.Second
}

// MatchTimeout returns how long the run waits for a runner.
func (s *State) MatchTimeout() time.Duration {
	return time.Duration(cmp.Or(s.Input.MatchWithin, DefaultMatchWithin)) * time.Second
}

// StartTimeout returns how long the execution of the current claim may wait for its runner.
func (s *State) StartTimeout() time.Duration {
	if s.Input.Queue != "" {
		return s.MatchTimeout()
	}
	return StartWithin
}

// ByActivity reports whether [ActivityExecute] executes the run. Otherwise the run is a
// message to an agent session.
func (s *State) ByActivity() bool {
	return s.Input.IsProgram() || s.Input.Queue != "" || runner.Agent(s.Input.Requirements.ExecutorType) == ""
}

// executionEnded applies the end of the execution of the current claim.
func (s *State) executionEnded(f Fact) {
	if s.Claim == nil || s.Claim.Number != f.Claim || !s.ByActivity() {
		return
	}
	if f.Result != nil {
		s.end(*f.Result)
		return
	}
	switch failure := *f.Failure; {
	case failure.Kind == ace.TimedOut && failure.Type == timeoutToStart:
		s.notStarted(fmt.Sprintf("%s did not take it up within %s", s.runnerName(), s.StartTimeout()))
	case failure.Type == TypeNotStarted:
		s.notStarted(failure.Message)
	case failure.Type == TypeRunnerLost:
		s.lost(failure.Message)
	case failure.Kind == ace.TimedOut && failure.Type == timeoutToClose:
		s.fail(Timeout, fmt.Sprintf("it did not end within %s", s.TimeLimit()))
	case failure.Kind == ace.TimedOut:
		s.lost(fmt.Sprintf("%s did not answer any more: no heartbeat for %s", s.runnerName(),
			HeartbeatTimeout))
	case s.Stop != nil || failure.Kind == ace.Canceled:
		s.stopped("")
	default:
		reason := Reason(failure.Type)
		if !slices.Contains([]Reason{NotStarted, BadParameters, Timeout, AgentFailed}, reason) {
			reason = Internal
		}
		s.fail(reason, failure.Message)
	}
}

func (s *State) runnerName() string {
	if s.Claim.RunnerID == "" {
		return "the worker of task queue " + s.Claim.Queue
	}
	return "runner " + s.Claim.RunnerID
}

// notStarted handles that the runner did not start the program. Another runner may execute it.
func (s *State) notStarted(why string) {
	switch {
	case s.Stop != nil:
		s.stopped("")
	case s.Input.Queue != "":
		s.fail(NoRunner, why)
	case !s.retry(why):
		s.fail(RunnerLost, why)
	}
}

// lost handles that the runner is gone while it held the run.
func (s *State) lost(why string) {
	b := s.Input.Blueprint
	movable := b != nil && b.OnRunnerLoss == Move && b.Idempotent && s.Input.IsProgram() &&
		s.Input.Queue == ""
	switch {
	case s.Stop != nil:
		s.stopped(why)
	case movable && s.retry(why):
	case s.Input.IsProgram():
		s.fail(RunnerLost, why+"; the program may have run")
	default:
		s.fail(RunnerLost, why)
	}
}

// retry asks for another runner. It returns false after [MaxClaims] claims.
func (s *State) retry(why string) bool {
	if len(s.Moves)+1 >= MaxClaims {
		return false
	}
	move := MoveRecord{Claim: s.Claim.Number, Runner: s.Claim.RunnerID, Queue: s.Claim.Queue, Reason: why}
	s.Moves = append(slices.Clone(s.Moves), move)
	s.Try++
	s.Status = Pending
	s.Claim = nil
	s.ProgramStart = nil
	s.submitted = false
	s.TimeoutAt = time.Time{}
	return true
}

func (s *State) unmatched(u runner.Unmatched) {
	reason := Reason(u.Reason)
	if reason != QueueFull && reason != BadRequirements {
		reason = NoRunner
	}
	s.fail(reason, u.Message)
}

// stop ends a run that was not submitted yet; otherwise the run is stopping until it ends.
func (s *State) stop(r StopRequest) {
	if s.Status.Over() || s.Stop != nil {
		return
	}
	s.Stop = &r
	if s.submitted {
		s.Status = Stopping
	} else {
		s.stopped("")
	}
}

// close applies the status with which the server closed the workflow, unless the run had already ended.
func (s *State) close(f Fact) {
	if s.Status.Over() || s.Status == "" {
		return
	}
	switch {
	case f.Exit == ace.Canceled:
		s.stopped("")
	case f.Failure != nil:
		s.fail(Terminated, f.Failure.Message)
	default:
		s.fail(Terminated, "the workflow of the run closed without a result")
	}
	s.Exit = f.Exit
}

// report ends an agent's run with the report of its session.
func (s *State) report(m session.Report) {
	r := Result{Usage: m.Usage, DurationSeconds: m.DurationMS / 1000, Log: m.Log, LogPath: m.LogPath,
		Turn: m.Turn}
	if m.Text != "" {
		r.Output, _ = json.Marshal(m.Text) // cannot fail for a string
		r.OutputIs = OutputText
	}
	why := ""
	if m.Failure != nil {
		why = m.Failure.Message
	}
	r.Status = Failed
	switch {
	case m.Status == session.ReportCompleted:
		r.Status = Completed
	case s.Stop != nil:
		r.Status = Stopped
		r.Error = s.Stop.Reason
	case s.TimedOut:
		r.Reason = Timeout
		r.Error = s.timeoutError("")
	case m.Status == session.ReportEnded:
		r.Reason = SessionEnded
		r.Error = cmp.Or(why, "the session ended before the agent answered")
	case m.Status == session.ReportInterrupted:
		r.Reason = AgentFailed
		r.Error = cmp.Or(why, "its turn was interrupted")
	default:
		r.Reason = AgentFailed
		r.Error = cmp.Or(why, "the agent's turn failed")
	}
	s.end(r)
}

func (s *State) fail(reason Reason, why string) {
	s.end(Result{Status: Failed, Reason: reason, Error: why})
}

// stopped ends a run without a result after a stop request or its time limit.
func (s *State) stopped(why string) {
	if s.TimedOut && s.Stop == nil {
		s.fail(Timeout, s.timeoutError(why))
		return
	}
	if s.Stop != nil && why == "" {
		why = s.Stop.Reason
	}
	s.end(Result{Status: Stopped, Error: why})
}

func (s *State) timeoutError(why string) string {
	return strings.TrimSuffix("it did not end within "+s.TimeLimit().String()+"; "+why, "; ")
}

// end ends the run with a result. Ids and the claim come from the state, not from the runner.
func (s *State) end(r Result) {
	r.RunID = s.Input.RunID
	r.SessionID = s.Input.SessionID
	if s.Claim != nil {
		r.Runner = s.Claim.RunnerID
		r.Claim = s.Claim.Number
	}
	if len(r.Output) == 0 {
		r.Output = json.RawMessage("null")
	}
	if r.OutputIs == "" && r.OutputRef == nil {
		r.OutputIs = OutputNone
	}
	s.Status = r.Status
	s.Result = &r
	switch {
	case r.Reason == Timeout && s.Input.Revision == 0:
		s.Exit = ace.TimedOut
	case r.Status == Completed:
		s.Exit = ace.Completed
	case r.Status == Stopped:
		s.Exit = ace.Canceled
	default:
		s.Exit = ace.Failed
	}
	if s.Input.Mode != AsyncCallback || s.Input.ParentSessionID == "" {
		s.Notified = NotifiedNone
	}
}
