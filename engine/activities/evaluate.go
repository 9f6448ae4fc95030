package activities

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"acescope/engine/ace"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
)

// evaluation is what an evaluation has done so far.
type evaluation struct {
	total ace.EvaluateResult
	items []ace.EvalItem // the detail of heartbeats
}

// maxPlan is the number of bytes of a plan that an item keeps. The record of the model's requests has all of
// it.
const maxPlan = 2 << 10

// evaluate answers a range of problems with a fixed playbook, or a range of the items of trials. It signals
// no events. A retry continues after the items in the journal of this machine, or in the heartbeats of
// another one.
func (a *Activities) evaluate(ctx context.Context, in ace.EvaluateInput) (ace.EvaluateResult, error) {
	ctx = withPlace(ctx)
	var reported []ace.EvalItem
	var lost ace.Usage // of items that failed in earlier attempts
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &reported, &lost) != nil {
		reported = nil // of another version
	}
	var done evaluation
	j, err := openJournal(a.JournalDir, ctx)
	if err != nil {
		return done.total, err
	}
	defer j.close()
	items, err := j.merge(reported)
	if err != nil {
		return done.total, err
	}
	for _, item := range items {
		done.add(item)
	}
	var latest atomic.Value // for the heartbeats
	latest.Store(done.items)
	defer heartbeat(ctx, latest.Load, func() any { return lost })()
	done.total.Usage = done.total.Usage.Add(lost)
	budget := in.Task.Budget
	for done.total.Tasks < in.Count {
		jobs, err := a.jobs(ctx, in, in.From+done.total.Tasks, in.Count-done.total.Tasks)
		if err != nil {
			return done.total, stored(err)
		}
		for _, next := range jobs {
			in.Task.Budget = budget.Less(done.total.Usage)
			item, err := a.evaluateTask(ctx, in, next)
			if model.KindOf(err) == model.BudgetSpent {
				return a.stopEvaluation(ctx, done, j, item.Usage)
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
				return done.total, a.stepError(ctx, err, nil)
			}
			done.add(item)
			latest.Store(done.items)
		}
	}
	if done.total.Items, err = a.storeItems(ctx, done.items); err == nil {
		j.remove()
	}
	return done.total, err
}

// stopEvaluation ends an evaluation whose budget is spent. u is the usage of the unfinished item, or nil.
func (a *Activities) stopEvaluation(
	ctx context.Context, done evaluation, j *journal, u *ace.Usage,
) (r ace.EvaluateResult, err error) {
	r = done.total
	r.Stopped = true
	if u != nil {
		r.Usage = r.Usage.Add(*u)
	}
	if r.Items, err = a.storeItems(ctx, done.items); err == nil {
		j.remove()
	}
	return r, err
}

// add counts an item. It does not change the items of copies.
func (e *evaluation) add(item ace.EvalItem) {
	e.items = append(e.items[:len(e.items):len(e.items)], item)
	e.total.Tasks++
	switch {
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
	if item.Usage != nil {
		e.total.Usage = e.total.Usage.Add(*item.Usage)
	}
}

// storeItems stores the items as an artifact.
func (a *Activities) storeItems(ctx context.Context, items []ace.EvalItem) (*ace.Ref, error) {
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
		return a.Artifacts.PutBytes(ctx, lines.Bytes(), ace.ItemsMediaType)
	})
	return &ref, stored(err)
}

// evaluateTask answers a task. With an error, the item has the usage so far.
func (a *Activities) evaluateTask(ctx context.Context, in ace.EvaluateInput, j job) (ace.EvalItem, error) {
	t := j.task
	item := ace.EvalItem{Index: t.Index, Label: t.Label, Trial: j.trial}
	if err := ctx.Err(); err != nil {
		return item, err
	}
	if why := in.Task.Budget.Spent(ace.Usage{}); why != "" {
		return item, model.Errorf(model.BudgetSpent, "%s", why)
	}
	begun := time.Now()
	ctx, recorder := a.recording(ctx)
	about := in.Task
	about.TaskID = fmt.Sprintf("%s-eval-%04d", in.Task.TaskID, t.Index+1)
	if j.trial > 0 {
		about.TaskID = fmt.Sprintf("%s-%.8s-%04d", in.Task.TaskID, j.playbook, t.Index+1)
	}
	about.PlaybookHash = j.playbook
	about.Provider = in.ProviderOf(ace.PhaseGenerator)
	about.Model = in.ModelOf(ace.PhaseGenerator)
	about.PhasePrompt = in.Prompts.Of(ace.PhaseGenerator)
	s, err := a.prepare(ctx, about, t.Prompt, t.PromptRef)
	if err != nil {
		return item, err
	}
	g, err := s.provider.Generate(ctx, ace.GeneratorInput{Task: s.task, Prompt: s.prompt}, s.book)
	item.Usage = sum(item.Usage, g.Usage)
	if err != nil {
		return item, err
	}
	if item.Usage != nil {
		about.Budget = in.Task.Budget.Less(*item.Usage)
	}
	tools := &toolbox{config: about.SkillsConfig, artifacts: a.Artifacts, secrets: a.secrets}
	item.Answer = g.Answer
	if !in.NoSkills {
		about.Provider = in.ProviderOf(ace.PhaseSkills)
		about.Model = in.ModelOf(ace.PhaseSkills)
		provider, err := a.provider(about.Provider)
		if err == nil {
			about.PhasePrompt, err = a.phasePrompt(ctx, provider, in.Prompts.Of(ace.PhaseSkills))
		}
		if err != nil {
			return item, err
		}
		k, err := provider.Skills(ctx, ace.SkillsInput{Task: about, Prompt: s.prompt, Plan: g.Plan,
			Program:   g.Program,
			BulletIDs: g.BulletIDs, Answer: g.Answer}, s.book, tools)
		item.Usage = sum(item.Usage, k.Usage)
		if err != nil {
			return item, err
		}
		item.Answer = cmp.Or(k.Answer, g.Answer)
	}
	about.Provider = in.ProviderOf(ace.PhaseReflector)
	about.Model = in.ModelOf(ace.PhaseReflector)
	about.PhasePrompt = nil
	if item.Usage != nil {
		about.Budget = in.Task.Budget.Less(*item.Usage)
	}
	graded := ace.ReflectorInput{Task: about, Prompt: s.prompt, Answer: item.Answer, Label: t.Label,
		Grader: in.Grader}
	reason, used, err := a.gradeOutside(ctx, &graded)
	item.Usage = sum(item.Usage, used)
	if err == nil {
		item.Correct, item.Score, err = grade.Verdict(graded)
	}
	if err != nil {
		return item, err
	}
	item.GradeReason = reason
	item.Plan = ace.Cut(g.Plan, maxPlan)
	item.BulletIDs = g.BulletIDs
	for _, call := range tools.list() {
		call.Args = ace.Preview(call.Args)
		call.Result = ace.Preview(call.Result)
		item.ToolCalls = append(item.ToolCalls, call)
	}
	item.DurationMS = millis(time.Since(begun))
	item.Calls = a.store(ctx, recorder)
	return redacted(a, item), nil
}
