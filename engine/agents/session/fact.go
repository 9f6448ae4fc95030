package session

import (
	"encoding/json"
	"fmt"

	"acescope/engine/ace"
)

// FactKind is the kind of a [Fact].
type FactKind int

// Fact kinds. FactClosed occurs only when a history is read.
const (
	FactStarted FactKind = iota + 1
	FactClaimed
	FactUpdate
	FactTurnBegan
	FactTurnEnded
	FactToolRan
	FactCancelRequested // of the workflow
	FactSignal
	FactTurnCancelRequested // by the workflow
	FactReported            // a report was sent
	FactReportUndelivered   // the receiver of a report was gone
	FactClosed
)

// Fact is one fact about a session. Only the fields of its kind are set.
type Fact struct {
	Kind    FactKind
	Input   *Input
	Host    *Host  // FactClaimed; nil if the activity failed
	Signal  any    // FactSignal: *Message, *Withdraw or *TurnAttempt, nil if it cannot be decoded
	Message string // FactReported: message id
	// FactUpdate: *Message, *Receive, *ToolRequest, *Decision, *Interrupt, *Stop or *Move
	Update  any
	Turn    *TurnInput   // FactTurnBegan
	Result  *TurnResult  // FactTurnEnded; nil if the activity failed
	CallID  string       // FactToolRan
	Tool    *ToolResult  // FactToolRan; nil if the activity failed
	Failure *ace.Failure // of a failed activity and of FactClosed
	Exit    ace.Status
}

// Started returns the fact of a session's start.
func Started(in Input) Fact { return Fact{Kind: FactStarted, Input: &in} }

// Accepted returns the fact of an accepted update; ok is false if the update does not change the
// state or its argument cannot be decoded.
func Accepted(name, id string, arg []byte) (f Fact, ok bool) {
	var u any
	switch name {
	case UpdateSend:
		u = &Message{}
	case UpdateReceive:
		u = &Receive{}
	case UpdateTool:
		u = &ToolRequest{}
	case UpdateDecide:
		u = &Decision{}
	case UpdateInterrupt:
		u = &Interrupt{}
	case UpdateStop:
		u = &Stop{}
	case UpdateMove:
		u = &Move{}
	default:
		return Fact{}, false
	}
	if len(arg) > 0 && json.Unmarshal(arg, u) != nil {
		return Fact{}, false
	}
	switch u := u.(type) {
	case *Message:
		*u = u.Named(id)
	case *ToolRequest:
		*u = u.Named(id)
	}
	return Fact{Kind: FactUpdate, Update: u}, true
}

// Signaled returns the fact of a signal; ok is false if sessions do not handle the signal.
func Signaled(name string, arg []byte) (f Fact, ok bool) {
	f.Kind = FactSignal
	switch name {
	case SignalDeliver:
		if m := (&Message{}); json.Unmarshal(arg, m) == nil {
			f.Signal = m
		}
	case SignalWithdraw:
		if w := (&Withdraw{}); json.Unmarshal(arg, w) == nil {
			f.Signal = w
		}
	case SignalAttempt:
		if a := (&TurnAttempt{}); json.Unmarshal(arg, a) == nil {
			f.Signal = a
		}
	default:
		return Fact{}, false
	}
	return f, true
}

// Reported returns the fact that the report of a message was sent.
func Reported(messageID string) Fact { return Fact{Kind: FactReported, Message: messageID} }

// ActivityCompleted returns the fact of an activity's result, given as JSON. A result that does
// not match the contract counts as a failure.
func ActivityCompleted(activity, callID string, result []byte) Fact {
	f := Fact{CallID: callID}
	var err error
	switch activity {
	case ActivityClaim:
		f.Kind, f.Host = FactClaimed, &Host{}
		err = json.Unmarshal(result, f.Host)
	case ActivityTurn:
		f.Kind, f.Result = FactTurnEnded, &TurnResult{}
		err = json.Unmarshal(result, f.Result)
	case ActivityTool:
		f.Kind, f.Tool = FactToolRan, &ToolResult{}
		err = json.Unmarshal(result, f.Tool)
	}
	if err != nil {
		return ActivityFailed(activity, callID, ace.Failure{Kind: ace.Failed, Type: ace.TypeBadResult,
			Message: fmt.Sprintf("%s returned a result that does not fit the contract: %v", activity, err)})
	}
	return f
}

// ActivityFailed returns the fact that an activity failed, after its last retry.
func ActivityFailed(activity, callID string, failure ace.Failure) Fact {
	f := Fact{CallID: callID, Failure: &failure}
	switch activity {
	case ActivityClaim:
		f.Kind = FactClaimed
	case ActivityTurn:
		f.Kind = FactTurnEnded
	case ActivityTool:
		f.Kind = FactToolRan
	}
	return f
}

// Closed returns the fact that the server closed the session's run.
func Closed(exit ace.Status, f *ace.Failure) Fact {
	return Fact{Kind: FactClosed, Exit: exit, Failure: f}
}
