package flow

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/history"
)

// announceAfter is how long a run must have left the phase that lists show.
const announceAfter = 300 * time.Millisecond

// task is one run in progress. All that it knows is in state, and state changes only
// through apply, so that folding the history anywhere gives the same.
type task struct {
	state  ace.State
	shown  ace.Phase // as the search attribute has it
	signal workflow.ReceiveChannel
	heard  time.Time // when an event came last

	generated ace.GeneratorResult
	reflected ace.ReflectorResult
	curated   ace.CuratorResult
}

// Task is the workflow of one ACE task run: generator, skills, reflector, curator,
// persist. A fork begins after the steps whose results it takes over. A run whose answer is
// wrong completes; one whose step fails after its last retry fails with that step's error.
// A run that happens elsewhere is only listened to, and ends as its observer says.
func Task(ctx workflow.Context, in ace.TaskInput) (ace.TaskResult, error) {
	t := &task{shown: in.FirstPhase(), signal: workflow.GetSignalChannel(ctx, ace.SignalToolEvent)}
	t.apply(ace.Started(in))
	t.takeOver(in.Fork)
	if err := t.answerQueries(ctx); err != nil {
		return ace.TaskResult{}, err
	}
	if !in.Observed {
		workflow.Go(ctx, t.listen)
	}
	workflow.Go(ctx, t.watchCancel)
	workflow.Go(ctx, t.announce)

	err := t.run(ctx, in)
	if workflow.IsContinueAsNewError(err) {
		return ace.TaskResult{}, err
	}
	t.drain(ctx)
	if ctx.Err() != nil && !t.state.Finished() {
		t.apply(ace.CancelRequested())
		err = ctx.Err()
	}
	if finishErr := t.finish(ctx); err == nil {
		err = finishErr
	}
	return t.state.Result(), err
}

func (t *task) run(ctx workflow.Context, in ace.TaskInput) error {
	if in.Observed {
		return t.observe(ctx, in)
	}
	return t.steps(ctx, in)
}

func (t *task) apply(f ace.Fact) { t.state.Apply(f) }

func (t *task) answerQueries(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, ace.QueryPhase, func() (ace.PhaseAnswer, error) {
		return t.state.CurrentPhase(), nil
	}); err != nil {
		return err
	}
	if err := workflow.SetQueryHandler(ctx, ace.QuerySkills, func() (ace.SkillAnswer, error) {
		return t.state.SkillUsage(), nil
	}); err != nil {
		return err
	}
	return workflow.SetQueryHandler(ctx, ace.QueryDelta, func() (ace.DeltaAnswer, error) {
		return t.state.PlaybookDelta(), nil
	})
}

// listen applies tool events as they are signalled.
func (t *task) listen(ctx workflow.Context) {
	for {
		var raw converter.RawValue
		if !t.signal.Receive(ctx, &raw) {
			return
		}
		t.hear(ctx, raw)
	}
}

func (t *task) hear(ctx workflow.Context, raw converter.RawValue) {
	t.heard = workflow.Now(ctx)
	t.apply(ace.ToolEventsFrom(history.JSONOf(raw.Payload())))
}

// drain applies the events that arrived together with the last step's result, which
// would be lost when the workflow returns before its listener runs.
func (t *task) drain(ctx workflow.Context) {
	var raw converter.RawValue
	for t.signal.ReceiveAsync(&raw) {
		t.hear(ctx, raw)
	}
}

func (t *task) watchCancel(ctx workflow.Context) {
	ctx.Done().Receive(ctx, nil)
	t.apply(ace.CancelRequested())
}

func (t *task) steps(ctx workflow.Context, in ace.TaskInput) error {
	for t.state.Phase != ace.PhaseDone {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f := t.state.Failure; f != nil { // a result that was taken over is no good
			return temporal.NewNonRetryableApplicationError(f.Message, f.Type, nil)
		}
		if err := t.step(ctx, in, t.state.Phase); err != nil {
			return err
		}
	}
	return nil
}

func (t *task) step(ctx workflow.Context, in ace.TaskInput, step ace.Phase) error {
	activity, input := step.Activity(), any(nil)
	if ref := in.Fork.Stored(step); ref != nil {
		activity, input = ace.ActivityLoadStep, ace.LoadStepInput{Phase: step, Ref: *ref}
	} else {
		input = t.input(ctx, in, step)
	}
	var raw converter.RawValue
	err := workflow.ExecuteActivity(withOptions(ctx, activity, in.ProviderOf(step)), activity, input).Get(ctx, &raw)
	if err != nil {
		t.apply(ace.StepFailed(step, history.FailureFrom(err)))
		return err
	}
	fact := ace.StepCompleted(step, history.JSONOf(raw.Payload()))
	t.apply(fact)
	if fact.Kind == ace.FactStepFailed {
		return temporal.NewNonRetryableApplicationError(fact.Failure.Message, fact.Failure.Type, nil)
	}
	t.keep(fact.Result)
	return nil
}

// announce puts the phase where lists can see it, if the run stays in it: every change
// of the attribute costs the server as much as a step, and a list is read every second or
// two. The phase in the run's own answers is always the newest.
func (t *task) announce(ctx workflow.Context) {
	for {
		if err := workflow.Await(ctx, func() bool { return t.state.Phase != t.shown }); err != nil {
			return
		}
		if err := workflow.Sleep(ctx, announceAfter); err != nil {
			return
		}
		if err := t.show(ctx, t.state.Phase); err != nil {
			workflow.GetLogger(ctx).Error("the phase could not be announced", "error", err)
		}
	}
}

func (t *task) show(ctx workflow.Context, phase ace.Phase) error {
	if phase == t.shown {
		return nil
	}
	t.shown = phase
	return workflow.UpsertTypedSearchAttributes(ctx, keyword(ace.AttrPhase, string(phase)))
}

// finish leaves the outcome for lists: the attributes to search by and the memo to show.
func (t *task) finish(ctx workflow.Context) error {
	exit := t.state.ExitStatus()
	if exit == ace.Running {
		exit = ace.Cancelled
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{ace.MemoSummary: t.state.Summary()}); err != nil {
		return fmt.Errorf("leave the summary: %w", err)
	}
	return workflow.UpsertTypedSearchAttributes(ctx,
		keyword(ace.AttrPhase, string(t.state.Phase)), keyword(ace.AttrExit, string(exit)))
}

// keep holds the parts of a result that later steps are given.
func (t *task) keep(result any) {
	switch r := result.(type) {
	case *ace.GeneratorResult:
		t.generated = *r
	case *ace.ReflectorResult:
		t.reflected = *r
	case *ace.CuratorResult:
		t.curated = *r
	}
}

// takeOver holds what later steps are given of the results that the input brings along;
// the state has applied them.
func (t *task) takeOver(f *ace.Fork) {
	for _, step := range ace.Steps() {
		if result := f.Inline(step); result != nil {
			t.keep(ace.StepCompleted(step, result).Result)
		}
	}
}

// input builds a step's input. Only the reflector is given the label.
func (t *task) input(ctx workflow.Context, in ace.TaskInput, step ace.Phase) any {
	about := t.about(ctx, in, step)
	switch step {
	case ace.PhaseGenerator:
		return ace.GeneratorInput{Task: about, Prompt: in.Prompt, PromptRef: in.PromptRef}
	case ace.PhaseSkills:
		return ace.SkillsInput{Task: about, Prompt: in.Prompt, PromptRef: in.PromptRef, Plan: t.generated.Plan,
			Program: t.generated.Program, BulletIDs: t.generated.BulletIDs, Answer: t.generated.Answer}
	case ace.PhaseReflector:
		return ace.ReflectorInput{Task: about, Prompt: in.Prompt, PromptRef: in.PromptRef, Plan: t.generated.Plan,
			Program: t.generated.Program, BulletIDs: t.generated.BulletIDs, Answer: t.state.Answer, Label: in.Label}
	case ace.PhaseCurator:
		return ace.CuratorInput{Task: about, Insights: t.reflected.Insights, BulletTags: t.reflected.BulletTags,
			Findings: t.reflected.Findings, Correct: t.reflected.Correct}
	default:
		return ace.PersistInput{Task: about, Branch: in.Branch, Operations: t.curated.Accepted, Rationale: t.curated.Rationale}
	}
}

func (t *task) about(ctx workflow.Context, in ace.TaskInput, step ace.Phase) ace.TaskContext {
	run := workflow.GetInfo(ctx).WorkflowExecution
	return ace.TaskContext{TaskID: in.TaskID, WorkflowID: run.ID, RunID: run.RunID, ExperimentID: in.ExperimentID,
		PlaybookHash: in.PlaybookHash, Provider: in.ProviderOf(step), Model: in.Model, SkillsConfig: in.SkillsConfig, PaceMS: in.PaceMS}
}
