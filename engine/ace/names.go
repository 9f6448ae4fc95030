package ace

import "strings"

// Workflow types, and the prefixes of the workflow ids they run under.
const (
	TaskWorkflow       = "AceTaskWorkflow"
	ExperimentWorkflow = "AceExperimentWorkflow"

	TaskIDPrefix       = "ace/"
	ExperimentIDPrefix = "ace-experiment/"
)

// Defaults of the contract.
const (
	DefaultNamespace = "ace-dev"
	TaskQueue        = "ace"
)

// Activity types.
const (
	ActivityGenerator = "run_generator"
	ActivitySkills    = "run_skills_session"
	ActivityReflector = "run_reflector"
	ActivityCurator   = "run_curator"
	ActivityPersist   = "persist_results"

	// ActivityLoadTasks and ActivityEvaluate serve the experiment workflow.
	ActivityLoadTasks = "load_tasks"
	ActivityEvaluate  = "run_evaluation"
	ActivityHead      = "playbook_head"

	// ActivityLoadStep reads the result of a step that a fork takes over.
	ActivityLoadStep = "load_step"
)

// Signal and query names.
const (
	SignalToolEvent = "record_tool_event"

	QueryPhase      = "get_current_phase"
	QuerySkills     = "get_skill_usage"
	QueryDelta      = "get_playbook_delta"
	QueryExperiment = "get_experiment"
)

// Search attributes, all of type Keyword.
const (
	AttrExperiment = "ExperimentId"
	AttrDataset    = "DatasetId"
	AttrModel      = "ModelName"
	AttrAdapter    = "AdapterType"
	AttrExit       = "ExitStatus"
	AttrTask       = "TaskId"
	AttrPhase      = "Phase"
	AttrBlueprint  = "BlueprintName"
	AttrRunner     = "RunnerId"
)

// SearchAttributes lists the nine attributes in the order in which screens and
// documents show them.
func SearchAttributes() []string {
	return []string{AttrExperiment, AttrDataset, AttrModel, AttrAdapter, AttrExit, AttrTask, AttrPhase, AttrBlueprint, AttrRunner}
}

// AddAttributes is the command that adds search attributes to a namespace.
func AddAttributes(namespace string, names []string) string {
	cmd := "temporal operator search-attribute create --namespace " + namespace
	for _, n := range names {
		cmd += " --name " + n + " --type Keyword"
	}
	return cmd
}

// MemoSummary is the memo key under which a task run leaves its [Summary], so that
// a list of runs needs no history.
const MemoSummary = "ace_summary"

// MemoFork is the memo key under which a fork is started with its [Forked], so that
// lineages are read from lists.
const MemoFork = "ace_fork"

// MemoObserved is the memo key under which an observed run is started with its
// [ObservedStart].
const MemoObserved = "ace_observed"

// TimerSilent is the summary of the timer that ends an observed run of which nothing was
// heard for too long.
const TimerSilent = "ace: nothing heard"

// Adapter says how an experiment learns.
type Adapter string

// Adapters: Offline learns task by task over epochs, Online measures a window of
// tasks with a frozen playbook and then learns from it.
const (
	Offline Adapter = "offline"
	Online  Adapter = "online"
)

// ExitStatus is the outcome of a run as the ExitStatus search attribute holds it.
type ExitStatus string

// Exit statuses. Success and Wrong both mean that the run completed: Wrong that its
// answer did not match the label.
const (
	Running   ExitStatus = "running"
	Success   ExitStatus = "success"
	Wrong     ExitStatus = "wrong"
	Failed    ExitStatus = "failed"
	Cancelled ExitStatus = "cancelled"
	Timeout   ExitStatus = "timeout"
)

// Continued is how a run is shown that goes on as another under the same workflow id: no run
// says it of itself, and no search attribute holds it.
const Continued ExitStatus = "continued"

// ExitStatuses lists every status, Running first.
func ExitStatuses() []ExitStatus {
	return []ExitStatus{Running, Success, Wrong, Failed, Cancelled, Timeout}
}

// Phase is where a run stands.
type Phase string

// Phases of a task run, in order.
const (
	PhaseGenerator Phase = "generator"
	PhaseSkills    Phase = "skills"
	PhaseReflector Phase = "reflector"
	PhaseCurator   Phase = "curator"
	PhasePersist   Phase = "persist"
	PhaseDone      Phase = "done"
)

// Steps lists the phases that are served by an activity, in order.
func Steps() []Phase {
	return []Phase{PhaseGenerator, PhaseSkills, PhaseReflector, PhaseCurator, PhasePersist}
}

var activities = map[Phase]string{
	PhaseGenerator: ActivityGenerator,
	PhaseSkills:    ActivitySkills,
	PhaseReflector: ActivityReflector,
	PhaseCurator:   ActivityCurator,
	PhasePersist:   ActivityPersist,
}

// Activity is the activity type that serves the phase, "" for PhaseDone.
func (p Phase) Activity() string { return activities[p] }

// StepOf is the phase that an activity type serves; false for other activities.
func StepOf(activity string) (Phase, bool) {
	for _, p := range Steps() {
		if activities[p] == activity {
			return p, true
		}
	}
	return "", false
}

func (p Phase) next() Phase {
	steps := Steps()
	for i, s := range steps {
		if s == p && i+1 < len(steps) {
			return steps[i+1]
		}
	}
	return PhaseDone
}

// WorkflowID is the workflow id of a task run.
func WorkflowID(taskID string) string { return TaskIDPrefix + taskID }

// TaskIDOf is the task id within a workflow id, or the whole id where it has no
// such prefix.
func TaskIDOf(workflowID string) string { return strings.TrimPrefix(workflowID, TaskIDPrefix) }

// ExperimentWorkflowID is the workflow id of an experiment.
func ExperimentWorkflowID(id string) string { return ExperimentIDPrefix + id }
