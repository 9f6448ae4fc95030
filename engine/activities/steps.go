package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/ace/calls"
	"acescope/engine/agents/observe/batch"
	"acescope/engine/learning/dataset"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
)

func (a *Activities) generator(ctx context.Context, in ace.GeneratorInput) (r ace.GeneratorResult,
	err error) {
	r.Time, r.Calls, err = a.runStep(ctx, in.Task, in.Prompt, in.PromptRef,
		func(ctx context.Context, s step) (err error) {
			in.Prompt = s.prompt
			in.Task = s.task
			r, err = s.provider.Generate(ctx, in, s.book)
			r.Usage = sum(s.earlier, r.Usage)
			return err
		})
	return redacted(a, r), err
}

func (a *Activities) skills(ctx context.Context, in ace.SkillsInput) (r ace.SkillSessionResult, err error) {
	var events *batch.Queue[ace.ToolEvent]
	r.Time, r.Calls, err = a.runStep(ctx, in.Task, in.Prompt, in.PromptRef,
		func(ctx context.Context, s step) (err error) {
			in.Prompt = s.prompt
			in.Task = s.task
			events = newEventQueue(in.Task, a.Signals)
			tools := &toolbox{config: in.Task.SkillsConfig, record: events.Add, artifacts: a.Artifacts,
				secrets: a.secrets, pass: in.Pass, attempt: activity.GetInfo(ctx).Attempt,
				pause: time.Duration(in.Task.PaceMS) * time.Millisecond / callsPerPace}
			r, err = s.provider.Skills(ctx, in, s.book, tools)
			r.Invocations = tools.list()
			r.Usage = sum(s.earlier, r.Usage)
			return err
		})
	if r = redacted(a, r); events == nil {
		return r, err
	}
	if err == nil {
		err = a.offload(ctx, &r)
	}
	events.Close(err == nil)
	if n := events.Dropped(); n > 0 {
		activity.GetLogger(ctx).Warn("tool events were not signaled while the server did not answer; "+
			"the result has the calls", "events", n)
	}
	return r, err
}

func (a *Activities) reflector(ctx context.Context, in ace.ReflectorInput) (r ace.ReflectorResult,
	err error) {
	r.Time, r.Calls, err = a.runStep(ctx, in.Task, in.Prompt, in.PromptRef,
		func(ctx context.Context, s step) (err error) {
			in.Prompt = s.prompt
			in.Task = s.task
			reason, graded, err := a.gradeOutside(ctx, &in)
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
	return redacted(a, r), err
}

func (a *Activities) curator(ctx context.Context, in ace.CuratorInput) (r ace.CuratorResult, err error) {
	r.Time, r.Calls, err = a.runStep(ctx, in.Task, "", nil, func(ctx context.Context, s step) (err error) {
		if in.TagsOnly {
			r.Accepted = ace.TagOperations(in.BulletTags)
			return nil
		}
		r, err = a.curate(ctx, s, in)
		r.Usage = sum(s.earlier, r.Usage)
		return err
	})
	return redacted(a, r), err
}

// runStep prepares a step, lets call execute it and returns its time and the record of its requests to a
// model. The record and the budget include the attempts before.
func (a *Activities) runStep(ctx context.Context, t ace.TaskContext, prompt string, ref *ace.Ref,
	call func(context.Context, step) error) (*ace.StepTime, *ace.CallLog, error) {
	ctx, recorder := a.recording(withPlace(ctx))
	before := a.attemptsBefore(ctx, recorder)
	defer heartbeat(ctx, func() any { return before })()
	earlier := recorder.Usage()
	if earlier != nil {
		t.Budget = t.Budget.Less(*earlier)
	}
	watch := startStopwatch(ctx)
	s, err := a.prepare(ctx, t, prompt, ref)
	if err != nil {
		return nil, nil, a.stepError(ctx, err, nil)
	}
	provider, closeLive := a.live(ctx, s.provider, t)
	defer closeLive()
	s.provider = provider
	t.PhasePrompt = s.task.PhasePrompt
	s.task = t
	s.earlier = earlier
	err = call(ctx, s)
	log := a.store(ctx, recorder)
	if err != nil && log != nil {
		log.Usage = recorder.Usage()
		activity.RecordHeartbeat(ctx, log) // for the next attempt
	}
	return watch.stop(ctx, t.PaceMS), log, a.stepError(ctx, err, log)
}

// attemptsBefore adds the requests of failed attempts to the record and returns that of the last one, nil
// without one. Attempts that lost their process are not known.
func (a *Activities) attemptsBefore(ctx context.Context, recorder *calls.Recorder) *ace.CallLog {
	var log *ace.CallLog
	if recorder == nil || !activity.HasHeartbeatDetails(ctx) ||
		activity.GetHeartbeatDetails(ctx, &log) != nil ||
		log == nil {
		return nil
	}
	list, err := calls.Read(ctx, a.Artifacts.Get, *log)
	if err != nil {
		activity.GetLogger(ctx).Warn("the requests of the attempts before are not counted", "error", err)
		return nil
	}
	for _, c := range list {
		recorder.Add(c)
	}
	return log
}

// recording returns a context in which providers record their requests.
func (a *Activities) recording(ctx context.Context) (context.Context, *calls.Recorder) {
	if a.NoCallRecords {
		return ctx, nil
	}
	recorder := new(calls.Recorder)
	return calls.WithRecorder(ctx, recorder), recorder
}

// store stores a record. A phase does not fail without it, because its requests would be paid again.
func (a *Activities) store(ctx context.Context, recorder *calls.Recorder) *ace.CallLog {
	log, err := patiently(ctx, func() (*ace.CallLog, error) {
		return recorder.Store(ctx, a.Artifacts.PutBytes, a.secrets.Line)
	})
	if err != nil {
		activity.GetLogger(ctx).Warn("the requests to the model are not on record", "error", err)
		return nil
	}
	return log
}

// redacted returns the result of a step without secrets.
func redacted[T any](a *Activities, result T) T {
	data, err := json.Marshal(result)
	if err != nil {
		return result
	}
	var clean T
	if line := a.secrets.Line(data); bytes.Equal(line, data) || json.Unmarshal(line, &clean) != nil {
		return result
	}
	return clean
}

// offload moves invocations that are too large for a history into an artifact.
func (a *Activities) offload(ctx context.Context, r *ace.SkillSessionResult) error {
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
	ref, err := a.Artifacts.PutBytes(ctx, lines, "application/jsonl")
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

// persist merges the delta into its branch. The run's ID is the ID of the delta, so that a retry
// after a crash finds the merged delta. Without a branch, the delta is only recorded.
func (a *Activities) persist(ctx context.Context, in ace.PersistInput) (ace.PersistResult, error) {
	defer heartbeat(ctx)()
	watch := startStopwatch(ctx)
	if in.Branch == "" {
		book, err := a.playbook(ctx, in.Task.PlaybookHash)
		if err != nil {
			return ace.PersistResult{}, err
		}
		ops := append([]ace.Operation{}, in.Operations...)
		for i := range ops {
			ops[i].Outcome, ops[i].Reason = ace.OutcomeIgnored, "the run has no playbook branch"
		}
		return ace.PersistResult{PlaybookBefore: in.Task.PlaybookHash, PlaybookAfter: in.Task.PlaybookHash,
			Operations: ops, Bullets: len(book.Bullets), Time: watch.stop(ctx, in.Task.PaceMS)}, nil
	}
	m, err := patiently(ctx, func() (playbook.Version, error) {
		if err := a.ensureBranch(ctx, in.Branch, in.Task.PlaybookHash); err != nil {
			return playbook.Version{}, err
		}
		return a.Books.Merge(ctx, playbook.Version{
			Source: playbook.Source{Branch: in.Branch, TaskID: in.Task.TaskID, WorkflowID: in.Task.WorkflowID,
				RunID: in.Task.RunID, Rationale: in.Rationale, At: watch.started},
			DeltaID: in.Task.WorkflowID + "/" + in.Task.RunID, Operations: in.Operations,
			Tokens: in.PlaybookTokens,
		})
	})
	if err != nil {
		return ace.PersistResult{}, stored(err)
	}
	return ace.PersistResult{PlaybookBefore: m.Parent, PlaybookAfter: m.Hash, Operations: m.Operations,
		Bullets: m.Bullets, Seq: m.Seq, Time: watch.stop(ctx, in.Task.PaceMS)}, nil
}

// ensureBranch creates a branch unless this machine knows it.
func (a *Activities) ensureBranch(ctx context.Context, name, hash string) error {
	_, err := a.Books.Branch(name)
	if errors.Is(err, playbook.ErrNoBranch) {
		_, err = a.Books.Start(ctx, name, hash)
	}
	return err
}

// maxResult bounds a reused step result, in bytes: the server's limit of a payload.
const maxResult = 2 << 20

// loadStep reads a step result that a fork reuses.
func (a *Activities) loadStep(ctx context.Context, in ace.LoadStepInput) (json.RawMessage, error) {
	defer heartbeat(ctx)()
	data, err := patiently(ctx, func() ([]byte, error) { return a.Artifacts.Get(ctx, in.Ref, maxResult) })
	if err != nil {
		err = stored(fmt.Errorf("reused result of %s: %w", in.Phase, err))
	}
	return data, err
}

func (a *Activities) loadTasks(ctx context.Context, in ace.LoadTasksInput) ([]ace.Task, error) {
	defer heartbeat(ctx)()
	tasks, err := patiently(ctx, func() ([]ace.Task, error) {
		return dataset.Load(ctx, a.Artifacts, in.Dataset, in.From, in.Count)
	})
	return tasks, stored(err)
}

// head returns the latest version of a branch, which it creates if necessary.
func (a *Activities) head(ctx context.Context, in ace.HeadInput) (ace.HeadResult, error) {
	defer heartbeat(ctx)()
	hash, err := patiently(ctx, func() (string, error) {
		if err := a.own(ctx, in.Branch); err != nil {
			return "", err
		}
		return a.Books.Start(ctx, in.Branch, in.Initial)
	})
	if err != nil {
		return ace.HeadResult{}, stored(err)
	}
	book, err := a.playbook(ctx, hash)
	if err != nil {
		return ace.HeadResult{}, err
	}
	return ace.HeadResult{PlaybookHash: hash, Bullets: len(book.Bullets), Branch: in.Branch}, nil
}

// own reserves the branch of an experiment, because servers that share a data directory do not know each
// other's experiments.
func (a *Activities) own(ctx context.Context, branch string) error {
	server := "the server of the data directory"
	if a.Cluster != nil {
		id, err := a.Cluster(ctx)
		if err != nil {
			return err
		}
		server = "namespace " + activity.GetInfo(ctx).Namespace + " of cluster " + id
	}
	err := a.Books.Own(ctx, branch, server)
	if errors.Is(err, playbook.ErrOwner) {
		return permanent(err)
	}
	return err
}

// stepError converts a provider's error to an application error with its kind as type, and
// decides whether and when to retry. It stores an unparsable answer as an artifact. The record of the
// requests may be nil.
func (a *Activities) stepError(ctx context.Context, err error, log *ace.CallLog) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		if errors.Is(err, model.ErrPermanent) {
			return permanent(err)
		}
		return err
	}
	o := temporal.ApplicationErrorOptions{NonRetryable: e.Permanent()}
	if !e.Permanent() {
		o.NextRetryDelay = retryDelay(e, activity.GetInfo(ctx).Attempt)
	}
	message := a.secrets.String(e.Message)
	if e.Raw != "" {
		raw := a.secrets.Bytes([]byte(e.Raw))
		if ref, err := a.Artifacts.PutBytes(ctx, raw, "text/plain; charset=utf-8"); err == nil {
			message += fmt.Sprintf(" (full answer: artifact %s, %d bytes)", ref.SHA256, ref.Size)
			o.Details = append(o.Details, ref)
		}
	}
	if log != nil {
		o.Details = append(o.Details, log)
	}
	return temporal.NewApplicationErrorWithOptions(message, string(e.Kind), o)
}

// retryDelay returns the delay that the provider requests, or an exponential one.
func retryDelay(e *model.Error, attempt int32) time.Duration {
	if e.RetryAfter > 0 {
		return e.RetryAfter
	}
	first, longest := 5*time.Second, time.Minute
	switch e.Kind {
	case model.NoKey, model.NoAgent, model.NoBlueprint, model.NoGrader, // another worker may have one
		model.GraderFailed:
		first, longest = time.Second, 2*time.Second
	case model.RateLimited:
		first, longest = 15*time.Second, 2*time.Minute
	}
	return min(first<<min(max(attempt-1, 0), 6), longest)
}
