package flow

import (
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
)

// evalChunk is how many problems one evaluation activity answers: few enough that a
// crash costs little, many enough that the history stays short.
const evalChunk = 25

// evaluate measures the playbook on the second data set without learning from it.
func (x *experiment) evaluate(ctx workflow.Context, epoch int) error {
	if x.in.Eval == nil {
		return nil
	}
	if err := x.enter(ctx, ace.StageEvaluating); err != nil {
		return err
	}
	total := ace.EvalResult{Epoch: epoch, Playbook: x.p.After}
	for from := 0; from < x.in.EvalTasks; {
		var futures []workflow.Future
		futures, from = x.startEval(ctx, from)
		for _, f := range futures {
			var r ace.EvaluateResult
			if err := f.Get(ctx, &r); err != nil {
				return err
			}
			addEval(&total, r)
		}
	}
	x.p.Eval = append(x.p.Eval, total)
	x.p.Usage = x.p.Usage.Add(total.Usage)
	x.p.Summary.Usage = x.p.Summary.Usage.Add(total.Usage)
	return nil
}

// startEval starts as many chunks as may run in parallel and says where the next begins.
func (x *experiment) startEval(ctx workflow.Context, from int) (futures []workflow.Future, next int) {
	ctx = withOptions(ctx, ace.ActivityEvaluate)
	for ; len(futures) < x.in.Parallel && from < x.in.EvalTasks; from += evalChunk {
		futures = append(futures, workflow.ExecuteActivity(ctx, ace.ActivityEvaluate, ace.EvaluateInput{
			Task: x.about(ctx), Dataset: *x.in.Eval, From: from, Count: min(evalChunk, x.in.EvalTasks-from)}))
	}
	return futures, from
}

func addEval(total *ace.EvalResult, r ace.EvaluateResult) {
	total.Tasks += r.Tasks
	total.Correct += r.Correct
	total.Usage = total.Usage.Add(r.Usage)
	if total.Tasks > 0 {
		total.Accuracy = float64(total.Correct) / float64(total.Tasks)
	}
	room := ace.MaxWrong - len(total.Wrong)
	total.Wrong = append(total.Wrong, r.Wrong[:min(room, len(r.Wrong))]...)
}

func (x *experiment) about(ctx workflow.Context) ace.TaskContext {
	run := workflow.GetInfo(ctx).WorkflowExecution
	return ace.TaskContext{TaskID: x.in.ExperimentID, WorkflowID: run.ID, RunID: run.RunID, ExperimentID: x.in.ExperimentID,
		PlaybookHash: x.p.After, Provider: x.in.Provider, Model: x.in.Model, SkillsConfig: x.in.SkillsConfig}
}

func (x *experiment) load(ctx workflow.Context, set ace.Ref, from, count int) (tasks []ace.Task, err error) {
	err = workflow.ExecuteActivity(withOptions(ctx, ace.ActivityLoadTasks), ace.ActivityLoadTasks,
		ace.LoadTasksInput{Dataset: set, From: from, Count: count}).Get(ctx, &tasks)
	return tasks, err
}

// readHead asks for the newest version of the experiment's line: of tasks that ran in
// parallel, the last to finish need not have written it.
func (x *experiment) readHead(ctx workflow.Context) error {
	var head ace.HeadResult
	err := workflow.ExecuteActivity(withOptions(ctx, ace.ActivityHead), ace.ActivityHead,
		ace.HeadInput{Branch: x.in.ExperimentID, Initial: x.in.PlaybookHash}).Get(ctx, &head)
	if err != nil {
		return err
	}
	x.p.After, x.p.Bullets = head.PlaybookHash, head.Bullets
	return nil
}
