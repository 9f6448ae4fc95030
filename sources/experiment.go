package sources

import (
	"context"
	"encoding/json"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// Finished is one task of an experiment that ended. Err is set for a task that failed,
// whose Result is empty.
type Finished struct {
	Seq        int
	WorkflowID string
	RunID      string
	At         time.Time
	Took       time.Duration
	Result     ace.TaskResult
	Failure    *ace.Failure
}

// ExperimentEvents receives what happens to an experiment. Nil functions are not called.
type ExperimentEvents struct {
	Task func(Finished)
	Eval func(scheduled int64, r ace.EvaluateResult)
	Away func(error)
}

// FollowExperiment reports on an experiment until it closes, through all the runs that
// it continues as, and gives its final progress.
func FollowExperiment(ctx context.Context, c client.Client, workflowID, runID string, on ExperimentEvents) (ace.ExperimentProgress, *ace.Failure, error) {
	f := experimentFolder{on: on}
	for {
		f.open = map[int64]child{}
		next := ""
		err := Follow(ctx, c, workflowID, runID, on.Away, func(e *historypb.HistoryEvent) error {
			f.apply(e)
			next = NextRun(e)
			return nil
		})
		if err != nil || next == "" {
			return f.result, f.failure, err
		}
		runID = next
	}
}

type child struct {
	id      string
	run     string
	started time.Time
}

type experimentFolder struct {
	on      ExperimentEvents
	decoder history.Decoder
	open    map[int64]child // by initiated event id
	seq     int
	result  ace.ExperimentProgress
	failure *ace.Failure
}

func (f *experimentFolder) apply(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
		a := e.GetChildWorkflowExecutionStartedEventAttributes()
		f.open[a.GetInitiatedEventId()] = child{a.GetWorkflowExecution().GetWorkflowId(),
			a.GetWorkflowExecution().GetRunId(), e.GetEventTime().AsTime()}
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
		a := e.GetChildWorkflowExecutionCompletedEventAttributes()
		var r ace.TaskResult
		_ = json.Unmarshal(f.decoder.JSON(a.GetResult()), &r)
		f.finish(e, a.GetInitiatedEventId(), r, nil)
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		a := e.GetChildWorkflowExecutionFailedEventAttributes()
		fail := history.FailureOf(a.GetFailure())
		f.finish(e, a.GetInitiatedEventId(), ace.TaskResult{ExitStatus: fail.Kind}, &fail)
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		a := e.GetChildWorkflowExecutionCanceledEventAttributes()
		f.finish(e, a.GetInitiatedEventId(), ace.TaskResult{ExitStatus: ace.Cancelled}, nil)
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		a := e.GetChildWorkflowExecutionTerminatedEventAttributes()
		f.finish(e, a.GetInitiatedEventId(), ace.TaskResult{ExitStatus: ace.Failed},
			&ace.Failure{Kind: ace.Failed, Type: "Terminated", Message: "terminated"})
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		f.activity(e)
	default:
		f.closed(e)
	}
}

func (f *experimentFolder) finish(e *historypb.HistoryEvent, initiated int64, r ace.TaskResult, fail *ace.Failure) {
	c := f.open[initiated]
	delete(f.open, initiated)
	f.seq++
	if r.TaskID == "" {
		r.TaskID = ace.TaskIDOf(c.id)
	}
	if f.on.Task != nil {
		at := e.GetEventTime().AsTime()
		f.on.Task(Finished{Seq: f.seq, WorkflowID: c.id, RunID: c.run, At: at, Took: at.Sub(c.started), Result: r, Failure: fail})
	}
}

// activity reports on evaluations: of the experiment's activities only theirs counts tasks.
func (f *experimentFolder) activity(e *historypb.HistoryEvent) {
	a := e.GetActivityTaskCompletedEventAttributes()
	var r ace.EvaluateResult
	if json.Unmarshal(f.decoder.JSON(a.GetResult()), &r) == nil && r.Tasks > 0 && f.on.Eval != nil {
		f.on.Eval(a.GetScheduledEventId(), r)
	}
}

func (f *experimentFolder) closed(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		_ = json.Unmarshal(f.decoder.JSON(e.GetWorkflowExecutionCompletedEventAttributes().GetResult()), &f.result)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		fail := history.FailureOf(e.GetWorkflowExecutionFailedEventAttributes().GetFailure())
		f.failure = &fail
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		f.failure = &ace.Failure{Kind: ace.Cancelled, Message: "cancelled"}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		f.failure = &ace.Failure{Kind: ace.Failed, Type: "Terminated", Message: "terminated"}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		f.failure = &ace.Failure{Kind: ace.Timeout, Message: "the experiment timed out"}
	}
}
