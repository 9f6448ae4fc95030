// Package console holds what screens share: the selected run, the list with its marks and filters, the filter
// language, the actions on runs, and the panes that views embed: [Pane], [List] for a table of rows, [Reader]
// for a document.
package console

import (
	"context"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// Options configure a console.
type Options struct {
	Flags    []string        // of commands of acescope that use the same data, such as --data-dir DIR
	Context  context.Context // of actions; nil for the background
	Controls Controls
	Actions  Actions // empty for a console that only reads
	// Refuse explains why an action is impossible and what to do instead. It is nil if there are Actions.
	Refuse func(verb string, of runs.ID) string
	Web    OpenWeb // nil if there is no Web UI
	Viewer Viewer  // nil if files cannot be opened
	// WebPage returns the address of a run in a Web UI that needs no start, "" if it is not known. It does no
	// I/O.
	WebPage  func(workflowID, runID string) string
	Filters  []runs.SavedFilter // the default one applies at the start
	Saver    FilterSaver        // nil if filters cannot be saved
	Location *time.Location     // of times of day; nil for local
	WorkDir  string             // where sessions start unless another directory is named
}

// Console has the parts that screens share. A screen keeps only those that it needs.
type Console struct {
	Navigation *Navigation
	Listing    *Listing
	Pipeline   *Pipeline
	Actor      *Actor
	Launcher   *Launcher
	Forks      *Forks
	Comparer   *Comparer
	Verifier   *Verifier
	Controls   Controls
	Location   *time.Location
	WorkDir    string

	web    OpenWeb
	viewer Viewer
}

// New returns the shared parts of a console. detail holds the selected run, as far as it is read.
func New(o Options, detail Value[*histories.Detail]) *Console {
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	nav := &Navigation{Following: true, flags: o.Flags, read: o.Controls.Select, detail: detail}
	listing := &Listing{Filters: o.Filters, context: o.Context, controls: o.Controls, saver: o.Saver}
	listing.StartFilter()
	pipeline := &Pipeline{Context: o.Context, controls: o.Controls, actions: o.Actions.Runs}
	actor := &Actor{pipeline: pipeline, actions: o.Actions.Runs, runners: o.Actions.Runners, nav: nav,
		listing: listing, refuse: o.Refuse}
	launcher := &Launcher{Context: o.Context, Actions: o.Actions.Launch, nav: nav, listing: listing,
		controls: o.Controls, texts: &promptTexts{context: o.Context, actions: o.Actions.Launch,
			kept: map[string]string{}}}
	forks := &Forks{actor: actor, launcher: launcher, actions: o.Actions.Forks, nav: nav, listing: listing,
		pipeline: pipeline, controls: o.Controls}
	return &Console{
		Navigation: nav,
		Listing:    listing,
		Pipeline:   pipeline,
		Actor:      actor,
		Launcher:   launcher,
		Forks:      forks,
		Comparer:   &Comparer{nav: nav, listing: listing, controls: o.Controls},
		Verifier:   &Verifier{nav, listing, o.Controls},
		Controls:   o.Controls,
		Location:   o.Location,
		WorkDir:    o.WorkDir,
		web:        o.Web,
		viewer:     o.Viewer,
	}
}

// Value is the newest value of a reader.
type Value[V any] interface{ Value() V }

// Feed is a feed as a screen uses it: the screen takes the newest value and reports whether it is shown.
type Feed[V any] interface {
	Value[V]
	Look(on bool)
}

// Controls changes what all screens show. Its methods except FindRun return at once; the views get the result
// at a later Refresh. Select is called for each row that the cursor passes.
type Controls interface {
	Connection() cluster.Connection
	SetQuery(query string)
	Select(id runs.ID)
	// FindRun finds a run by the name that a user gives it, see [runs.Resolve]. It is called inside commands.
	FindRun(ctx context.Context, name string) (runs.Run, error)
	SetPaused(paused bool)
	Refresh()
	// StartWork shows a long operation that the user can stop.
	StartWork(ctx context.Context, label string) (working context.Context, progress func(done, total int64),
		end func())
	// Compare compares two runs.
	Compare(histories.DiffAsk)
	// VerifyRun verifies the selected run in the time machine.
	VerifyRun(strict bool)
	// VerifyRuns verifies many runs.
	VerifyRuns(histories.VerifyRequest)
}

// Actions change runs, sessions and runners. They do I/O and are called inside commands. All are nil in a
// console that only reads.
type Actions struct {
	Runs     RunActions
	Launch   LaunchActions
	Forks    ForkActions
	Sessions SessionActions
	Runners  RunnerActions
	Flows    FlowActions
	Reviews  ReviewActions
}

// RunActions change a run. Preparing may read the history and changes nothing; [runs.Prepared].Do makes the
// change after the user confirmed it.
type RunActions interface {
	// Cancel requests cancellation. It returns before the run closes.
	Cancel(ctx context.Context, workflowID, runID string) error
	// Freeze returns the newest run of a workflow.
	Freeze(ctx context.Context, workflowID string) (runs.ID, error)
	Prepare(ctx context.Context, of runs.ID, c runs.Change) (runs.Prepared, error)
	// ExportPlaybook writes a version, as BRANCH@N, to a file in one of [playbook.ExportForms]. It returns
	// what it did.
	ExportPlaybook(ctx context.Context, version, path, form string) (lines []string, err error)
}

// ReviewActions decide on operations.
type ReviewActions interface {
	// DecideReview decides on the operations of a run that wait for review, as the user of the console.
	DecideReview(ctx context.Context, of runs.ID, d ace.ReviewDecision) error
}

// FlowActions change runs of flows.
type FlowActions interface {
	// DecideFlow approves or rejects a step that waits for approval. The history keeps the comment.
	DecideFlow(ctx context.Context, of runs.ID, step string, approved bool, comment string) error
}

// StartChoices are what a session on this machine can be started with.
type StartChoices struct {
	Agents  []string          // that are installed
	Install map[string]string // how to install the other agents, by name
	Dirs    []string          // that exist
}

// SessionActions change sessions on the engine.
type SessionActions interface {
	// StartChoices returns the installed agents, and which of the directories exist.
	StartChoices(ctx context.Context, dirs []string) StartChoices
	// StartSession starts a session and returns its ID. If the input has no ID, it generates one.
	StartSession(ctx context.Context, in session.Input, first string) (id string, err error)
	// SendMessage queues a message; waiting is the number of messages before it.
	SendMessage(ctx context.Context, session, message string) (waiting int, err error)
	// DecideCall allows or denies a waiting tool call. The agent is told the reason.
	DecideCall(ctx context.Context, session, call string, allow bool, reason string) error
	InterruptSession(ctx context.Context, session string) error
	StopSession(ctx context.Context, session string) error
	// Arguments reads the arguments of a call that are too large for its request.
	Arguments(ctx context.Context, ref ace.Ref) ([]byte, error)
}

// RunnerActions change blueprint runs and runners.
type RunnerActions interface {
	// StopRun asks a blueprint run to stop. It does not wait.
	StopRun(ctx context.Context, id string) error
	// DrainRunner stops assigning runs to a runner.
	DrainRunner(ctx context.Context, id string) error
}

// ForkActions fork runs of tasks.
type ForkActions interface {
	// Original reads a run to fork.
	Original(ctx context.Context, of runs.ID) (runs.Original, error)
	// Matching reads the newest runs that match a query, at most limit.
	Matching(ctx context.Context, query string, limit int) ([]runs.Run, error)
	// PlanForks plans forks of several runs with the same changes.
	PlanForks(ctx context.Context, originals []runs.Run, c runs.Change, progress runs.Progress) (runs.Batch,
		error)
}
