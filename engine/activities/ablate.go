package activities

import (
	"context"
	"encoding/json"
	"errors"

	"acescope/engine/ace"
	"acescope/engine/learning/ablation"
	"acescope/engine/learning/dataset"
)

// planTrials plans the next round of an ablation. It stores the playbooks of the trials, so that every
// provider can read them.
func (b *branches) planTrials(ctx context.Context, in ace.PlanTrialsInput) (ace.PlanTrialsResult, error) {
	defer heartbeat(ctx)()
	var none ace.PlanTrialsResult
	book, err := b.playbook(ctx, in.Task.PlaybookHash)
	if err != nil {
		return none, err
	}
	get := ablation.Get(b.artifacts.Get)
	base, rounds, err := get.Load(ctx, book, in.Ablation, &in.Progress)
	if errors.Is(err, ablation.ErrNoItems) {
		return none, permanent(err)
	}
	if err != nil {
		return none, stored(err)
	}
	trials, skipped := base.Next(in.Ablation, rounds)
	if len(trials) == 0 {
		return ace.PlanTrialsResult{Pruned: base.Pruned(in.Ablation, rounds), Skipped: skipped}, nil
	}
	round := ace.AblationRound{Count: len(trials)}
	for i := range trials {
		t := &trials[i]
		if t.Playbook, err = b.books.Put(ctx, base.Rest(*t)); err != nil {
			return none, err
		}
		round.Answers += len(t.Items)
	}
	content, err := json.Marshal(trials)
	if err != nil {
		return none, err
	}
	round.Trials, err = b.artifacts.PutBytes(ctx, content, ablation.TrialsMediaType)
	return ace.PlanTrialsResult{Round: &round, Skipped: skipped}, err
}

// job is an item to answer. Trial is 0 outside ablations.
type job struct {
	task     ace.Task
	trial    int
	playbook string
}

// jobs returns the next items of an evaluation or of trials, at least one.
func (e *evaluator) jobs(ctx context.Context, in ace.EvaluateInput, from, count int) (jobs []job,
	err error) {
	if in.Trials != nil {
		return e.trialJobs(ctx, in, from, count)
	}
	tasks, err := dataset.Load(ctx, e.artifacts, in.Dataset, from, count)
	for _, t := range tasks {
		jobs = append(jobs, job{task: t, playbook: in.Task.PlaybookHash})
	}
	return jobs, err
}

func (e *evaluator) trialJobs(ctx context.Context, in ace.EvaluateInput, from, count int) (jobs []job,
	err error) {
	trials, err := ablation.Get(e.artifacts.Get).Trials(ctx, *in.Trials)
	if err != nil {
		return nil, err
	}
	first := from
	for i, t := range trials {
		for _, index := range t.Items[min(first, len(t.Items)):] {
			if len(jobs) < count {
				jobs = append(jobs, job{task: ace.Task{Index: index}, trial: i + 1, playbook: t.Playbook})
			}
		}
		first = max(first-len(t.Items), 0)
	}
	if len(jobs) == 0 {
		return nil, permanent(errors.New("the trials have no further items"))
	}
	return jobs, e.loadJobs(ctx, in.Dataset, jobs)
}

// loadJobs sets the tasks of jobs by their indexes.
func (e *evaluator) loadJobs(ctx context.Context, set ace.Ref, jobs []job) error {
	at := map[int][]int{}
	low, high := jobs[0].task.Index, jobs[0].task.Index
	for i, j := range jobs {
		at[j.task.Index] = append(at[j.task.Index], i)
		low = min(low, j.task.Index)
		high = max(high, j.task.Index)
	}
	for low <= high {
		tasks, err := dataset.Load(ctx, e.artifacts, set, low, high-low+1)
		if err != nil {
			return err
		}
		for _, t := range tasks {
			for _, i := range at[t.Index] {
				jobs[i].task = t
			}
		}
		low += len(tasks)
	}
	return nil
}
