package run

import (
	"regexp"
	"strings"

	"acescope/engine/session"
)

// Workflow is the type of a run's workflow and IDPrefix what its id begins with.
const (
	Workflow = "AceRunWorkflow"
	IDPrefix = "run/"
)

// StepPrefix is what the id of a run begins with that serves a step of a task: lists of all
// that was done leave such runs out, since the task is in them.
const StepPrefix = "step_"

// What a run answers and hears. Of a signal, what does not fit the claim that is in force is
// heard and not heeded.
const (
	UpdateStop = "stop"    // [StopRequest] → [State]
	QueryRun   = "get_run" // → [State]

	SignalClaimed   = "claimed"            // [runner.Claim], by the dispatcher
	SignalUnmatched = "unmatched"          // [runner.Unmatched], by the dispatcher
	SignalLost      = "runner_lost"        // [runner.Lost], by the dispatcher
	SignalStarted   = "started"            // [Began], by the runner, of a run that is not over at once
	SignalReport    = session.SignalReport // [session.Report], by the session that has the agent's conversation
)

// ErrTypeOver is the type of the error of an update that comes too late.
const ErrTypeOver = "RunOver"

// ActivityExecute executes a run on the queue of its runner: [Execution] → [Result].
const ActivityExecute = "execute_run"

// Types of the failures of [ActivityExecute] by which a runner gives a run back: it was ended,
// or lost its lease, while the program ran; or it never began it.
const (
	TypeRunnerLost = string(RunnerLost)
	TypeNotBegun   = "not_begun"
)

// Bounds of what a history holds of a run. What is longer is an artifact.
const (
	MaxPrompt = 100_000   // characters of a prompt
	MaxOutput = 16 << 10  // bytes of a structured output
	MaxText   = 8 << 10   // bytes of stdout, and of stderr: its beginning and its end
	MaxParams = 256 << 10 // bytes of parameters
	// MaxCapture is how much of stdout, and of stderr, is kept as an artifact.
	MaxCapture = 16 << 20
)

// DefaultMatchWithin is how long a run waits for a runner, and DefaultTimeout how long it
// may run, in seconds, unless its blueprint says otherwise.
const (
	DefaultMatchWithin = 300
	DefaultTimeout     = 3600
)

// WorkflowID is the id of a run's workflow.
func WorkflowID(runID string) string { return IDPrefix + runID }

// IDOf is the run id of a workflow id, "" for other workflows.
func IDOf(workflowID string) string {
	id, ok := strings.CutPrefix(workflowID, IDPrefix)
	if !ok {
		return ""
	}
	return id
}

// names are run ids, session ids and the names of blueprints.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// ValidName tells whether a text can be a blueprint's name or an id: letters, digits, dot,
// dash and underscore, not beginning with one of the last three, at most 100.
func ValidName(name string) bool { return names.MatchString(name) && !strings.Contains(name, "..") }
