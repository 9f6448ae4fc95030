package flow

import (
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
)

// evalChunk is how many problems one evaluation activity answers: few enough that a
// crash costs little, many enough that the history stays short.
const evalChunk = 25

// evaluate measures the playbook on the second data set without learning from it.
func (x *experiment) evaluate(ctx workflow.Context) error {
	for from := 0; from < x.in.EvalTasks; {
		var futures []workflow.Future
		futures, from = x.startEval(ctx, from)
		for _, f := range futures {
			var r ace.EvaluateResult
			if err := f.Get(ctx, &r); err != nil {
				return err
			}
			x.apply(ace.ExperimentFact{Evaluated: &r})
		}
	}
	return nil
}

// startEval starts as many chunks as may run in parallel and says where the next begins.
func (x *experiment) startEval(ctx workflow.Context, from int) (futures []workflow.Future, next int) {
	ctx = withOptions(ctx, ace.ActivityEvaluate, x.in.Provider)
	for ; len(futures) < x.in.Parallel && from < x.in.EvalTasks; from += evalChunk {
		futures = append(futures, workflow.ExecuteActivity(ctx, ace.ActivityEvaluate, ace.EvaluateInput{
			Task: x.about(ctx), Steps: x.in.Steps, Dataset: *x.in.Eval, From: from, Count: min(evalChunk, x.in.EvalTasks-from)}))
	}
	return futures, from
}

func (x *experiment) about(ctx workflow.Context) ace.TaskContext {
	run := workflow.GetInfo(ctx).WorkflowExecution
	return ace.TaskContext{TaskID: x.in.ExperimentID, WorkflowID: run.ID, RunID: run.RunID, ExperimentID: x.in.ExperimentID,
		PlaybookHash: x.state.Progress.After, Provider: x.in.Provider, Model: x.in.Model, SkillsConfig: x.in.SkillsConfig}
}

func (x *experiment) load(ctx workflow.Context, set ace.Ref, from, count int) (tasks []ace.Task, err error) {
	err = workflow.ExecuteActivity(withOptions(ctx, ace.ActivityLoadTasks, ""), ace.ActivityLoadTasks,
		ace.LoadTasksInput{Dataset: set, From: from, Count: count}).Get(ctx, &tasks)
	return tasks, err
}

// readHead asks for the newest version of the experiment's line, and starts that line
// where there is none.
func (x *experiment) readHead(ctx workflow.Context) error {
	var head ace.HeadResult
	err := workflow.ExecuteActivity(withOptions(ctx, ace.ActivityHead, ""), ace.ActivityHead,
		ace.HeadInput{Branch: x.in.ExperimentID, Initial: x.in.PlaybookHash}).Get(ctx, &head)
	if err == nil {
		x.apply(ace.ExperimentFact{Head: &head})
	}
	return err
}
