package workflows

import (
	"cmp"
	"encoding/json"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/operation"
	"acescope/engine/temporal/searchattr"
)

// task is an open task run. Its state changes only through apply, so that folding the history gives the same
// state.
type task struct {
	state  ace.State
	signal workflow.ReceiveChannel
	review workflow.ReceiveChannel
	heard  time.Time // time of the last event

	generated ace.GeneratorResult
	findings  json.RawMessage // of the last reflection
	curated   ace.CuratorResult
}

// Task is the workflow of one ACE run: generator, skills, reflector, curator, persist. A fork starts after
// the steps that it reuses. A run with a wrong answer completes; a run fails with the error of a step that
// failed after its last retry. An observed run executes no steps and closes with the status that its observer
// reports.
func Task(ctx workflow.Context, in ace.TaskInput) (ace.TaskResult, error) {
	t := &task{signal: workflow.GetSignalChannel(ctx, ace.SignalToolEvent),
		review: workflow.GetSignalChannel(ctx, ace.SignalReview)}
	t.apply(ace.Started(in))
	t.keepReused(in.Fork)
	if err := t.answerQueries(ctx); err != nil {
		return ace.TaskResult{}, err
	}
	if !in.Observed {
		workflow.Go(ctx, t.listen)
	}
	workflow.Go(ctx, t.listenForReviews)
	workflow.Go(ctx, t.watchCancel)
	workflow.Go(ctx, func(ctx workflow.Context) { announce(ctx, in.FirstPhase(), t.phase) })

	execute := t.steps
	if in.Observed {
		execute = t.observe
	}
	err := execute(ctx, in)
	if workflow.IsContinueAsNewError(err) {
		return ace.TaskResult{}, err
	}
	t.drain(ctx)
	t.hearReviews()
	if ctx.Err() != nil && !t.state.Finished() {
		t.apply(ace.CancelRequested())
		err = ctx.Err()
	}
	if finishErr := t.finish(ctx); err == nil {
		err = finishErr
	}
	if err != nil && in.Budget != nil && ctx.Err() == nil {
		err = withUsage(err, t.state.Usage)
	}
	return t.state.Result(), err
}

// withUsage returns the error of a failed run with its usage, which counts against the budget of its
// experiment.
func withUsage(err error, u ace.Usage) error {
	f := history.FailureFrom(err)
	return temporal.NewApplicationErrorWithOptions(f.Message, f.Type,
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{ace.Failure{Usage: &u}}})
}

func (t *task) apply(f ace.Fact) { t.state.Apply(f) }

func (t *task) answerQueries(ctx workflow.Context) error {
	phase := func() (ace.PhaseAnswer, error) { return t.state.CurrentPhase(), nil }
	skills := func() (ace.SkillAnswer, error) { return t.state.SkillUsage(), nil }
	delta := func() (ace.DeltaAnswer, error) { return t.state.PlaybookDelta(), nil }
	return cmp.Or(
		workflow.SetQueryHandler(ctx, ace.QueryPhase, phase),
		workflow.SetQueryHandler(ctx, ace.QuerySkills, skills),
		workflow.SetQueryHandler(ctx, ace.QueryDelta, delta),
	)
}

// listen applies tool events as they are signaled.
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
	t.apply(ace.ToolEventsFrom(history.PayloadJSON(raw.Payload())))
}

// drain applies the events that arrived together with the last step's result. They would be lost
// if the workflow returned before its listener runs.
func (t *task) drain(ctx workflow.Context) {
	var raw converter.RawValue
	for t.signal.ReceiveAsync(&raw) {
		t.hear(ctx, raw)
	}
}

// listenForReviews applies decisions that arrive outside of a review; the state ignores them. It does not
// block in Receive, which would hold a decision back from awaitReview.
func (t *task) listenForReviews(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	for workflow.Await(ctx, func() bool { return t.review.Len() > 0 }) == nil {
		t.hearReviews()
	}
}

func (t *task) hearReviews() {
	var raw converter.RawValue
	for t.review.ReceiveAsync(&raw) {
		t.apply(ace.ReviewedFrom(history.PayloadJSON(raw.Payload())))
	}
}

// awaitReview waits for a decision on the operations if they need one, up to the time limit. Only decisions
// after its timer in the history count: the server records signals that arrive during a workflow task after
// the commands of the task, so earlier decisions cannot know the operations.
func (t *task) awaitReview(ctx workflow.Context) error {
	t.hearReviews()
	if !t.state.WaitsForReview() {
		return nil
	}
	limit := t.state.Input.Review.Timeout()
	until := workflow.Now(ctx).Add(limit)
	t.apply(ace.ReviewOpened(until))
	if err := workflow.UpsertMemo(ctx,
		map[string]any{ace.MemoReview: t.state.ReviewMemo(until)}); err != nil {
		return err
	}
	decided, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{Timeout: limit,
		TimerOptions: workflow.TimerOptions{Summary: ace.TimerReview}}, func() bool {
		t.hearReviews()
		return !t.state.WaitsForReview()
	})
	if err != nil {
		return err
	}
	if !decided {
		t.apply(ace.ReviewTimeout())
	}
	t.apply(ace.ReviewClosed())
	return nil
}

// phase returns the phase for the search attributes.
func (t *task) phase() ace.Phase {
	if t.state.WaitsForReview() {
		return ace.PhaseReview
	}
	return t.state.Phase
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
		if f := t.state.Failure; f != nil { // a reused result is invalid
			return failed(*f)
		}
		if t.state.Phase == ace.PhasePersist {
			if err := t.awaitReview(ctx); err != nil {
				return err
			}
		}
		if err := t.step(ctx, in, t.state.Phase); err != nil {
			return err
		}
	}
	return nil
}

func (t *task) step(ctx workflow.Context, in ace.TaskInput, step ace.Phase) error {
	activity, input := step.Activity(), any(nil)
	if ref := in.Fork.StoredResult(len(t.state.Passes), step); ref != nil {
		activity, input = ace.ActivityLoadStep, ace.LoadStepInput{Phase: step, Ref: *ref}
	} else {
		input = t.input(ctx, in, step)
	}
	var raw converter.RawValue
	err := workflow.ExecuteActivity(withOptions(ctx, activity, in.ProviderOf(step)), activity, input).Get(ctx,
		&raw)
	if err != nil {
		t.apply(ace.StepFailed(step, history.FailureFrom(err)))
		if t.state.Stopped != "" {
			return nil
		}
		return err
	}
	fact := ace.StepCompleted(step, history.PayloadJSON(raw.Payload()))
	t.apply(fact)
	if fact.Kind == ace.FactStepFailed {
		return failed(*fact.Failure)
	}
	t.keep(fact.Result)
	return nil
}

// finish writes the outcome to the search attributes and the memo.
func (t *task) finish(ctx workflow.Context) error {
	exit := t.state.ExitStatus()
	if exit == ace.ExitRunning {
		exit = ace.ExitCanceled
	}
	return writeOutcome(ctx, t.state.Summary(), string(t.state.Phase), exit)
}

// keep stores a result that is part of the input of later steps.
func (t *task) keep(result any) {
	switch r := result.(type) {
	case *ace.GeneratorResult:
		t.generated = *r
	case *ace.ReflectorResult:
		if r.Findings != nil {
			t.findings = r.Findings
		}
	case *ace.CuratorResult:
		t.curated = *r
	}
}

// keepReused stores the reused results of the input; the state has applied them already.
func (t *task) keepReused(f *ace.Fork) {
	for _, step := range ace.Steps() {
		for _, result := range f.InlineResults(step) {
			t.keep(ace.StepCompleted(step, result).Result)
		}
	}
}

// input returns the input of a step. Only the reflector receives the label.
func (t *task) input(ctx workflow.Context, in ace.TaskInput, step ace.Phase) any {
	run := workflow.GetInfo(ctx).WorkflowExecution
	about := ace.TaskContext{
		TaskID: in.TaskID, WorkflowID: run.ID, RunID: run.RunID, ExperimentID: in.ExperimentID,
		PlaybookHash: t.state.Playbook(), Provider: in.ProviderOf(step), Model: in.ModelOf(step),
		SkillsConfig: in.SkillsConfig, PaceMS: in.PaceMS, Sampling: in.Sampling,
		Budget:      in.Budget.Less(t.state.Usage),
		PhasePrompt: in.Prompts.Of(step),
	}
	if in.ExperimentRun != "" && !isReset(ctx) {
		about.DeltaID = run.ID + "/" + in.ExperimentRun
	}
	plan := t.generated
	switch step {
	case ace.PhaseGenerator:
		return ace.GeneratorInput{Task: about, Prompt: in.Prompt, PromptRef: in.PromptRef,
			Reflection: t.state.Reflection()}
	case ace.PhaseSkills:
		return ace.SkillsInput{Task: about, Prompt: in.Prompt, PromptRef: in.PromptRef, Plan: plan.Plan,
			Program: plan.Program, BulletIDs: plan.BulletIDs, Answer: plan.Answer, Pass: len(t.state.Passes)}
	case ace.PhaseReflector:
		return ace.ReflectorInput{Task: about, Prompt: in.Prompt, PromptRef: in.PromptRef, Plan: plan.Plan,
			Program: plan.Program, BulletIDs: plan.BulletIDs, Answer: t.state.Latest().Answer,
			Label: in.Label, Grader: in.Grader, HideLabel: in.HideLabels, Reflect: t.state.WhenToReflect()}
	case ace.PhaseCurator:
		insights, tags, correct := t.state.Lesson()
		return ace.CuratorInput{Task: about, Insights: insights, BulletTags: tags, Findings: t.findings,
			Correct: correct, TagsOnly: !in.CuratesNow(), PlaybookTokens: in.PlaybookTokens,
			Deduplicate: in.Deduplicate}
	}
	return ace.PersistInput{Task: about, Branch: in.Branch, Operations: t.state.Approved(t.curated.Accepted),
		Rationale: t.curated.Rationale, PlaybookTokens: in.PlaybookTokens}
}

// drainFor delays the close of an observed run for batches that arrive out of order.
const drainFor = 250 * time.Millisecond

// observe receives events until the observer finishes the run, the run is idle for too long or it is
// canceled. A long run continues as new. Only this loop reads the channel, because the event that a
// concurrent reader has just received would be lost when the run continues as new.
func (t *task) observe(ctx workflow.Context, in ace.TaskInput) error {
	t.heard = workflow.Now(ctx)
	alarm := workflow.NewTimer(ctx, in.Idle())
	for t.drain(ctx); !t.state.Finished(); t.drain(ctx) {
		t.announceModel(ctx, &in)
		if operation.IsLong(ctx) {
			in.Carried = t.state.Carry()
			return workflow.NewContinueAsNewError(ctx, ace.TaskWorkflow, in)
		}
		if alarm.IsReady() { // events do not restart the timer, which would cost history
			wait := in.Idle() - workflow.Now(ctx).Sub(t.heard)
			if wait <= 0 {
				return t.timeOut(ctx)
			}
			alarm = workflow.NewTimer(ctx, wait)
		}
		err := workflow.Await(ctx, func() bool {
			return t.signal.Len() > 0 || alarm.IsReady() ||
				operation.IsLong(ctx)
		})
		if err != nil {
			return err
		}
	}
	_ = workflow.Sleep(ctx, drainFor) // an error only means that a cancellation shortened the wait
	t.drain(ctx)
	t.announceModel(ctx, &in)
	return t.observedError()
}

// announceModel updates the model in the search attributes and the input if the observer reports
// another one.
func (t *task) announceModel(ctx workflow.Context, in *ace.TaskInput) {
	if t.state.Input.Model == in.Model {
		return
	}
	in.Model = t.state.Input.Model
	err := workflow.UpsertTypedSearchAttributes(ctx, searchattr.Keyword(ace.AttrModel, in.Model))
	if err != nil {
		workflow.GetLogger(ctx).Error("search attribute ModelName was not updated", "error", err)
	}
}

// timeOut ends an idle observed run. It marks the history with a timer whose summary tells
// readers of the history that the run timed out.
func (t *task) timeOut(ctx workflow.Context) error {
	marker := workflow.NewTimerWithOptions(ctx, time.Millisecond,
		workflow.TimerOptions{Summary: ace.TimerIdle})
	if err := marker.Get(ctx, nil); err != nil {
		return err
	}
	t.apply(ace.IdleTimeout())
	t.drain(ctx)
	return t.observedError()
}

// observedError returns the error with which the workflow of an observed run closes.
func (t *task) observedError() error {
	switch t.state.Reported {
	case ace.Canceled:
		return temporal.NewCanceledError()
	case ace.Failed, ace.TimedOut:
		return failed(*t.state.Failure)
	}
	return nil
}
