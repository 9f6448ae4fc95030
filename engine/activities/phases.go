package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/batch"
	"acescope/engine/internal/lru"
	"acescope/engine/learning/grade"
	"acescope/engine/store/artifact"
)

// phases are the activities that ask a provider.
type phases struct {
	*inputs
	recordings
	grader
	signals Signaler
	logs    *artifact.Logs                   // nil disables live files
	vectors *lru.Cache[[3]string, []float64] // embeddings by provider, model and text
}

func (p *phases) generator(ctx context.Context, in ace.GeneratorInput) (r ace.GeneratorResult,
	err error) {
	r.Time, r.Calls, err = p.runStep(ctx, &in.Task, &in.Prompt, in.PromptRef,
		func(ctx context.Context, s step) (err error) {
			r, err = s.provider.Generate(ctx, in, s.book)
			r.Usage = sum(s.earlier, r.Usage)
			return err
		})
	return redacted(p.secrets, r), err
}

func (p *phases) skills(ctx context.Context, in ace.SkillsInput) (r ace.SkillSessionResult, err error) {
	var events *batch.Queue[ace.ToolEvent]
	r.Time, r.Calls, err = p.runStep(ctx, &in.Task, &in.Prompt, in.PromptRef,
		func(ctx context.Context, s step) (err error) {
			events = newEventQueue(in.Task, p.signals)
			tools := &toolbox{config: in.Task.SkillsConfig, record: events.Add, artifacts: p.artifacts,
				secrets: p.secrets, pass: in.Pass, attempt: activity.GetInfo(ctx).Attempt,
				pause: time.Duration(in.Task.PaceMS) * time.Millisecond / callsPerPace}
			r, err = s.provider.Skills(ctx, in, s.book, tools)
			r.Invocations = tools.list()
			r.Usage = sum(s.earlier, r.Usage)
			return err
		})
	if r = redacted(p.secrets, r); events == nil {
		return r, err
	}
	if err == nil {
		err = p.offload(ctx, &r)
	}
	events.Close(err == nil)
	if n := events.Dropped(); n > 0 {
		activity.GetLogger(ctx).Warn("tool events were not signaled while the server did not answer; "+
			"the result has the calls", "events", n)
	}
	return r, err
}

func (p *phases) reflector(ctx context.Context, in ace.ReflectorInput) (r ace.ReflectorResult,
	err error) {
	r.Time, r.Calls, err = p.runStep(ctx, &in.Task, &in.Prompt, in.PromptRef,
		func(ctx context.Context, s step) (err error) {
			reason, graded, err := p.gradeOutside(ctx, &in)
			graded = sum(s.earlier, graded)
			if err != nil {
				return err
			}
			if in.Reflect != ace.ReflectAlways || in.HideLabel {
				if in.Correct, in.Score, err = grade.Verdict(in); err != nil {
					return err
				}
			}
			if in.Reflect == ace.ReflectNever || in.Reflect == ace.ReflectWrong && in.Correct != nil &&
				*in.Correct {
				r.Correct = in.Correct
				r.Score = in.Score
				r.GradeReason = reason
				r.Usage = graded
				return nil
			}
			if in.HideLabel {
				in.Label = nil
			}
			if r, err = s.provider.Reflect(ctx, in, s.book); in.HideLabel {
				r.Correct = in.Correct
				r.Score = in.Score
			}
			r.GradeReason = reason
			r.Usage = sum(graded, r.Usage)
			return err
		})
	return redacted(p.secrets, r), err
}

func (p *phases) curator(ctx context.Context, in ace.CuratorInput) (r ace.CuratorResult, err error) {
	noPrompt := ""
	r.Time, r.Calls, err = p.runStep(ctx, &in.Task, &noPrompt, nil,
		func(ctx context.Context, s step) (err error) {
			if in.TagsOnly {
				r.Accepted = ace.TagOperations(in.BulletTags)
				return nil
			}
			r, err = p.curate(ctx, s, in)
			r.Usage = sum(s.earlier, r.Usage)
			return err
		})
	return redacted(p.secrets, r), err
}

// runStep prepares a step, executes it with call, and returns its time and the record of its requests to a
// model. The record and the budget include earlier attempts. Before call, it resolves t and prompt, the task
// and the prompt of the step's input, in place.
func (p *phases) runStep(ctx context.Context, t *ace.TaskContext, prompt *string, ref *ace.Ref,
	call func(context.Context, step) error) (*ace.StepTime, *ace.CallLog, error) {
	ctx, recorder := p.recording(withPlace(ctx))
	before := p.attemptsBefore(ctx, recorder)
	defer heartbeat(ctx, func() any { return before })()
	earlier := recorder.Usage()
	if earlier != nil {
		t.Budget = t.Budget.Less(*earlier)
	}
	watch := startStopwatch(ctx)
	s, err := p.prepare(ctx, *t, *prompt, ref)
	if err != nil {
		return nil, nil, p.stepError(ctx, err, nil)
	}
	provider, closeLive := p.live(ctx, s.provider, *t)
	defer closeLive()
	s.provider = provider
	*t = s.task
	*prompt = s.prompt
	s.earlier = earlier
	err = call(ctx, s)
	log := p.store(ctx, recorder)
	if err != nil && log != nil {
		log.Usage = recorder.Usage()
		activity.RecordHeartbeat(ctx, log) // for the next attempt
	}
	return watch.stop(ctx, t.PaceMS), log, p.stepError(ctx, err, log)
}

// offload moves invocations that are too large for a history into an artifact.
func (p *phases) offload(ctx context.Context, r *ace.SkillSessionResult) error {
	var lines []byte
	for _, inv := range r.Invocations {
		line, err := json.Marshal(inv)
		if err != nil {
			return fmt.Errorf("tool call %s: %w", inv.ID, err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if len(lines) <= ace.InlineBytes {
		return nil
	}
	ref, err := p.artifacts.PutBytes(ctx, lines, "application/jsonl")
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
