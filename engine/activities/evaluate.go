package activities

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"acescope/engine/ace"
	"acescope/engine/learning/ablation"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
)

// evaluation is the progress of an evaluation.
type evaluation struct {
	total ace.EvaluateResult
	items []ace.EvalItem // the detail of heartbeats
}

// maxPlan bounds the plan in an item, in bytes. The record of the requests to the model has the whole plan.
const maxPlan = 2 << 10

// evaluator answers the tasks of evaluations and of trials.
type evaluator struct {
	*inputs
	recordings
	grader
	journals string // a directory, or ""
}

// evaluate answers a range of problems with a fixed playbook, or a range of the items of trials. It signals
// no events. A retry continues after the items in the journal of this machine, or in the heartbeats of an
// attempt on another machine.
func (e *evaluator) evaluate(ctx context.Context, in ace.EvaluateInput) (ace.EvaluateResult, error) {
	ctx = withPlace(ctx)
	var reported []ace.EvalItem
	var lost ace.Usage // of items that failed in earlier attempts
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &reported, &lost) != nil {
		reported = nil // the details are those of another version
	}
	var done evaluation
	if err := grade.Check(in.Grader); err != nil {
		return done.total, permanent(err)
	}
	if in.Grader == grade.Judge {
		if _, err := e.judgeOf(in.ProviderOf(ace.PhaseReflector)); err != nil {
			return done.total, e.stepError(ctx, err, nil)
		}
	}
	answered, err := e.answered(ctx, in.Answered)
	if err != nil {
		return done.total, stored(err)
	}
	j, err := openJournal(e.journals, ctx)
	if err != nil {
		return done.total, err
	}
	defer j.close()
	items, err := j.merge(reported)
	if err != nil {
		return done.total, err
	}
	for i, item := range items {
		if i >= len(reported) && item.Calls != nil { // only this machine knew of the record
			if _, err := e.artifacts.Renew(ctx, item.Calls.Ref); err != nil {
				return done.total, stored(err)
			}
		}
		done.add(item)
	}
	var latest atomic.Value // for the heartbeats
	latest.Store(done.items)
	defer heartbeat(ctx, latest.Load, func() any { return lost })()
	done.total.Usage = done.total.Usage.Add(lost)
	budget, down := in.Task.Budget, "" // down is why no further item can be answered
	for done.total.Tasks < in.Count {
		jobs, err := e.jobs(ctx, in, in.From+done.total.Tasks, in.Count-done.total.Tasks)
		if err != nil {
			return done.total, stored(err)
		}
		for _, next := range jobs {
			in.Task.Budget = budget.Less(done.total.Usage)
			item, known := answered[next.task.Index]
			switch {
			case known:
			case down != "":
				item = ace.EvalItem{Index: next.task.Index, Label: next.task.Label, Trial: next.trial,
					Error: down}
			default:
				item, err = e.evaluateTask(ctx, in, next)
			}
			if err != nil && noItemCan(err) && done.total.Tasks > 0 {
				item.Error, err = e.line(err), nil
				down = item.Error
			}
			if model.KindOf(err) == model.BudgetSpent {
				return e.stopEvaluation(ctx, done, j, item.Usage)
			}
			if err == nil {
				err = j.add(item)
			}
			if err != nil {
				spent := lost
				if item.Usage != nil {
					spent = spent.Add(*item.Usage)
				}
				activity.RecordHeartbeat(ctx, done.items, spent)
				return done.total, e.stepError(ctx, err, nil)
			}
			done.add(item)
			latest.Store(done.items)
		}
	}
	if done.total.Items, err = e.storeItems(ctx, done.items); err == nil {
		j.remove()
	}
	return done.total, err
}

// answered reads the items that an earlier run has answered, by their indexes.
func (e *evaluator) answered(ctx context.Context, ref *ace.Ref) (map[int]ace.EvalItem, error) {
	known := map[int]ace.EvalItem{}
	if ref == nil {
		return known, nil
	}
	items, err := ablation.Get(e.artifacts.Get).Items(ctx, []ace.Ref{*ref})
	for _, item := range items {
		if item.Error == "" {
			item.Reused = true
			known[item.Index] = item
		}
	}
	return known, err
}

// stopEvaluation ends an evaluation whose budget is spent. u is the usage of the unfinished item, or nil.
func (e *evaluator) stopEvaluation(
	ctx context.Context, done evaluation, j *journal, u *ace.Usage,
) (r ace.EvaluateResult, err error) {
	r = done.total
	r.Stopped = true
	if u != nil {
		r.Usage = r.Usage.Add(*u)
	}
	if r.Items, err = e.storeItems(ctx, done.items); err == nil {
		j.remove()
	}
	return r, err
}

// add counts an item. It does not change the items of copies.
func (e *evaluation) add(item ace.EvalItem) {
	e.items = append(e.items[:len(e.items):len(e.items)], item)
	e.total.Tasks++
	switch {
	case item.Error != "":
		e.total.FailedItems = e.total.FailedItems.Add(
			ace.FailedItems{Failed: 1, List: []int{item.Index}, Why: item.Error})
	case item.Correct == nil:
		e.total.Unlabeled++
	case *item.Correct:
		e.total.Correct++
	default:
		e.total.Wrong = append(e.total.Wrong[:len(e.total.Wrong):len(e.total.Wrong)], item.Index)
	}
	if item.Score != nil {
		e.total.Score = ace.AddScores(e.total.Score, *item.Score)
	}
	if item.Usage != nil && !item.Reused {
		e.total.Usage = e.total.Usage.Add(*item.Usage)
	}
}

// storeItems stores the items as an artifact.
func (e *evaluator) storeItems(ctx context.Context, items []ace.EvalItem) (*ace.Ref, error) {
	var lines bytes.Buffer
	for _, item := range items {
		line, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		lines.Write(line)
		lines.WriteByte('\n')
	}
	ref, err := patiently(ctx, func() (ace.Ref, error) {
		return e.artifacts.PutBytes(ctx, lines.Bytes(), ace.ItemsMediaType)
	})
	return &ref, stored(err)
}

// answering is the evaluation of one task with one playbook.
type answering struct {
	*evaluator
	in    ace.EvaluateInput
	task  ace.Task
	about ace.TaskContext // for the next phase
	step  step
	tools *toolbox
	item  ace.EvalItem
}

// noItemCan reports whether an error that one item met prevents all items from being answered.
func noItemCan(err error) bool {
	kind := model.KindOf(err)
	return kind == model.Auth || kind == model.NoModel
}

// hasFailed reports whether an item failed for good in an attempt: no retry can help, or none is left.
func hasFailed(attempt activity.Info, err error) bool {
	if noItemCan(err) || model.KindOf(err) == model.BudgetSpent {
		return false
	}
	p := attempt.RetryPolicy
	return errors.Is(err, model.ErrPermanent) ||
		p != nil && p.MaximumAttempts > 0 && attempt.Attempt >= p.MaximumAttempts
}

// line returns an error as one short line without secrets.
func (e *evaluator) line(err error) string {
	return ace.OneLine(e.secrets.String(err.Error()), maxReason)
}

// evaluateTask answers a task. If that fails for good, the item has the error. If a retry may help, the item
// has the usage so far.
func (e *evaluator) evaluateTask(ctx context.Context, in ace.EvaluateInput, j job) (ace.EvalItem, error) {
	x := &answering{evaluator: e, in: in, task: j.task, about: in.Task,
		tools: &toolbox{config: in.Task.SkillsConfig, artifacts: e.artifacts, secrets: e.secrets},
		item:  ace.EvalItem{Index: j.task.Index, Label: j.task.Label, Trial: j.trial}}
	x.about.TaskID = fmt.Sprintf("%s-eval-%04d", in.Task.TaskID, j.task.Index+1)
	if j.trial > 0 {
		x.about.TaskID = fmt.Sprintf("%s-%.8s-%04d", in.Task.TaskID, j.playbook, j.task.Index+1)
	}
	x.about.PlaybookHash = j.playbook
	begun := time.Now()
	ctx, recorder := e.recording(ctx)
	if err := x.run(ctx); err != nil {
		if ctx.Err() != nil || !hasFailed(activity.GetInfo(ctx), err) {
			return x.item, err
		}
		x.item.Error = e.line(err)
	}
	for _, call := range x.tools.list() {
		call.Args = ace.Preview(call.Args)
		call.Result = ace.Preview(call.Result)
		x.item.ToolCalls = append(x.item.ToolCalls, call)
	}
	x.item.DurationMS = millis(time.Since(begun))
	x.item.Calls = e.store(ctx, recorder)
	return redacted(e.secrets, x.item), nil
}

func (x *answering) run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if why := x.in.Task.Budget.Spent(ace.Usage{}); why != "" {
		return model.Errorf(model.BudgetSpent, "%s", why)
	}
	g, err := x.generate(ctx)
	if err == nil && !x.in.NoSkills {
		err = x.useSkills(ctx, g)
	}
	if err == nil {
		err = x.grade(ctx)
	}
	return err
}

// begin sets the provider, model, prompt and budget of the next phase.
func (x *answering) begin(phase ace.Phase) {
	x.about.Provider = x.in.ProviderOf(phase)
	x.about.Model = x.in.ModelOf(phase)
	x.about.PhasePrompt = x.in.Prompts.Of(phase)
	if x.item.Usage != nil {
		x.about.Budget = x.in.Task.Budget.Less(*x.item.Usage)
	}
}

func (x *answering) generate(ctx context.Context) (g ace.GeneratorResult, err error) {
	x.begin(ace.PhaseGenerator)
	if x.step, err = x.prepare(ctx, x.about, x.task.Prompt, x.task.PromptRef); err != nil {
		return g, err
	}
	g, err = x.step.provider.Generate(ctx, ace.GeneratorInput{Task: x.step.task, Prompt: x.step.prompt},
		x.step.book)
	x.item.Usage = sum(x.item.Usage, g.Usage)
	x.item.Answer = g.Answer
	x.item.Plan = ace.Cut(g.Plan, maxPlan)
	x.item.BulletIDs = g.BulletIDs
	return g, err
}

func (x *answering) useSkills(ctx context.Context, g ace.GeneratorResult) error {
	x.begin(ace.PhaseSkills)
	provider, err := x.provider(x.about.Provider)
	if err == nil {
		x.about.PhasePrompt, err = x.phasePrompt(ctx, provider, x.about.PhasePrompt)
	}
	if err != nil {
		return err
	}
	k, err := provider.Skills(ctx, ace.SkillsInput{Task: x.about, Prompt: x.step.prompt, Plan: g.Plan,
		Program: g.Program, BulletIDs: g.BulletIDs, Answer: g.Answer}, x.step.book, x.tools)
	x.item.Usage = sum(x.item.Usage, k.Usage)
	x.item.Answer = cmp.Or(k.Answer, g.Answer)
	return err
}

func (x *answering) grade(ctx context.Context) error {
	x.begin(ace.PhaseReflector)
	x.about.PhasePrompt = nil
	graded := ace.ReflectorInput{Task: x.about, Prompt: x.step.prompt, Answer: x.item.Answer,
		Label: x.task.Label, Grader: x.in.Grader}
	reason, used, err := x.gradeOutside(ctx, &graded)
	x.item.Usage = sum(x.item.Usage, used)
	if err == nil {
		x.item.Correct, x.item.Score, err = grade.Verdict(graded)
	}
	x.item.GradeReason = reason
	return err
}
