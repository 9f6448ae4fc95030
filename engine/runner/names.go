package runner

import "strings"

// Workflow is the type of a runner's workflow and IDPrefix what its id begins with.
// DispatcherWorkflow is the type of the dispatcher's, DispatcherID its id.
const (
	Workflow           = "AceRunnerWorkflow"
	IDPrefix           = "runner/"
	DispatcherWorkflow = "AceDispatcherWorkflow"
	DispatcherID       = "dispatcher"
)

// Updates and the query of a runner's workflow.
const (
	UpdateRegister = "register" // [Registration] → [Lease]; with the start of the workflow
	UpdateDrain    = "drain"    // [Note] → [Info]: it gets no more runs
	UpdateLeave    = "leave"    // [Note] → [Info]: it ends, its programs have ended

	QueryRunner = "get_runner" // → [Info]
)

// What the dispatcher hears and answers.
const (
	SignalNotices = "notices" // [Notices]
	// SignalAskAgain has a run, or a runner, tell the dispatcher again what it wants and has: a
	// new one knows nothing. It has no argument.
	SignalAskAgain  = "ask_again"
	QueryDispatcher = "get_dispatcher" // [View]'s options → [View]
)

// Activities. The lease is held on the runner's own queue; the others are local activities
// of the workers that serve workflows, which gather what many workflows have to say.
const (
	ActivityLease     = "hold_runner_lease" // [LeaseInput] → nothing; ends by its heartbeat's time-out, or when the runner leaves
	ActivityTell      = "tell_dispatcher"   // [Notices] → the dispatcher's [Answer] to an Enqueue, where that comes at once, else null; starts the dispatcher where there is none
	ActivityTellRuns  = "tell_runs"         // [Answers] → [Told]
	ActivityRecall    = "recall"            // page → the next page, nil after the last: has runs and runners tell again
	ActivityCheckRuns = "check_runs"        // [Check] → [Checked]
)

// Bounds.
const (
	MaxPending = 20_000
	MaxRunners = 1_000
	MaxTags    = 64
)

// WorkflowID is the id of a runner's workflow.
func WorkflowID(id string) string { return IDPrefix + id }

// IDOf is the runner's id of a workflow id, "" for other workflows.
func IDOf(workflowID string) string {
	id, ok := strings.CutPrefix(workflowID, IDPrefix)
	if !ok {
		return ""
	}
	return id
}
