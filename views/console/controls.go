package console

import (
	"acescope/engine/ace"
	"acescope/sources/sessions"
	"context"

	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Value is the newest value of a reader.
type Value[V any] interface{ Value() V }

// Feed is a feed as a screen uses it: the newest value, and whether the screen is shown.
type Feed[V any] interface {
	Value[V]
	Look(on bool)
}

// Controls steers what all screens show. Its methods return at once; what they lead to comes with a later Refresh of
// the views. Select is called for each row that the cursor passes.
type Controls interface {
	Connection() cluster.Connection
	SetQuery(query string)
	Select(id runs.ID)
	SetPaused(paused bool)
	Refresh()
	// StartWork shows a long operation that the user can stop.
	StartWork(ctx context.Context, label string) (working context.Context, progress func(done, total int64), end func())
	// Compare compares two runs.
	Compare(histories.DiffAsk)
	// VerifyRun verifies the selected run in the time machine.
	VerifyRun(strict bool)
	// VerifyRuns verifies many runs.
	VerifyRuns(histories.VerifyWish)
}

// Actions are what a person may do to a run. They do IO and are called inside
// commands.
type Actions interface {
	// Cancel asks the run to cancel itself; nil means that it was asked.
	Cancel(ctx context.Context, workflowID, runID string) error
	Mutations
	SessionActions
	RunnerActions
}

// SessionActions are what a person may do with sessions on the engine. They do IO and are
// called inside commands.
type SessionActions interface {
	// StartSession starts a session and gives its id; one that is not given is made.
	StartSession(ctx context.Context, in sessions.TalkInput, first string) (id string, err error)
	// SendMessage gives a session a message; waiting is how many stand before it.
	SendMessage(ctx context.Context, session, message string) (waiting int, err error)
	// DecideCall answers a tool call that waits. The reason is told to the agent.
	DecideCall(ctx context.Context, session, call string, allow bool, reason string) error
	InterruptSession(ctx context.Context, session string) error
	StopSession(ctx context.Context, session string) error
	// Arguments reads the arguments of a call that are too large to be in its request.
	Arguments(ctx context.Context, ref ace.Ref) ([]byte, error)
}

// RunnerActions are what a person may do with runs of blueprints and with runners. They do
// IO and are called inside commands.
type RunnerActions interface {
	// StopRun asks a run of a blueprint to end; it does not wait for that.
	StopRun(ctx context.Context, id string) error
	// DrainRunner has a runner take no more runs.
	DrainRunner(ctx context.Context, id string) error
}

// Mutations are what a person may do to a run besides cancelling it. Each prepares it,
// which may read the run's history, and changes nothing; it is done with the answer to the
// question.
type Mutations interface {
	// Freeze names the newest run of a workflow.
	Freeze(ctx context.Context, workflowID string) (Target, error)
	PrepareFork(ctx context.Context, of Target, at Point, changes []Field) (Prepared, error)
	PrepareReset(ctx context.Context, of Target, at Point, reason string) (Prepared, error)
	PrepareTerminate(of Target, reason string) (Prepared, error)
	PrepareSignal(of Target, name, argument string) (Prepared, error)
}
