// Package experiments folds the history of an experiment into series of its tasks and compares two series.
package experiments

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/fnv"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// Finished is a closed task of an experiment. If it did not complete, Failure is set and Result holds only
// its id.
type Finished struct {
	Status     ace.Status
	Verdict    ace.Verdict // "" if it did not complete or its budget ended it before grading
	WorkflowID string
	RunID      string
	Event      int64
	At         time.Time
	Took       time.Duration
	Result     ace.TaskResult
	Failure    *ace.Failure

	began *taskStart // nil if its start is not in the history
}

// Follow follows an experiment and the runs that continue it until it closes, and returns the final state. It
// calls task for each task that ends; task may be nil. away is as in [cluster.Follow].
func Follow(ctx context.Context, c client.Client, namespace, workflowID, runID string, away func(error),
	task func(ace.ExperimentInput, Finished)) (*ace.ExperimentState, error) {
	state, _, err := followRuns(ctx, c, namespace, workflowID, runID, away, task)
	return state, err
}

// FollowWhole is [Follow] from the first run of the chain of run. If the first runs are deleted, it begins
// with run. It also returns the id of the last run.
func FollowWhole(ctx context.Context, c client.Client, namespace string,
	run *workflowpb.WorkflowExecutionInfo, away func(error),
	task func(ace.ExperimentInput, Finished)) (*ace.ExperimentState, string, error) {
	workflowID, runID, first := run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId(),
		run.GetFirstRunId()
	if first == "" || first == runID {
		return followRuns(ctx, c, namespace, workflowID, runID, away, task)
	}
	state, last, err := followRuns(ctx, c, namespace, workflowID, first, away, task)
	if cluster.NotFound(err) && last != runID {
		return followRuns(ctx, c, namespace, workflowID, runID, away, task)
	}
	return state, last, err
}

func followRuns(ctx context.Context, c client.Client, namespace, workflowID, runID string, away func(error),
	task func(ace.ExperimentInput, Finished)) (*ace.ExperimentState, string, error) {
	for {
		next := ""
		f := NewFolder(task)
		err := cluster.Follow(ctx, c, namespace, workflowID, runID, away,
			func(e *historypb.HistoryEvent) error {
				f.Apply(e)
				next = history.NextRun(e)
				return f.Foreign
			})
		if err != nil || next == "" {
			return &f.State, runID, err
		}
		runID = next
	}
}

// taskStart is the input of a task, and the start of its run.
type taskStart struct {
	TaskID    string   `json:"task_id"`
	Prompt    string   `json:"prompt"`
	PromptRef *ace.Ref `json:"prompt_ref"`
	Epoch     int      `json:"epoch"`
	Index     int      `json:"index"`

	key     uint64 // hash of the prompt
	run     *commonpb.WorkflowExecution
	started time.Time
}

// startOf reads the input of a child, without the prompt.
func startOf(a *historypb.StartChildWorkflowExecutionInitiatedEventAttributes) *taskStart {
	var t taskStart
	err := json.Unmarshal(history.PayloadJSON(cluster.First(a.GetInput().GetPayloads())), &t)
	if err != nil || t.Epoch < 1 { // not a task of an experiment: index 0 means nothing
		t.Index = -1
	}
	if t.TaskID == "" {
		t.TaskID = ace.TaskIDOf(a.GetWorkflowId())
	}
	prompt := t.Prompt
	if t.PromptRef != nil {
		prompt = t.PromptRef.SHA256
	}
	t.key = promptKey(prompt)
	t.Prompt, t.PromptRef = "", nil
	return &t
}

// promptKey returns the hash of a prompt or of its digest, 0 for "".
func promptKey(prompt string) uint64 {
	if prompt == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(prompt))
	return h.Sum64()
}

// Folder folds the history of one run of an experiment.
type Folder struct {
	State   ace.ExperimentState
	Foreign error // why the input is not an experiment's

	task    func(ace.ExperimentInput, Finished)
	decoder history.ExperimentDecoder
	open    map[int64]*taskStart // by initiated event id
}

func NewFolder(task func(ace.ExperimentInput, Finished)) *Folder {
	return &Folder{task: task, open: map[int64]*taskStart{}}
}

func (f *Folder) Apply(e *historypb.HistoryEvent) {
	fact, ok, err := f.decoder.Fact(e)
	if err != nil {
		f.Foreign = err
	}
	if ok {
		f.State.Apply(fact)
	}
	if a := e.GetStartChildWorkflowExecutionInitiatedEventAttributes(); a != nil {
		f.open[e.GetEventId()] = startOf(a)
	}
	if a := e.GetChildWorkflowExecutionStartedEventAttributes(); a != nil {
		if t := f.open[a.GetInitiatedEventId()]; t != nil {
			t.run, t.started = a.GetWorkflowExecution(), e.GetEventTime().AsTime()
		}
	}
	if fact.Completed != nil || fact.Failed != nil {
		f.finish(e, fact)
	}
}

func (f *Folder) finish(e *historypb.HistoryEvent, fact ace.ExperimentFact) {
	at := e.GetEventTime().AsTime()
	done := Finished{Event: e.GetEventId(), At: at, Failure: fact.Failed}
	if began := f.open[initiated(e)]; began != nil {
		delete(f.open, initiated(e))
		done.began, done.WorkflowID, done.RunID = began, began.run.GetWorkflowId(), began.run.GetRunId()
		if !began.started.IsZero() {
			done.Took = max(at.Sub(began.started), 0)
		}
	}
	if fact.Completed != nil {
		done.Result = *fact.Completed
		if done.Status = ace.Completed; done.Result.Counts() {
			done.Verdict = done.Result.Graded()
		}
	} else {
		done.Result = ace.TaskResult{TaskID: ace.TaskIDOf(done.WorkflowID)}
		done.Status = fact.Failed.Kind
	}
	if f.task != nil {
		f.task(f.State.Input, done)
	}
}

// initiated returns the id of the event that initiated the child workflow that e ends.
func initiated(e *historypb.HistoryEvent) int64 {
	return cmp.Or(
		e.GetChildWorkflowExecutionCompletedEventAttributes().GetInitiatedEventId(),
		e.GetChildWorkflowExecutionFailedEventAttributes().GetInitiatedEventId(),
		e.GetChildWorkflowExecutionCanceledEventAttributes().GetInitiatedEventId(),
		e.GetChildWorkflowExecutionTimedOutEventAttributes().GetInitiatedEventId(),
		e.GetChildWorkflowExecutionTerminatedEventAttributes().GetInitiatedEventId(),
		e.GetStartChildWorkflowExecutionFailedEventAttributes().GetInitiatedEventId())
}
