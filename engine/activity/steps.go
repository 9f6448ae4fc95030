package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"acescope/engine/ace"
	"acescope/engine/artifact"
	"acescope/engine/playbook"
)

func (a *Activities) generator(ctx context.Context, in ace.GeneratorInput) (ace.GeneratorResult, error) {
	defer beat(ctx)()
	ctx = placed(ctx)
	c := start(ctx)
	s, err := a.prepare(in.Task, in.Prompt, in.PromptRef)
	if err != nil {
		return ace.GeneratorResult{}, a.settle(ctx, err)
	}
	in.Prompt = s.prompt
	p, done := a.live(ctx, s.provider, in.Task)
	defer done()
	r, err := p.Generate(ctx, in, s.book)
	r.Time = c.stop(ctx, in.Task.PaceMS)
	return r, a.settle(ctx, err)
}

func (a *Activities) skills(ctx context.Context, in ace.SkillsInput) (ace.SkillSessionResult, error) {
	defer beat(ctx)()
	ctx = placed(ctx)
	c := start(ctx)
	s, err := a.prepare(in.Task, in.Prompt, in.PromptRef)
	if err != nil {
		return ace.SkillSessionResult{}, a.settle(ctx, err)
	}
	in.Prompt = s.prompt
	rec := newRecorder(in.Task, a.Signals)
	tools := &toolbox{config: in.Task.SkillsConfig, record: rec.add, artifacts: a.Artifacts, attempt: c.attempt,
		pause: time.Duration(in.Task.PaceMS) * time.Millisecond / callsPerPace}
	p, done := a.live(ctx, s.provider, in.Task)
	defer done()
	r, err := p.Skills(ctx, in, s.book, tools)
	r.Invocations = tools.list()
	r.Time = c.stop(ctx, in.Task.PaceMS)
	if err == nil {
		err = a.fit(ctx, &r)
	}
	rec.close(err != nil)
	return r, a.settle(ctx, err)
}

// fit moves payloads that are too large for a history into an artifact.
func (a *Activities) fit(ctx context.Context, r *ace.SkillSessionResult) error {
	var whole []byte
	for _, inv := range r.Invocations {
		line, err := json.Marshal(inv)
		if err != nil {
			return fmt.Errorf("tool call %s: %w", inv.ID, err)
		}
		whole = append(append(whole, line...), '\n')
	}
	if len(whole) <= ace.InlineBytes {
		return nil
	}
	ref, err := a.Artifacts.PutBytes(ctx, whole, "application/jsonl")
	if err != nil {
		return err
	}
	r.Log = &ref
	for i := range r.Invocations {
		inv := &r.Invocations[i]
		inv.Args, inv.Result = ace.Preview(inv.Args), ace.Preview(inv.Result)
	}
	return nil
}

func (a *Activities) reflector(ctx context.Context, in ace.ReflectorInput) (ace.ReflectorResult, error) {
	defer beat(ctx)()
	ctx = placed(ctx)
	c := start(ctx)
	s, err := a.prepare(in.Task, in.Prompt, in.PromptRef)
	if err != nil {
		return ace.ReflectorResult{}, a.settle(ctx, err)
	}
	in.Prompt = s.prompt
	p, done := a.live(ctx, s.provider, in.Task)
	defer done()
	r, err := p.Reflect(ctx, in, s.book)
	r.Time = c.stop(ctx, in.Task.PaceMS)
	return r, a.settle(ctx, err)
}

func (a *Activities) curator(ctx context.Context, in ace.CuratorInput) (ace.CuratorResult, error) {
	defer beat(ctx)()
	ctx = placed(ctx)
	c := start(ctx)
	s, err := a.prepare(in.Task, "", nil)
	if err != nil {
		return ace.CuratorResult{}, a.settle(ctx, err)
	}
	p, done := a.live(ctx, s.provider, in.Task)
	defer done()
	r, err := p.Curate(ctx, in, s.book)
	r.Time = c.stop(ctx, in.Task.PaceMS)
	return r, a.settle(ctx, err)
}

// persist merges the delta into its branch. The delta's id is the run's, so that a
// retry after a crash finds its own work done.
func (a *Activities) persist(ctx context.Context, in ace.PersistInput) (ace.PersistResult, error) {
	defer beat(ctx)()
	c := start(ctx)
	if in.Branch == "" {
		return a.recordOnly(ctx, in, c)
	}
	if _, err := a.Books.Start(ctx, in.Branch, in.Task.PlaybookHash); err != nil {
		return ace.PersistResult{}, err
	}
	m, err := a.Books.Merge(ctx, playbook.MergeRequest{
		Branch: in.Branch, DeltaID: in.Task.WorkflowID + "/" + in.Task.RunID, Operations: in.Operations,
		TaskID: in.Task.TaskID, WorkflowID: in.Task.WorkflowID, RunID: in.Task.RunID,
		Rationale: in.Rationale, At: c.started.UTC(),
	})
	if err != nil {
		return ace.PersistResult{}, err
	}
	return ace.PersistResult{PlaybookBefore: m.Before, PlaybookAfter: m.After, Operations: m.Operations,
		Bullets: m.Bullets, Seq: m.Seq, Time: c.stop(ctx, in.Task.PaceMS)}, nil
}

// recordOnly keeps the delta of a run that belongs to no branch in its history alone.
func (a *Activities) recordOnly(ctx context.Context, in ace.PersistInput, c clock) (ace.PersistResult, error) {
	book, err := a.book(in.Task.PlaybookHash)
	if err != nil {
		return ace.PersistResult{}, err
	}
	ops := make([]ace.Operation, len(in.Operations))
	for i, op := range in.Operations {
		op.Fate, op.Reason = ace.FateIgnored, "the run belongs to no line of playbooks"
		ops[i] = op
	}
	return ace.PersistResult{PlaybookBefore: in.Task.PlaybookHash, PlaybookAfter: in.Task.PlaybookHash,
		Operations: ops, Bullets: len(book.Bullets), Time: c.stop(ctx, in.Task.PaceMS)}, nil
}

// maxResult bounds the result of a step that is taken over, in bytes: what the server
// takes as one payload.
const maxResult = 2 << 20

// loadStep reads the result of a step that a fork takes over.
func (a *Activities) loadStep(_ context.Context, in ace.LoadStepInput) (json.RawMessage, error) {
	data, err := a.Artifacts.Get(in.Ref, maxResult)
	if errors.Is(err, artifact.ErrNotFound) {
		return nil, permanent(fmt.Errorf("the result of %s that this run takes over: %w", in.Phase, err))
	}
	return data, err
}
