package session

import (
	"encoding/json"
	"fmt"

	"acescope/engine/ace"
)

// FactKind is the kind of a [Fact].
type FactKind int

// Fact kinds. Closed is seen only by those who read a history.
const (
	FactStarted FactKind = iota + 1
	FactClaimed
	FactUpdate
	FactTurnBegan
	FactTurnEnded
	FactToolRan
	FactCancelRequested
	FactSignal   // something was signalled
	FactTurnCut  // the turn under way is told to end
	FactReported // a report is on its way, for good
	FactUnheard  // nobody was there to hear a report
	FactClosed
)

// Fact is one thing that became known of a session. Only the fields of its kind are set.
type Fact struct {
	Kind    FactKind
	Input   *Input
	Host    *Host        // of Claimed, nil where it failed
	Signal  any          // of Signal: *Message or *Withdraw, nil where it cannot be read
	Message string       // of Reported: the message's id
	Update  any          // of Update: *Message, *Receive, *ToolRequest, *Decision, *Interrupt or *Stop
	Turn    *TurnInput   // of TurnBegan
	Result  *TurnResult  // of TurnEnded, nil where the activity failed
	CallID  string       // of ToolRan
	Tool    *ToolResult  // of ToolRan, nil where the activity failed
	Failure *ace.Failure // of what failed, and of Closed
	Exit    ace.ExitStatus
}

// Interrupt and Stop are the notes of their updates.
type (
	Interrupt Note
	Stop      Note
)

// Started is the fact of a session's input.
func Started(in Input) Fact { return Fact{Kind: FactStarted, Input: &in} }

// Accepted is the fact that a session took an update; false where it is none that changes
// what is known, or its argument cannot be read.
func Accepted(name, id string, arg []byte) (Fact, bool) {
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

// Signalled is the fact of a signal; false where the session does not listen to it.
func Signalled(name string, arg []byte) (Fact, bool) {
	switch name {
	case SignalDeliver:
		if m := (&Message{}); json.Unmarshal(arg, m) == nil {
			return Fact{Kind: FactSignal, Signal: m}, true
		}
	case SignalWithdraw:
		if w := (&Withdraw{}); json.Unmarshal(arg, w) == nil {
			return Fact{Kind: FactSignal, Signal: w}, true
		}
	default:
		return Fact{}, false
	}
	return Fact{Kind: FactSignal}, true
}

// Reported is the fact that the report of a message was sent.
func Reported(messageID string) Fact { return Fact{Kind: FactReported, Message: messageID} }

// Unheard is the fact that a report's receiver was gone.
func Unheard() Fact { return Fact{Kind: FactUnheard} }

// TurnCut is the fact that the turn under way was told to end.
func TurnCut() Fact { return Fact{Kind: FactTurnCut} }

// Named is the message with an id, of its own or else that of its update.
func (m Message) Named(id string) Message {
	if m.ID == "" {
		m.ID = id
	}
	return m
}

// Named is the request with an id, of its own or else that of its update.
func (r ToolRequest) Named(id string) ToolRequest {
	if r.ID == "" {
		r.ID = id
	}
	return r
}

// Ended is the fact of an activity's result, given as its JSON; of one that does not fit
// the contract, that it failed.
func Ended(activity, callID string, result []byte) Fact {
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
		return Failed(activity, callID, ace.Failure{Kind: ace.Failed, Type: ace.TypeBadResult,
			Message: fmt.Sprintf("%s returned a result that does not fit the contract: %v", activity, err)})
	}
	return f
}

// Failed is the fact that an activity ended without a result, after its last retry.
func Failed(activity, callID string, failure ace.Failure) Fact {
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

// CancelRequested is the fact that somebody asked for the workflow to be cancelled.
func CancelRequested() Fact { return Fact{Kind: FactCancelRequested} }

// Closed is the fact that the server closed the session's run.
func Closed(exit ace.ExitStatus, f *ace.Failure) Fact {
	return Fact{Kind: FactClosed, Exit: exit, Failure: f}
}
