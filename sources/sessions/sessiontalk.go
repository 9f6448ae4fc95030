package sessions

import (
	"slices"
	"time"

	"acescope/engine/agents/session"
	"acescope/sources/runs"
)

// MaxRunsRead bounds the runs of a session that are read for its conversation: a session
// continues as a new run from time to time.
const MaxRunsRead = 8

// Talk is one session on the engine: what is known of it, and what was said in it. It is
// never changed once it was handed out.
type Talk struct {
	WorkflowID, RunID string
	State             *session.State // nil before anything is known
	From              runs.Origin
	Conversation      *Conversation
	Turns             []*SessionTurn // the newest [MaxTurns]
	Host              string         // who serves it, "" where that is not known
	Runs              int            // that were read
	Earlier           bool           // there are runs before those
	// Log is the file that the turn under way is read from as it is written, "" where it is
	// not on this machine, or no turn is under way.
	Log     string
	Events  int64 // of the newest run
	Closed  bool
	Updated time.Time
	Err     string
}

// Rhythm of reading a session.
const (
	TalkAgain = 2 * time.Second        // between two questions whether its worker lives
	LogPoll   = 100 * time.Millisecond // between two looks whether a turn's log has grown
)

// TurnOf is the turn that has a message, nil before there is one.
func (t *Talk) TurnOf(messageID string) *SessionTurn {
	for _, turn := range slices.Backward(t.Turns) {
		if slices.ContainsFunc(turn.Messages, func(m session.Message) bool { return m.ID == messageID }) {
			return turn
		}
	}
	return nil
}

// Outcome is how the turn ended, as a record of it.
func (t *SessionTurn) Outcome() TurnRecord { return t.record() }
