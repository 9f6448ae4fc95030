package session

import "acescope/engine/ace"

// Withdraw takes back a message that waits, or interrupts the turn that it is answered in.
type Withdraw struct {
	MessageID string `json:"message_id"`
	Note
}

// ReportStatus says what became of a message that somebody waits for.
type ReportStatus string

// Report statuses: that of the turn, or that the session ended before the agent had the
// message. One that was withdrawn before the agent had it is interrupted, one that could not
// be taken has failed; both have no turn.
const (
	ReportCompleted   = ReportStatus(TurnCompleted)
	ReportFailed      = ReportStatus(TurnFailed)
	ReportInterrupted = ReportStatus(TurnInterrupted)
	ReportEnded       = ReportStatus("ended")
)

// Report tells the [Message.ReplyTo] of a message how its turn ended. Of several messages of
// one turn each has its report; the usage is given with the first of them only.
type Report struct {
	MessageID string       `json:"message_id"`
	SessionID string       `json:"session_id"`
	Turn      int          `json:"turn,omitempty"` // 0 where the agent never had the message
	Status    ReportStatus `json:"status"`
	Text      string       `json:"text,omitempty"` // what the agent said last, as in [TurnResult]
	Usage     ace.Usage    `json:"usage"`
	// DurationMS is the turn's.
	DurationMS float64      `json:"duration_ms"`
	Log        *ace.Ref     `json:"log,omitempty"`
	LogPath    string       `json:"log_path,omitempty"`
	Failure    *ace.Failure `json:"failure,omitempty"`
}
