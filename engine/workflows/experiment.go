package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
	"acescope/engine/temporal/searchattr"
)

// Bounds of an experiment.
const (
	// MaxFailuresInARow is the number of failed tasks in a row after which an experiment ends.
	MaxFailuresInARow = 20
	// DefaultWindow is the default number of tasks that an online experiment measures at a time.
	DefaultWindow = 20
	// batchSize is the number of tasks that an offline experiment loads at a time.
	batchSize = 50
	// evalChunk is the number of problems per evaluation activity: small enough that a retry is
	// cheap, large enough that the history stays short.
	evalChunk = 25
)

// experiment is an open experiment. Its state decides what to do next.
type experiment struct {
	in       ace.ExperimentInput
	state    ace.ExperimentState
	stage    string        // the search attribute
	open     int           // open tasks
	reserved []*ace.Budget // budgets of the open tasks, if the experiment has a budget
	failures int           // in a row
}

// Experiment is the workflow of an experiment: a data set over epochs (offline) or windows
// (online). The playbook evolves task by task. The workflow continues as new only between two
// batches, with no open task.
func Experiment(ctx workflow.Context, in ace.ExperimentInput) (*ace.ExperimentProgress, error) {
	x := &experiment{in: in}
	x.apply(ace.ExperimentFact{Input: &in})
	x.in.Parallel = max(in.Parallel, 1)
	if in.Revision >= 6 && (in.Run == "" || isReset(ctx)) {
		x.in.Run = workflow.GetInfo(ctx).WorkflowExecution.RunID
	}
	if in.Window < 1 {
		x.in.Window = DefaultWindow
	}
	progress := func() (ace.ExperimentProgress, error) { return x.state.Progress, nil }
	if err := workflow.SetQueryHandler(ctx, ace.QueryExperiment, progress); err != nil {
		return nil, err
	}
	err := x.run(ctx)
	if workflow.IsContinueAsNewError(err) {
		return nil, err
	}
	stage, status := x.outcome(ctx, err)
	finishErr := writeOutcome(ctx, x.state.Summary(), stage, ace.ExitOf(status, ""))
	return &x.state.Progress, cmp.Or(err, finishErr)
}

// outcome returns the last stage and the status of an experiment that closes with an error, or with nil.
// Revisions below 5 leave the stage that would have come next, and close as canceled an experiment that
// completed after its cancellation was requested.
func (x *experiment) outcome(ctx workflow.Context, err error) (stage string, status ace.Status) {
	stage, status = x.state.Progress.Stage, ace.Completed
	stops := x.in.Revision > 4
	switch {
	case ctx.Err() != nil && (err != nil || !stops):
		status = ace.Canceled
	case err != nil:
		status = ace.Failed
	}
	if err != nil && stops {
		stage = ace.StageStopped
	}
	return stage, status
}

func (x *experiment) apply(f ace.ExperimentFact) { x.state.Apply(f) }

func (x *experiment) run(ctx workflow.Context) error {
	if x.in.Progress == nil && x.in.Epochs > 0 {
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
		case ace.StageAblating:
			err = x.ablate(ctx)
		default:
			if err := x.keepBest(ctx); err != nil {
				return err
			}
			failed, closed := x.state.Progress.Failed()
			return x.failure(failed, closed, closed, "tasks", "")
		}
		if err != nil {
			return err
		}
	}
}

// keepBest creates a branch with the best version, or with the pruned playbook.
func (x *experiment) keepBest(ctx workflow.Context) error {
	if p := x.state.Progress.Ablation; p != nil && p.Pruned != nil && p.Pruned.Kept {
		return x.readBranch(ctx, ace.PrunedBranch(x.in.ExperimentID), p.Pruned.Playbook)
	}
	best := x.state.Progress.Best
	if !x.in.KeepBest || best == nil {
		return nil
	}
	return x.readBranch(ctx, ace.BestBranch(x.in.ExperimentID), best.Playbook)
}

// failure returns an error if too many of all tasks or items failed, or all that are closed.
func (x *experiment) failure(failed, closed, all int, noun, why string) error {
	if !x.in.TooManyFailed(failed, closed, all) {
		return nil
	}
	message := fmt.Sprintf("%d of %d %s failed; at most %g%% may fail%s", failed, closed, noun,
		100**x.in.MaxFailed, why)
	return temporal.NewNonRetryableApplicationError(message, typeTooManyFailures, nil)
}

// typeTooManyFailures is the failure type of an experiment that ends because of failed tasks.
const typeTooManyFailures = "TooManyFailures"

// show writes the stage to the search attributes.
func (x *experiment) show(ctx workflow.Context) error {
	stage := x.state.Progress.Stage
	if stage == x.stage || stage == ace.StageDone {
		return nil
	}
	x.stage = stage
	return workflow.UpsertTypedSearchAttributes(ctx, searchattr.Keyword(ace.AttrPhase, stage))
}

// learn runs the next batch of the epoch.
func (x *experiment) learn(ctx workflow.Context) error {
	if operation.IsLong(ctx) {
		return x.continueAsNew(ctx)
	}
	count := batchSize
	if x.in.Adapter == ace.Online {
		count = x.in.Window
	}
	from := x.state.Progress.Closed()
	if every := x.in.EvalEvery; every > 0 && x.in.Eval != nil {
		count = min(count, every-from%every)
	}
	in := ace.LoadTasksInput{Dataset: x.in.Dataset, From: from, Count: min(count, x.in.Tasks-from)}
	options := withOptions(ctx, ace.ActivityLoadTasks, "")
	var tasks []ace.Task
	if err := workflow.ExecuteActivity(options, ace.ActivityLoadTasks, in).Get(ctx, &tasks); err != nil {
		return err
	}
	if err := x.runAll(ctx, x.state.Progress.Epoch, tasks); err != nil {
		return err
	}
	return x.readHead(ctx)
}

func (x *experiment) continueAsNew(ctx workflow.Context) error {
	next := x.in
	next.Progress = &x.state.Progress
	return workflow.NewContinueAsNewError(ctx, ace.ExperimentWorkflow, next)
}

// runAll runs the tasks, at most Parallel at a time, and waits for their ends.
func (x *experiment) runAll(ctx workflow.Context, epoch int, tasks []ace.Task) error {
	selector := workflow.NewSelector(ctx)
	frozen := x.state.Progress.After
	for _, t := range tasks {
		for x.open >= x.in.Parallel || x.open > 0 && x.left().Spent(ace.Usage{}) != "" {
			selector.Select(ctx)
		}
		if x.stop(ctx) != nil || x.state.Progress.Stopped != "" {
			break
		}
		playbook := x.state.Progress.After
		if x.in.Adapter == ace.Online {
			playbook = frozen
		}
		in := x.taskInput(epoch, t, playbook)
		if x.in.Sequential {
			in.LearnFrom = x.state.Progress.After
		}
		x.start(ctx, selector, in)
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
		message := fmt.Sprintf("stopped after %d failed tasks in a row", x.failures)
		return temporal.NewNonRetryableApplicationError(message, typeTooManyFailures, nil)
	}
	return nil
}

// left returns the budget of the next task: its share of what the open tasks leave, or nil.
func (x *experiment) left() *ace.Budget { return x.state.Left(x.in.Parallel-x.open, x.reserved) }

func (x *experiment) start(ctx workflow.Context, selector workflow.Selector, in ace.TaskInput) {
	options := workflow.ChildWorkflowOptions{
		WorkflowID:            ace.WorkflowID(in.TaskID),
		WaitForCancellation:   true,
		TypedSearchAttributes: searchattr.Task(in),
	}
	if in.By != "" {
		options.Memo = map[string]any{ace.MemoBy: in.By}
	}
	ctx = workflow.WithChildOptions(ctx, options)
	in.Budget = x.left()
	x.open++
	if in.Budget != nil {
		x.reserved = append(x.reserved, in.Budget)
	}
	selector.AddFuture(workflow.ExecuteChildWorkflow(ctx, ace.TaskWorkflow, in), func(f workflow.Future) {
		x.open--
		x.reserved = slices.DeleteFunc(x.reserved, func(b *ace.Budget) bool { return b == in.Budget })
		var result ace.TaskResult
		x.count(&result, f.Get(ctx, &result))
	})
}

// isReset reports whether a user has reset the workflow, so that it merges again what it has merged.
func isReset(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.WorkflowExecution.RunID != info.OriginalRunID
}

// TaskID returns the ID of an experiment's task at a 0-based index of the data set.
func TaskID(experiment string, epoch, index int) string {
	return fmt.Sprintf("%s-e%d-%04d", experiment, epoch, index+1)
}

func (x *experiment) taskInput(epoch int, t ace.Task, playbook string) ace.TaskInput {
	revision := max(x.in.Revision, 1)
	if x.in.MaxFailed == nil { // the version that started the experiment has no revisions
		revision = 0
	}
	return ace.TaskInput{
		TaskID: TaskID(x.in.ExperimentID, epoch, t.Index), Prompt: t.Prompt, PromptRef: t.PromptRef,
		Subject: t.Subject, Label: t.Label, Adapter: x.in.Adapter, PlaybookHash: playbook,
		SkillsConfig: x.in.SkillsConfig,
		ExperimentID: x.in.ExperimentID, DatasetID: x.in.DatasetID, Provider: x.in.Provider,
		Model: x.in.Model, Steps: x.in.Steps, Branch: x.in.ExperimentID, Epoch: epoch, Index: t.Index,
		PaceMS: x.in.PaceMS, Revision: revision, Grader: x.in.Grader,
		Protocol: x.in.Protocol, By: x.in.By, ExperimentRun: x.in.Run,
	}
}

func (x *experiment) count(r *ace.TaskResult, err error) {
	if err == nil {
		x.failures = 0
		x.apply(ace.ExperimentFact{Completed: r})
		return
	}
	var canceled *temporal.CanceledError
	if !errors.As(err, &canceled) {
		x.failures++
	}
	x.apply(ace.ExperimentFact{Failed: new(history.FailureFrom(err))})
}

// evaluate measures the playbook on the evaluation data set without learning from it.
func (x *experiment) evaluate(ctx workflow.Context) error {
	for from := 0; from < x.in.EvalTasks &&
		x.state.Progress.Stopped == ""; from += x.in.Parallel * evalChunk {
		if err := x.answer(ctx, nil, from, x.in.EvalTasks); err != nil {
			return err
		}
	}
	return nil
}

// ablate plans a round of trials, or answers some items of the open round.
func (x *experiment) ablate(ctx workflow.Context) error {
	if operation.IsLong(ctx) {
		return x.continueAsNew(ctx)
	}
	progress := x.state.Progress.Ablation
	if round := progress.Round(); round != nil {
		return x.answer(ctx, &round.Trials, round.Done, round.Answers)
	}
	in := ace.PlanTrialsInput{Task: x.taskContext(ctx), Ablation: *x.in.Ablation, Progress: *progress}
	options := withOptions(ctx, ace.ActivityPlanTrials, "")
	var r ace.PlanTrialsResult
	if err := workflow.ExecuteActivity(options, ace.ActivityPlanTrials, in).Get(ctx, &r); err != nil {
		return err
	}
	x.apply(ace.ExperimentFact{Planned: &r})
	return nil
}

// answer answers items of trials, or of the evaluation data set if trials is nil: from the index from, and
// not beyond end, at most Parallel chunks at the same time.
func (x *experiment) answer(ctx workflow.Context, trials *ace.Ref, from, end int) error {
	options := withOptions(ctx, ace.ActivityEvaluate, x.in.Provider)
	in := ace.EvaluateInput{Task: x.taskContext(ctx), Steps: x.in.Steps, Dataset: *x.in.Eval,
		Grader: x.in.Grader,
		Models: x.in.Models, Prompts: x.in.Prompts, NoSkills: x.in.NoSkills, Trials: trials}
	in.Task.Budget = x.state.Left(min(x.in.Parallel, (end-from+evalChunk-1)/evalChunk), nil)
	var futures []workflow.Future
	for ; len(futures) < x.in.Parallel && from < end; from += evalChunk {
		in.From = from
		in.Count = min(evalChunk, end-from)
		in.Answered = x.answered(trials, from)
		futures = append(futures, workflow.ExecuteActivity(options, ace.ActivityEvaluate, in))
	}
	for _, f := range futures {
		var r ace.EvaluateResult
		if err := f.Get(ctx, &r); err != nil {
			return err
		}
		x.apply(ace.ExperimentFact{Evaluated: &r})
	}
	failed, answered, all := x.state.FailedItems()
	if failed.Failed == 0 {
		return nil
	}
	return x.failure(failed.Failed, answered, all, "evaluation items",
		fmt.Sprintf("; item %d: %s", failed.List[0]+1, failed.Why))
}

// answered returns the items of the first evaluation from an index that an earlier run has answered, or nil.
func (x *experiment) answered(trials *ace.Ref, from int) *ace.Ref {
	i := slices.IndexFunc(x.in.Answered, func(p ace.AnsweredPart) bool {
		return p.From == from && p.Playbook == x.state.Progress.After
	})
	if i < 0 || trials != nil || len(x.state.Progress.Eval) > 0 {
		return nil
	}
	return &x.in.Answered[i].Items
}

func (x *experiment) taskContext(ctx workflow.Context) ace.TaskContext {
	run := workflow.GetInfo(ctx).WorkflowExecution
	return ace.TaskContext{
		TaskID: x.in.ExperimentID, WorkflowID: run.ID, RunID: run.RunID, ExperimentID: x.in.ExperimentID,
		PlaybookHash: x.state.Progress.After, Provider: x.in.Provider, Model: x.in.Model,
		SkillsConfig: x.in.SkillsConfig, Sampling: x.in.Sampling,
	}
}

// readHead reads the latest playbook version of the experiment's branch, which it creates if
// necessary.
func (x *experiment) readHead(ctx workflow.Context) error {
	return x.readBranch(ctx, x.in.ExperimentID, x.in.PlaybookHash)
}

func (x *experiment) readBranch(ctx workflow.Context, branch, initial string) error {
	var head ace.HeadResult
	err := workflow.ExecuteActivity(withOptions(ctx, ace.ActivityHead, ""), ace.ActivityHead,
		ace.HeadInput{Branch: branch, Initial: initial}).Get(ctx, &head)
	if err == nil {
		x.apply(ace.ExperimentFact{Head: &head})
	}
	return err
}
