package console

import (
	"context"
	"time"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/sources/histories"
	"acescope/sources/playbooks"
	"acescope/sources/sessions"
)

// Controls steers what is observed. Every method returns at once; what it leads to
// comes with a later snapshot. Select is called for each row the cursor passes.
type Controls interface {
	SetQuery(query string)
	Select(workflowID, runID string)
	Refresh()
	SetPaused(paused bool)
	listControls
	// Look starts or stops reading a part of the snapshot.
	Look(part sources.Part, on bool)
	logControls
	ExperimentControls
	TriageControls
	ArtifactControls
	bookControls
	EventControls
	DiffControls
	ReplayControls
	agentControls
	VerifyControls
	RunnerControls
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

// listControls steer which part of the list of runs is held.
type listControls interface {
	// LoadMore holds more of the older runs, LoadNewer of the newer ones.
	LoadMore()
	LoadNewer()
	// LoadFirst goes to the newest runs, LoadLast walks to the oldest; StopWalk ends that
	// where it is.
	LoadFirst()
	LoadLast()
	StopWalk()
}

// logControls steers which logs are followed.
type logControls interface {
	// FollowLogs follows files or directories; none go back to those of the selected run.
	FollowLogs(paths []string)
	// FollowCalls shows the artifact with the tool calls of a run.
	FollowCalls(ref ace.Ref)
}

// ExperimentControls asks for what the experiments' screens show.
type ExperimentControls interface {
	// ShowExperiments asks for the series of experiments, by workflow id.
	ShowExperiments(workflowIDs []string)
}

// TriageControls steers the triage. Its methods return at once.
type TriageControls interface {
	SetTriageWindow(ended int)
	SetTriageSince(d time.Duration)
	ScanTriage()
	StopTriage()
}

// ArtifactControls reads what is too large for a history.
type ArtifactControls interface {
	// OpenArtifact reads an artifact into the snapshot.
	OpenArtifact(ref ace.Ref)
}

// bookControls steers what is read of playbooks.
type bookControls interface {
	WantBooks(w playbooks.BookWish)
	ReadBooks()
}

// EventControls steers what is read of the selected run's events.
type EventControls interface {
	FilterEvents(f histories.EventFilter)
	// OpenEvent makes one event readable, whole; it is called for each that the cursor
	// passes.
	OpenEvent(id int64)
}

// DiffControls steers which runs are compared.
type DiffControls interface {
	// DiffRuns compares two runs anew, with all also in what differs between any two.
	DiffRuns(a, b histories.DiffRef, all bool)
}

// ReplayControls steers the time machine. Its methods return at once.
type ReplayControls interface {
	StepTo(event int64)
	StepToPosition(pos int)
	StepMove(by histories.StepBy, forward bool)
	WatchValue(expr string)
	NextWatched(forward bool)
	VerifyRun(strict bool)
}

// agentControls steers which conversation is read.
type agentControls interface {
	// ReadTalk wants the conversation of a transcript, "" none. It is called for each row
	// that the cursor passes.
	ReadTalk(path string)
	// ReadSession wants the conversation of a session on the engine, in the same way.
	ReadSession(workflowID string)
}

// VerifyControls verifies many runs. Its method returns at once.
type VerifyControls interface {
	VerifyRuns(w sources.VerifyWish)
}

// RunnerControls steers what is read of runners.
type RunnerControls interface {
	// ReadRunner wants the runs of a runner, "" none. It is called for each row that the
	// cursor passes.
	ReadRunner(id string)
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
