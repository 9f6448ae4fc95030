// Package experiments folds the history of an experiment into series of its tasks and compares two series.
package experiments

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
)

// Finished is a closed task of an experiment. If it did not complete, Failure is set and Result holds only its
// id and status.
type Finished struct {
	WorkflowID string
	RunID      string
	Event      int64
	At         time.Time
	Took       time.Duration
	Result     ace.TaskResult
	Failure    *ace.Failure
}

// Follow follows an experiment and the runs that continue it until it closes, and returns the final state. It
// calls task for each task that ends; task may be nil. away is as in [cluster.Follow].
func Follow(ctx context.Context, c client.Client, namespace, workflowID, runID string, away func(error), task func(ace.ExperimentInput, Finished)) (*ace.ExperimentState, error) {
	state, _, err := followRuns(ctx, c, namespace, workflowID, runID, away, task)
	return state, err
}

// FollowWhole is [Follow] from the first run of the chain of run. If the first runs are deleted, it begins with
// run. It also returns the id of the last run.
func FollowWhole(ctx context.Context, c client.Client, namespace string, run *workflowpb.WorkflowExecutionInfo, away func(error), task func(ace.ExperimentInput, Finished)) (*ace.ExperimentState, string, error) {
	workflowID, runID, first := run.GetExecution().GetWorkflowId(), run.GetExecution().GetRunId(), run.GetFirstRunId()
	if first == "" || first == runID {
		return followRuns(ctx, c, namespace, workflowID, runID, away, task)
	}
	state, last, err := followRuns(ctx, c, namespace, workflowID, first, away, task)
	if cluster.NotFound(err) && last != runID {
		return followRuns(ctx, c, namespace, workflowID, runID, away, task)
	}
	return state, last, err
}

func followRuns(ctx context.Context, c client.Client, namespace, workflowID, runID string, away func(error), task func(ace.ExperimentInput, Finished)) (*ace.ExperimentState, string, error) {
	for {
		next := ""
		f := NewFolder(task)
		err := cluster.Follow(ctx, c, namespace, workflowID, runID, away, func(e *historypb.HistoryEvent) error {
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

type child struct {
	id      string
	run     string
	started time.Time
}

// Folder folds the history of one run of an experiment.
type Folder struct {
	State   ace.ExperimentState
	Foreign error // why the input is not an experiment's

	task    func(ace.ExperimentInput, Finished)
	decoder history.ExperimentDecoder
	open    map[int64]child // by initiated event id
}

func NewFolder(task func(ace.ExperimentInput, Finished)) *Folder {
	return &Folder{task: task, open: map[int64]child{}}
}

func (f *Folder) Apply(e *historypb.HistoryEvent) {
	fact, ok, err := f.decoder.Fact(e)
	if err != nil {
		f.Foreign = err
	}
	if ok {
		f.State.Apply(fact)
	}
	if e.GetEventType() == enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED {
		a := e.GetChildWorkflowExecutionStartedEventAttributes()
		f.open[a.GetInitiatedEventId()] = child{a.GetWorkflowExecution().GetWorkflowId(),
			a.GetWorkflowExecution().GetRunId(), e.GetEventTime().AsTime()}
	}
	if fact.Completed != nil || fact.Failed != nil {
		f.finish(e, fact)
	}
}

func (f *Folder) finish(e *historypb.HistoryEvent, fact ace.ExperimentFact) {
	c := f.open[initiated(e)]
	delete(f.open, initiated(e))
	at := e.GetEventTime().AsTime()
	done := Finished{WorkflowID: c.id, RunID: c.run, Event: e.GetEventId(), At: at, Failure: fact.Failed}
	if !c.started.IsZero() {
		done.Took = max(at.Sub(c.started), 0)
	}
	if fact.Completed != nil {
		done.Result = *fact.Completed
	} else {
		done.Result = ace.TaskResult{TaskID: ace.TaskIDOf(c.id), ExitStatus: fact.Failed.Kind}
	}
	if f.task != nil {
		f.task(f.State.Input, done)
	}
}

// initiated returns the event that started the child that an event ends.
func initiated(e *historypb.HistoryEvent) int64 {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
		return e.GetChildWorkflowExecutionCompletedEventAttributes().GetInitiatedEventId()
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		return e.GetChildWorkflowExecutionFailedEventAttributes().GetInitiatedEventId()
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		return e.GetChildWorkflowExecutionCanceledEventAttributes().GetInitiatedEventId()
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
		return e.GetChildWorkflowExecutionTimedOutEventAttributes().GetInitiatedEventId()
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		return e.GetChildWorkflowExecutionTerminatedEventAttributes().GetInitiatedEventId()
	}
	return 0
}
