package ace

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Workflow types and the prefixes of their workflow IDs.
const (
	TaskWorkflow       = "AceTaskWorkflow"
	ExperimentWorkflow = "AceExperimentWorkflow"
	StoreWorkflow      = "AceStore" // its memo names the store of the namespace

	TaskIDPrefix       = "ace/"
	ExperimentIDPrefix = "ace-experiment/"
)

// Defaults of the contract.
const (
	DefaultNamespace = "ace-dev"
	TaskQueue        = "ace" // of acescope's workers, unless they are given another one
)

// WorkerIdentity is the beginning of the identity of acescope's workers.
const WorkerIdentity = "acescope "

// Activity types of task runs and experiments.
const (
	ActivityGenerator = "run_generator"
	ActivitySkills    = "run_skills_session"
	ActivityReflector = "run_reflector"
	ActivityCurator   = "run_curator"
	ActivityPersist   = "persist_results"

	ActivityLoadTasks = "load_tasks"
	ActivityEvaluate  = "run_evaluation"
	ActivityHead      = "playbook_head"

	// ActivityPlanTrials plans the next round of an ablation.
	ActivityPlanTrials = "plan_trials"
	// ActivityReadPlaybook returns the content of a version, for workers of other programs.
	ActivityReadPlaybook = "read_playbook"

	// ActivityLoadStep reads the result of a step that a fork reuses.
	ActivityLoadStep = "load_step"
)

// Signal and query names.
const (
	SignalToolEvent = "record_tool_event"
	SignalReview    = "review_operations"

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

// SearchAttributes returns the search attributes in display order.
func SearchAttributes() []string {
	return []string{AttrExperiment, AttrDataset, AttrModel, AttrAdapter, AttrExit, AttrTask, AttrPhase,
		AttrBlueprint, AttrRunner}
}

// SetupCommand returns the shell command that creates a namespace and its search attributes.
func SetupCommand(address, namespace string) string {
	cmd := "acescope setup"
	if address != "" {
		cmd += " --address " + address
	}
	return cmd + " --namespace " + namespace
}

// Memo keys.
const (
	// MemoSummary holds the [Summary] of a task run, so that a list of runs needs no history.
	MemoSummary = "ace_summary"
	// MemoFork holds the [Forked] of a fork, so that lineages are read from lists.
	MemoFork = "ace_fork"
	// MemoObserved holds the [ObservedStart] of an observed run.
	MemoObserved = "ace_observed"
	// MemoReview holds the [ReviewMemo] of a run that waits for review.
	MemoReview = "ace_review"
	// MemoBy holds the user who started a run, see [TaskInput.By], so that lists need no history.
	MemoBy = "ace_by"
)

// TimerIdle is the summary of the timer that ends an observed run without events.
const TimerIdle = "ace: nothing heard"

// TimerReview is the summary of the timer that limits a review.
const TimerReview = "ace: review"

// Adapter is the learning mode of an experiment.
type Adapter string

// Adapters: Offline learns task by task over epochs. Online measures a window of tasks with a
// frozen playbook and then learns from it.
const (
	Offline Adapter = "offline"
	Online  Adapter = "online"
)

// Phase is a stage of a task run.
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

// PhaseReview is the value of [AttrPhase] while a run waits for review, between curator and persist. It is
// not a phase: the run is in the phase persist, which has not begun.
const PhaseReview Phase = "review"

// Steps lists the phases that an activity executes, in order.
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

// Activity returns the type of the activity that executes the phase, or "" for PhaseDone.
func (p Phase) Activity() string { return activities[p] }

// StepOf returns the phase that an activity type executes.
func StepOf(activity string) (Phase, bool) {
	for _, p := range Steps() {
		if p.Activity() == activity {
			return p, true
		}
	}
	return "", false
}

func (p Phase) next() Phase {
	steps := Steps()
	i := slices.Index(steps, p)
	if i < 0 || i+1 == len(steps) {
		return PhaseDone
	}
	return steps[i+1]
}

// WorkflowID returns the workflow ID of a task run.
func WorkflowID(taskID string) string { return TaskIDPrefix + taskID }

// TaskIDOf returns the task ID in a workflow ID, or the whole ID if it lacks [TaskIDPrefix].
func TaskIDOf(workflowID string) string { return strings.TrimPrefix(workflowID, TaskIDPrefix) }

// ExperimentWorkflowID returns the workflow ID of an experiment.
func ExperimentWorkflowID(id string) string { return ExperimentIDPrefix + id }

const blueprintPrefix = "blueprint:"

// BlueprintProvider returns the name of the provider that executes steps as runs of a blueprint.
func BlueprintProvider(blueprint string) string { return blueprintPrefix + blueprint }

// BlueprintOf returns the blueprint of a provider that [BlueprintProvider] named.
func BlueprintOf(provider string) (string, bool) { return strings.CutPrefix(provider, blueprintPrefix) }

// RunLogsRoot is the slash-separated path of the run logs in the data directory.
const RunLogsRoot = "logs/runs"

// RunLogsDir returns the slash-separated path of a run's logs in the data directory. IDs are
// untrusted: the result is always two levels below [RunLogsRoot] and unique to the run.
func RunLogsDir(workflowID, runID string) string {
	return path.Join(RunLogsRoot, FileName(workflowID), FileName(runID))
}

// maxEscaped bounds an escaped file name, in bytes and without the digest.
const maxEscaped = 150

// FileName encodes any text as a unique file name. Letters, digits, dot, dash and underscore
// are kept; other bytes and a leading dot become % and two hexadecimal digits. A long name is
// truncated and ends with a digest.
func FileName(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if alphanumeric || c == '-' || c == '_' || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	switch {
	case name == "":
		return "%"
	case len(name) <= maxEscaped:
		return name
	}
	return fmt.Sprintf("%s%%-%x", name[:maxEscaped], sha256.Sum256([]byte(text)))
}

// Cut truncates text to at most n bytes of valid UTF-8 and marks a cut with an ellipsis, which
// is not counted.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(Head(text, n), "\ufffd") + "…"
}

// Head returns the first n bytes of text, or up to three fewer so that it does not split a character.
func Head(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// OneLine joins the words of text with single spaces and truncates it like [Cut].
func OneLine(text string, n int) string {
	return Cut(strings.Join(strings.Fields(Cut(text, 8*n)), " "), n)
}

// LastLine returns the last line of text that is not blank, without the space around it.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
