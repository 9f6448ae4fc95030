package flow

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
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

// experiment is one experiment in progress.
type experiment struct {
	in       ace.ExperimentInput
	p        ace.ExperimentProgress
	open     int
	failures int // in a row
}

// Experiment is the workflow of a data set over epochs (offline) or windows (online).
// The playbook evolves task by task; when Temporal suggests it, the workflow continues
// as new between two batches, with nothing in flight.
func Experiment(ctx workflow.Context, in ace.ExperimentInput) (*ace.ExperimentProgress, error) {
	x := newExperiment(in)
	if err := workflow.SetQueryHandler(ctx, ace.QueryExperiment, func() (ace.ExperimentProgress, error) {
		return x.p, nil
	}); err != nil {
		return nil, err
	}
	err := x.run(ctx)
	if workflow.IsContinueAsNewError(err) {
		return nil, err
	}
	x.p.ExitStatus = x.exit(ctx, err)
	if finishErr := x.finish(ctx); err == nil {
		err = finishErr
	}
	return &x.p, err
}

// finish leaves the outcome for lists, as a task does.
func (x *experiment) finish(ctx workflow.Context) error {
	if err := workflow.UpsertMemo(ctx, map[string]any{ace.MemoSummary: x.p.Summary}); err != nil {
		return fmt.Errorf("leave the summary: %w", err)
	}
	return workflow.UpsertTypedSearchAttributes(ctx,
		keyword(ace.AttrPhase, x.p.Stage), keyword(ace.AttrExit, string(x.p.ExitStatus)))
}

// enter puts the stage where lists can see it.
func (x *experiment) enter(ctx workflow.Context, stage string) error {
	if x.p.Stage == stage {
		return nil
	}
	x.p.Stage = stage
	return workflow.UpsertTypedSearchAttributes(ctx, keyword(ace.AttrPhase, stage))
}

func newExperiment(in ace.ExperimentInput) *experiment {
	x := &experiment{in: in}
	if in.Progress != nil {
		x.p = *in.Progress
	} else {
		x.p = ace.ExperimentProgress{ExperimentID: in.ExperimentID, TotalEpochs: in.Epochs, TotalTasks: in.Tasks, Epoch: 1, Epochs: []ace.EpochResult{},
			Eval: []ace.EvalResult{}, Before: in.PlaybookHash, After: in.PlaybookHash, ExitStatus: ace.Running}
	}
	x.p.Runs++
	x.in.Parallel = max(in.Parallel, 1)
	if in.Window < 1 {
		x.in.Window = DefaultWindow
	}
	return x
}

func (x *experiment) exit(ctx workflow.Context, err error) ace.ExitStatus {
	switch {
	case ctx.Err() != nil:
		return ace.Cancelled
	case err != nil:
		return ace.Failed
	}
	return ace.Success
}

func (x *experiment) run(ctx workflow.Context) error {
	if x.in.Progress == nil {
		if err := x.readHead(ctx); err != nil {
			return err
		}
		x.p.Before = x.p.After
		if err := x.evaluate(ctx, 0); err != nil {
			return err
		}
	}
	for x.p.Epoch <= x.in.Epochs {
		if err := x.epoch(ctx); err != nil {
			return err
		}
		if err := x.evaluate(ctx, x.p.Epoch); err != nil {
			return err
		}
		x.p.Epoch, x.p.Next = x.p.Epoch+1, 0
	}
	x.p.Epoch, x.p.Stage = x.in.Epochs, ace.StageDone
	return nil
}

// epoch runs what is left of the current epoch, batch by batch.
func (x *experiment) epoch(ctx workflow.Context) error {
	if err := x.enter(ctx, ace.StageLearning); err != nil {
		return err
	}
	if len(x.p.Epochs) < x.p.Epoch {
		x.p.Epochs = append(x.p.Epochs, ace.NewEpoch(x.p.Epoch, x.in.Tasks))
	}
	for x.p.Next < x.in.Tasks {
		if err := x.continueAsNew(ctx); err != nil {
			return err
		}
		tasks, err := x.load(ctx, x.in.Dataset, x.p.Next, min(x.batch(), x.in.Tasks-x.p.Next))
		if err != nil {
			return err
		}
		if err := x.runAll(ctx, tasks); err != nil {
			return err
		}
		if err := x.readHead(ctx); err != nil {
			return err
		}
	}
	return nil
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
	next.Progress = &x.p
	return workflow.NewContinueAsNewError(ctx, ace.ExperimentWorkflow, next)
}

// runAll runs the tasks, at most Parallel at a time, and returns when none is open.
func (x *experiment) runAll(ctx workflow.Context, tasks []ace.Task) error {
	selector := workflow.NewSelector(ctx)
	frozen := x.p.After
	for _, t := range tasks {
		for x.open >= x.in.Parallel {
			selector.Select(ctx)
		}
		if x.stop(ctx) != nil {
			break
		}
		book := x.p.After
		if x.in.Adapter == ace.Online {
			book = frozen
		}
		x.start(ctx, selector, t, book)
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

func (x *experiment) start(ctx workflow.Context, selector workflow.Selector, t ace.Task, book string) {
	in := x.taskInput(t, book)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            ace.WorkflowID(in.TaskID),
		WaitForCancellation:   true,
		TypedSearchAttributes: TaskAttributes(in),
	})
	x.open++
	x.p.Next = t.Index + 1
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

func (x *experiment) taskInput(t ace.Task, book string) ace.TaskInput {
	return ace.TaskInput{TaskID: TaskID(x.in.ExperimentID, x.p.Epoch, t.Index), Prompt: t.Prompt, PromptRef: t.PromptRef,
		Label: t.Label, Adapter: x.in.Adapter, PlaybookHash: book, SkillsConfig: x.in.SkillsConfig,
		ExperimentID: x.in.ExperimentID, DatasetID: x.in.DatasetID, Provider: x.in.Provider, Model: x.in.Model,
		Steps: x.in.Steps, Branch: x.in.ExperimentID, Epoch: x.p.Epoch, Index: t.Index, PaceMS: x.in.PaceMS}
}

func (x *experiment) count(r *ace.TaskResult, err error) {
	epoch := &x.p.Epochs[len(x.p.Epochs)-1]
	var canceled *temporal.CanceledError
	if errors.As(err, &canceled) {
		return // it was not answered, so it counts neither way
	}
	if err != nil {
		epoch.Count(ace.Failed, nil)
		x.failures++
		return
	}
	x.failures = 0
	epoch.Count(r.ExitStatus, r.Correct)
	x.p.Usage = x.p.Usage.Add(r.Summary.Usage)
	x.p.Summary = x.p.Summary.Add(r.Summary)
	x.p.Accepted += r.Summary.Accepted()
	x.p.Rejected += r.Summary.Rejected
	if r.PlaybookHash != "" {
		x.p.After, x.p.Bullets = r.PlaybookHash, r.Bullets
	}
}
