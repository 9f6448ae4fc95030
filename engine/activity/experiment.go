package activity

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"

	"acescope/engine/ace"
	"acescope/engine/model"
)

func (a *Activities) loadTasks(ctx context.Context, in ace.LoadTasksInput) ([]ace.Task, error) {
	defer beat(ctx)()
	return a.data.Load(ctx, in.Dataset, in.From, in.Count)
}

// head starts the branch where it does not exist, and names its newest version.
func (a *Activities) head(ctx context.Context, in ace.HeadInput) (ace.HeadResult, error) {
	defer beat(ctx)()
	hash, err := a.Books.Start(ctx, in.Branch, in.Initial)
	if err != nil {
		return ace.HeadResult{}, err
	}
	book, err := a.book(hash)
	if err != nil {
		return ace.HeadResult{}, err
	}
	return ace.HeadResult{PlaybookHash: hash, Bullets: len(book.Bullets)}, nil
}

// evaluate answers a range of problems with a frozen playbook and compares. Nothing of
// it is signalled: an evaluation is one activity, not a run. An attempt that fails leaves
// what it has measured to the next, which does not ask again.
func (a *Activities) evaluate(ctx context.Context, in ace.EvaluateInput) (ace.EvaluateResult, error) {
	ctx = placed(ctx)
	var total ace.EvaluateResult
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &total) != nil {
		total = ace.EvaluateResult{}
	}
	so := make(chan ace.EvaluateResult, 1) // the newest, for whoever takes it first
	so <- total
	defer beatWith(ctx, func() []any {
		r := <-so
		so <- r
		return []any{r}
	})()
	for total.Tasks < in.Count {
		tasks, err := a.data.Load(ctx, in.Dataset, in.From+total.Tasks, in.Count-total.Tasks)
		if err != nil {
			return total, err
		}
		for _, t := range tasks {
			if err := a.evaluateOne(ctx, in, t, &total); err != nil {
				activity.RecordHeartbeat(ctx, total)
				return total, a.settle(ctx, err)
			}
			<-so
			so <- total
		}
	}
	return total, nil
}

func (a *Activities) evaluateOne(ctx context.Context, in ace.EvaluateInput, t ace.Task, total *ace.EvaluateResult) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	about := in.Task
	about.TaskID = fmt.Sprintf("%s-eval-%04d", in.Task.TaskID, t.Index+1) // steps of several tasks are told apart by it
	about.Provider = in.ProviderOf(ace.PhaseGenerator)
	s, err := a.prepare(about, t.Prompt, t.PromptRef)
	if err != nil {
		return err
	}
	g, err := s.provider.Generate(ctx, ace.GeneratorInput{Task: about, Prompt: s.prompt}, s.book)
	if err != nil {
		return err
	}
	about.Provider = in.ProviderOf(ace.PhaseSkills)
	session, err := a.provider(about.Provider)
	if err != nil {
		return err
	}
	tools := &toolbox{config: about.SkillsConfig, artifacts: a.Artifacts}
	k, err := session.Skills(ctx, ace.SkillsInput{Task: about, Prompt: s.prompt, Plan: g.Plan, Program: g.Program,
		BulletIDs: g.BulletIDs, Answer: g.Answer}, s.book, tools)
	if err != nil {
		return err
	}
	answer := g.Answer
	if k.Answer != "" {
		answer = k.Answer
	}
	correct := t.Label != nil && model.SameAnswer(answer, *t.Label)
	total.Tasks++
	if correct {
		total.Correct++
	} else {
		total.Wrong = append(total.Wrong, t.Index)
	}
	for _, u := range []*ace.Usage{g.Usage, k.Usage} {
		if u != nil {
			total.Usage = total.Usage.Add(*u)
		}
	}
	return nil
}
