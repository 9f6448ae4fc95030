package run

import (
	"encoding/json"
	"fmt"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/tasks/runner"
)

// FactKind is the kind of a [Fact].
type FactKind int

// Fact kinds. Those from FactClaimed to FactCancelRequested may arrive in any order between
// two workflow tasks and are applied in the order of this list.
const (
	FactStarted FactKind = iota + 1

	FactClaimed        // the dispatcher names the runner of the run
	FactProgramStarted // the runner has started the program
	FactSessionStarted // the agent's session has the message of the run
	FactEnded          // the activity that executes the run has ended
	FactReport         // the session reports how its turn ended
	FactUnmatched      // the dispatcher has no runner
	FactLost           // the dispatcher reports that the runner is gone
	FactUnreadable     // a signal that cannot be decoded
	FactSessionGone    // the session does not exist, or ended without a report
	FactTimeLimit      // the agent has exceeded its time limit
	FactSessionTimeout // the agent's session does not answer
	FactParentNotified // the parent session was notified, or does not exist
	FactCancelRequested

	FactAnswered         // the dispatcher's immediate answer: Claimed or Unmatched
	FactStopRequested    // an update
	FactSubmitted        // the run is being submitted to its runner or session
	FactDispatcherFailed // the dispatcher could not be notified
	FactTask             // a workflow task has ended
	FactClosed           // the server closed the workflow; known to readers of a history only
)

// Fact is one event of a run. Only the fields of its kind are set.
type Fact struct {
	Kind         FactKind
	Input        *Input
	Claim        int64             // of Ended
	Result       *Result           // of Ended; nil if the activity failed
	Claimed      *runner.Claim     // of Claimed and Answered
	Unmatched    *runner.Unmatched // of Unmatched and Answered
	Lost         *runner.Lost
	ProgramStart *ProgramStart
	Report       *session.Report
	Stop         *StopRequest
	Notified     string       // of ParentNotified: NotifiedSession or NotifiedEnded
	Failure      *ace.Failure // of failures, and of Closed
	Exit         ace.Status
}

// arrives reports whether the fact may arrive in any order between two workflow tasks.
func (f Fact) arrives() bool { return f.Kind >= FactClaimed && f.Kind <= FactCancelRequested }

// How the parent session was notified.
const (
	NotifiedSession = "told"
	NotifiedEnded   = "ended" // the parent session is not open
	NotifiedNone    = "none"  // the run has no parent to notify
)

// Summaries of the timers of an agent's run, by which a reader of the history identifies them.
const (
	TimerLimit = "ace: time limit of the run"
	TimerGrace = "ace: the session does not answer"
)

// Started is the fact of a run's input.
func Started(in Input) Fact { return Fact{Kind: FactStarted, Input: &in} }

// Signals lists the names of the signals that a run receives.
func Signals() []string {
	return []string{SignalClaimed, SignalStarted, SignalReport, SignalUnmatched, SignalLost}
}

// SignalFact decodes the JSON argument of a signal. It returns false for an unknown signal.
func SignalFact(signal string, arg []byte) (Fact, bool) {
	var f Fact
	var into any
	switch signal {
	case SignalClaimed:
		f = Fact{Kind: FactClaimed, Claimed: &runner.Claim{}}
		into = f.Claimed
	case SignalUnmatched:
		f = Fact{Kind: FactUnmatched, Unmatched: &runner.Unmatched{}}
		into = f.Unmatched
	case SignalLost:
		f = Fact{Kind: FactLost, Lost: &runner.Lost{}}
		into = f.Lost
	case SignalStarted:
		f = Fact{Kind: FactProgramStarted, ProgramStart: &ProgramStart{}}
		into = f.ProgramStart
	case SignalReport:
		f = Fact{Kind: FactReport, Report: &session.Report{}}
		into = f.Report
	default:
		return Fact{}, false
	}
	if json.Unmarshal(arg, into) != nil {
		return Fact{Kind: FactUnreadable}, true
	}
	return f, true
}

// ExecutionEnded is the fact of the JSON result of an execution. A result that does not match
// the contract is a failure.
func ExecutionEnded(claim int64, result []byte) Fact {
	r := &Result{}
	err := json.Unmarshal(result, r)
	if err == nil && !r.Status.Over() {
		err = fmt.Errorf("its status is %q", r.Status)
	}
	if err != nil {
		return ExecutionFailed(claim, ace.Failure{Kind: ace.Failed, Type: ace.TypeBadResult,
			Message: fmt.Sprintf("%s returned a result that does not fit the contract: %v", ActivityExecute,
				err)})
	}
	return Fact{Kind: FactEnded, Claim: claim, Result: r}
}

// ExecutionFailed is the fact that an execution ended without a result.
func ExecutionFailed(claim int64, f ace.Failure) Fact {
	return Fact{Kind: FactEnded, Claim: claim, Failure: &f}
}

// Submitted is the fact that the run is being submitted to its runner or session.
func Submitted() Fact { return Fact{Kind: FactSubmitted} }

// SessionGone is the fact that no session can answer.
func SessionGone(f ace.Failure) Fact { return Fact{Kind: FactSessionGone, Failure: &f} }

// ParentNotified is the fact that the parent session was notified, or does not exist anymore.
func ParentNotified(reached bool) Fact {
	if reached {
		return Fact{Kind: FactParentNotified, Notified: NotifiedSession}
	}
	return Fact{Kind: FactParentNotified, Notified: NotifiedEnded}
}

// DispatcherFailed is the fact that the dispatcher could not be notified of the run.
func DispatcherFailed(f ace.Failure) Fact { return Fact{Kind: FactDispatcherFailed, Failure: &f} }

// Answered decodes the dispatcher's immediate answer to a request. It returns false without an answer. The
// fact states the same as the signals claimed and unmatched, but has a known place in the history: at the end
// of a workflow task.
func Answered(answer []byte) (Fact, bool) {
	var a runner.Answer
	if len(answer) == 0 || json.Unmarshal(answer, &a) != nil || a.Claimed == nil && a.Unmatched == nil {
		return Fact{}, false
	}
	return Fact{Kind: FactAnswered, Claimed: a.Claimed, Unmatched: a.Unmatched}, true
}

// StopRequested decodes the argument of [UpdateStop]. It returns false if that is invalid.
func StopRequested(arg []byte) (Fact, bool) {
	r := &StopRequest{}
	if len(arg) > 0 && json.Unmarshal(arg, r) != nil {
		return Fact{}, false
	}
	return Fact{Kind: FactStopRequested, Stop: r}, true
}

// CancelRequested is the fact that the cancellation of the workflow was requested.
func CancelRequested() Fact { return Fact{Kind: FactCancelRequested} }

// Closed is the fact that the server closed the workflow.
func Closed(exit ace.Status, f *ace.Failure) Fact {
	return Fact{Kind: FactClosed, Exit: exit, Failure: f}
}
