package run

import (
	"encoding/json"
	"fmt"

	"acescope/engine/ace"
	"acescope/engine/runner"
	"acescope/engine/session"
)

// FactKind is the kind of a [Fact].
type FactKind int

// Fact kinds, those that arrive between two workflow tasks in the order in which such
// facts are applied. Closed is seen only by those who read a history.
const (
	FactStarted FactKind = iota + 1

	FactClaimed      // the dispatcher says which runner the run is given to
	FactBegan        // the runner says that the program runs
	FactSessionBegan // the agent's session has the message of the run
	FactEnded        // the activity that executes the run has
	FactReport       // the session says how its turn ended
	FactUnmatched    // the dispatcher says that there is no runner
	FactLost         // the dispatcher says that the runner is gone
	FactUnread       // a signal that nobody can read
	FactSessionGone  // there is no such session, or it ended without a report
	FactTimeUp       // the agent has had its time
	FactGivenUp      // the agent's session does not answer
	FactTold         // how the parent session was told
	FactCancelRequested

	FactAnswered      // the dispatcher answers at once what it was told: Claimed or Unmatched
	FactStopRequested // an update
	FactGiven         // the runner or the session is being given the run
	FactUntold        // the dispatcher could not be told
	FactTask          // a workflow task has ended: what comes next came after it
	FactClosed
)

// Fact is one thing that became known of a run. Only the fields of its kind are set.
type Fact struct {
	Kind      FactKind
	Input     *Input
	Claim     int64             // of Ended: under which claim
	Result    *Result           // of Ended, nil where the activity failed
	Claimed   *runner.Claim     // of Claimed and Answered
	Unmatched *runner.Unmatched // of Unmatched and Answered
	Lost      *runner.Lost
	Began     *Began
	Report    *session.Report
	Stop      *StopRequest
	Told      string       // of Told: told or ended
	Failure   *ace.Failure // of what failed, and of Closed
	Exit      ace.ExitStatus
}

// How the parent session was told.
const (
	ToldSession = "told"
	ToldEnded   = "ended"
	ToldNone    = "none"
)

// Summaries of the timers of an agent's run, by which a reader of its history knows them.
const (
	TimerLimit = "ace: time limit of the run"
	TimerGrace = "ace: the session does not answer"
)

// Started is the fact of a run's input.
func Started(in Input) Fact { return Fact{Kind: FactStarted, Input: &in} }

// Signals lists the signals that a run hears.
func Signals() []string {
	return []string{SignalClaimed, SignalStarted, SignalReport, SignalUnmatched, SignalLost}
}

// Heard is the fact of a signal, given as its JSON; false where the run does not know it.
func Heard(signal string, arg []byte) (Fact, bool) {
	f := Fact{}
	var into any
	switch signal {
	case SignalClaimed:
		f.Kind, f.Claimed = FactClaimed, &runner.Claim{}
		into = f.Claimed
	case SignalUnmatched:
		f.Kind, f.Unmatched = FactUnmatched, &runner.Unmatched{}
		into = f.Unmatched
	case SignalLost:
		f.Kind, f.Lost = FactLost, &runner.Lost{}
		into = f.Lost
	case SignalStarted:
		f.Kind, f.Began = FactBegan, &Began{}
		into = f.Began
	case SignalReport:
		f.Kind, f.Report = FactReport, &session.Report{}
		into = f.Report
	default:
		return Fact{}, false
	}
	if json.Unmarshal(arg, into) != nil {
		return Fact{Kind: FactUnread}, true
	}
	return f, true
}

// ExecutionEnded is the fact of what the execution under a claim gave, as its JSON; of a result that
// does not fit the contract, that it failed.
func ExecutionEnded(claim int64, result []byte) Fact {
	r := &Result{}
	err := json.Unmarshal(result, r)
	if err == nil && !r.Status.Over() {
		err = fmt.Errorf("its status is %q", r.Status)
	}
	if err != nil {
		return ExecutionFailed(claim, ace.Failure{Kind: ace.Failed, Type: ace.TypeBadResult,
			Message: fmt.Sprintf("%s returned a result that does not fit the contract: %v", ActivityExecute, err)})
	}
	return Fact{Kind: FactEnded, Claim: claim, Result: r}
}

// ExecutionFailed is the fact that the execution under a claim ended without a result.
func ExecutionFailed(claim int64, f ace.Failure) Fact {
	return Fact{Kind: FactEnded, Claim: claim, Failure: &f}
}

// Given is the fact that the run is being given to whom it was claimed for.
func Given() Fact { return Fact{Kind: FactGiven} }

// SessionGone is the fact that there is no session that could answer.
func SessionGone(f ace.Failure) Fact { return Fact{Kind: FactSessionGone, Failure: &f} }

// Told is the fact that the parent session was told, or that it is not there any more.
func Told(reached bool) Fact {
	if reached {
		return Fact{Kind: FactTold, Told: ToldSession}
	}
	return Fact{Kind: FactTold, Told: ToldEnded}
}

// Untold is the fact that the dispatcher could not be told of the run.
func Untold(f ace.Failure) Fact { return Fact{Kind: FactUntold, Failure: &f} }

// Answered is the fact of what the dispatcher answered at once to a run that told it that it
// wants a runner, given as its JSON; false where it did not. It says what the signals claimed
// and unmatched say, but comes at a known place: at the end of a workflow task.
func Answered(answer []byte) (Fact, bool) {
	var a runner.Answer
	if len(answer) == 0 || json.Unmarshal(answer, &a) != nil || a.Claimed == nil && a.Unmatched == nil {
		return Fact{}, false
	}
	return Fact{Kind: FactAnswered, Claimed: a.Claimed, Unmatched: a.Unmatched}, true
}

// StopRequested is the fact that somebody wants the run to end, given as its JSON; false
// where that cannot be read.
func StopRequested(arg []byte) (Fact, bool) {
	r := &StopRequest{}
	if len(arg) > 0 && json.Unmarshal(arg, r) != nil {
		return Fact{}, false
	}
	return Fact{Kind: FactStopRequested, Stop: r}, true
}

// CancelRequested is the fact that somebody asked for the workflow to be cancelled.
func CancelRequested() Fact { return Fact{Kind: FactCancelRequested} }

// Closed is the fact that the server closed the run's workflow.
func Closed(exit ace.ExitStatus, f *ace.Failure) Fact {
	return Fact{Kind: FactClosed, Exit: exit, Failure: f}
}

// arrives tells whether the fact may stand anywhere among those that came between the same
// two workflow tasks.
func (f Fact) arrives() bool { return f.Kind >= FactClaimed && f.Kind <= FactCancelRequested }
