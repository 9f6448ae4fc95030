package flow

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// Bounds of an experiment.
const (
	// MaxFailuresInARow ends an experiment whose tasks all fail, before it spends more.
	MaxFailuresInARow = 20
	// DefaultWindow is how many tasks an online experiment measures at a time.
	DefaultWindow = 20
	batchSize     = 50
	// maxHistory is well under the length at which a replay starts to hurt; Temporal
	// itself suggests a new run at 4,096 events.
	maxHistory = 3500
)

// experiment is one experiment in progress. As with a task, what it knows is in state,
// which says what comes next.
type experiment struct {
	in       ace.ExperimentInput
	state    ace.ExperimentState
	stage    string // as the search attribute has it
	open     int
	failures int // in a row
}

// Experiment is the workflow of a data set over epochs (offline) or windows (online).
// The playbook evolves task by task; when Temporal suggests it, the workflow continues
// as new between two batches, with nothing in flight.
func Experiment(ctx workflow.Context, in ace.ExperimentInput) (*ace.ExperimentProgress, error) {
	x := newExperiment(in)
	if err := workflow.SetQueryHandler(ctx, ace.QueryExperiment, func() (ace.ExperimentProgress, error) {
		return x.state.Progress, nil
	}); err != nil {
		return nil, err
	}
	err := x.run(ctx)
	if workflow.IsContinueAsNewError(err) {
		return nil, err
	}
	if finishErr := x.finish(ctx, exitOf(ctx, err)); err == nil {
		err = finishErr
	}
	return &x.state.Progress, err
}

func newExperiment(in ace.ExperimentInput) *experiment {
	x := &experiment{in: in}
	x.apply(ace.ExperimentFact{Input: &in})
	x.in.Parallel = max(in.Parallel, 1)
	if in.Window < 1 {
		x.in.Window = DefaultWindow
	}
	return x
}

func (x *experiment) apply(f ace.ExperimentFact) { x.state.Apply(f) }

func exitOf(ctx workflow.Context, err error) ace.ExitStatus {
	switch {
	case ctx.Err() != nil:
		return ace.Cancelled
	case err != nil:
		return ace.Failed
	}
	return ace.Success
}

// finish leaves the outcome for lists, as a task does.
func (x *experiment) finish(ctx workflow.Context, exit ace.ExitStatus) error {
	if err := workflow.UpsertMemo(ctx, map[string]any{ace.MemoSummary: x.state.Progress.Summary}); err != nil {
		return fmt.Errorf("leave the summary: %w", err)
	}
	return workflow.UpsertTypedSearchAttributes(ctx,
		keyword(ace.AttrPhase, x.state.Progress.Stage), keyword(ace.AttrExit, string(exit)))
}

func (x *experiment) run(ctx workflow.Context) error {
	if x.in.Progress == nil {
		if err := x.readHead(ctx); err != nil {
			return err
		}
	}
	for {
		if err := x.show(ctx); err != nil {
			return err
		}
		var err error
		switch x.state.Progress.Stage {
		case ace.StageEvaluating:
			err = x.evaluate(ctx)
		case ace.StageLearning:
			err = x.learn(ctx)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// show puts the stage where lists can see it.
func (x *experiment) show(ctx workflow.Context) error {
	stage := x.state.Progress.Stage
	if stage == x.stage || stage == ace.StageDone {
		return nil
	}
	x.stage = stage
	return workflow.UpsertTypedSearchAttributes(ctx, keyword(ace.AttrPhase, stage))
}

// learn runs the next batch of the epoch.
func (x *experiment) learn(ctx workflow.Context) error {
	if err := x.continueAsNew(ctx); err != nil {
		return err
	}
	next := x.state.Progress.Done()
	tasks, err := x.load(ctx, x.in.Dataset, next, min(x.batch(), x.in.Tasks-next))
	if err != nil {
		return err
	}
	if err := x.runAll(ctx, x.state.Progress.Epoch, tasks); err != nil {
		return err
	}
	return x.readHead(ctx)
}

func (x *experiment) batch() int {
	if x.in.Adapter == ace.Online {
		return x.in.Window
	}
	return batchSize
}

func (x *experiment) continueAsNew(ctx workflow.Context) error {
	info := workflow.GetInfo(ctx)
	if !info.GetContinueAsNewSuggested() && info.GetCurrentHistoryLength() < maxHistory {
		return nil
	}
	next := x.in
	next.Progress = &x.state.Progress
	return workflow.NewContinueAsNewError(ctx, ace.ExperimentWorkflow, next)
}

// runAll runs the tasks, at most Parallel at a time, and returns when none is open.
func (x *experiment) runAll(ctx workflow.Context, epoch int, tasks []ace.Task) error {
	selector := workflow.NewSelector(ctx)
	frozen := x.state.Progress.After
	for _, t := range tasks {
		for x.open >= x.in.Parallel {
			selector.Select(ctx)
		}
		if x.stop(ctx) != nil {
			break
		}
		book := x.state.Progress.After
		if x.in.Adapter == ace.Online {
			book = frozen
		}
		x.start(ctx, selector, x.taskInput(epoch, t, book))
	}
	for x.open > 0 {
		selector.Select(ctx)
	}
	return x.stop(ctx)
}

func (x *experiment) stop(ctx workflow.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if x.failures >= MaxFailuresInARow {
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("stopped after %d failed tasks in a row", x.failures), "TooManyFailures", nil)
	}
	return nil
}

func (x *experiment) start(ctx workflow.Context, selector workflow.Selector, in ace.TaskInput) {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            ace.WorkflowID(in.TaskID),
		WaitForCancellation:   true,
		TypedSearchAttributes: TaskAttributes(in),
	})
	x.open++
	selector.AddFuture(workflow.ExecuteChildWorkflow(ctx, ace.TaskWorkflow, in), func(f workflow.Future) {
		x.open--
		var result ace.TaskResult
		x.count(&result, f.Get(ctx, &result))
	})
}

// TaskID names the task of an experiment at a 0-based index of the data set.
func TaskID(experiment string, epoch, index int) string {
	return fmt.Sprintf("%s-e%d-%04d", experiment, epoch, index+1)
}

func (x *experiment) taskInput(epoch int, t ace.Task, book string) ace.TaskInput {
	return ace.TaskInput{TaskID: TaskID(x.in.ExperimentID, epoch, t.Index), Prompt: t.Prompt, PromptRef: t.PromptRef,
		Label: t.Label, Adapter: x.in.Adapter, PlaybookHash: book, SkillsConfig: x.in.SkillsConfig,
		ExperimentID: x.in.ExperimentID, DatasetID: x.in.DatasetID, Provider: x.in.Provider, Model: x.in.Model,
		Steps: x.in.Steps, Branch: x.in.ExperimentID, Epoch: epoch, Index: t.Index, PaceMS: x.in.PaceMS}
}

func (x *experiment) count(r *ace.TaskResult, err error) {
	if err == nil {
		x.failures = 0
		x.apply(ace.ExperimentFact{Ended: r})
		return
	}
	var canceled *temporal.CanceledError
	if !errors.As(err, &canceled) {
		x.failures++
	}
	failure := history.FailureFrom(err)
	x.apply(ace.ExperimentFact{Failed: &failure})
}
