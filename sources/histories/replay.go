package histories

import (
	"time"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine/stepper"
	"acescope/engine/temporal/replay"
	"acescope/sources/cluster"
)

// What the time machine shows is made by engine/temporal/replay; views know it by these names.
type (
	StepRun          = stepper.Run
	StepFrame        = stepper.Frame
	StepChange       = stepper.Change
	StepBy           = stepper.By
	ReplayVerdict    = replay.Verdict
	VerifyDivergence = replay.Divergence
	VerifyCommand    = replay.Command
	VerifyKind       = replay.Kind
)

// What a step goes by.
const (
	StepEvent = stepper.ByEvent
	StepPhase = stepper.ByPhase
	StepTool  = stepper.ByTool
	StepError = stepper.ByError
)

// Replay is the selected run as of one of its events. It is immutable.
//
// Bounds: a history of at most [MaxEvents] events is held while somebody looks.
type Replay struct {
	WorkflowID string
	RunID      string
	Selected   string       // the run that was selected: a step over the border of a run leads to another
	Chain      cluster.Line // of which RunID is one, zero where that is not known
	About      StepRun
	Frame      *StepFrame   // nil until the history is read
	Known      []StepChange // all that is known as of it, by path
	Phases     []int        // positions, ascending, to which steps go
	Tools      []int
	Errors     []int
	Reading    bool
	Closed     bool
	Err        string

	Watched string // the expression, "" for none
	Seen    string // its value as of the event
	Said    string // what became of the last wish that led nowhere

	Verifying bool
	Verdict   *ReplayVerdict // nil before anybody asked
	Strict    bool           // of the verdict, or of the verifying that is under way
	Verified  time.Time
}

// Rhythm of reading an open run again.
const (
	ReplayEvery = 2 * time.Second
	ReplayRest  = 10 // times what the last reading took
)

const MaxReplayCommands = 1000

var StepWords = map[StepBy]string{StepEvent: "event", StepPhase: "change of phase", StepTool: "tool call", StepError: "error"}

func Cloned(events []*historypb.HistoryEvent) []*historypb.HistoryEvent {
	own := make([]*historypb.HistoryEvent, len(events))
	for i, e := range events {
		own[i] = proto.Clone(e).(*historypb.HistoryEvent)
	}
	return own
}
