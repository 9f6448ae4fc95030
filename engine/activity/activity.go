// Package activity serves the activities of the contract on this machine: it loads the
// playbook, lets the step's provider answer, records tool calls, and merges the delta.
// It may import engine/ace, engine/flow (for its time-outs), engine/model, engine/agentrun
// and engine/agentcli (for calls of agents), engine/session (for identities), engine/run and
// engine/runner (for what these and the dispatcher say to each other),
// engine/playbook, engine/artifact, engine/dataset, engine/observe/batch,
// engine/redact and Temporal's SDK.
//
// Order: tool events are signalled in the order in which they happened, and what a run or a
// runner tells the dispatcher in the order in which it said it. Bounds: events
// are signalled in batches, one at a time, and at most [batch.Max] of them. Loss: an
// event that could not be signalled is still in the session's result, and in the error
// path it is flushed before the activity returns.
package activity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"acescope/engine/ace"
	"acescope/engine/agentrun"
	"acescope/engine/artifact"
	"acescope/engine/dataset"
	"acescope/engine/flow"
	"acescope/engine/model"
	"acescope/engine/playbook"
	"acescope/engine/redact"
)

// Signaller is the part of a Temporal client that activities need.
type Signaller interface {
	SignalWorkflow(ctx context.Context, workflowID, runID, signalName string, arg any) error
}

// Activities serves the activity types of the contract. All fields but Blueprint and Logs are
// required.
type Activities struct {
	Books     *playbook.Store
	Artifacts *artifact.Store
	Providers []model.Provider
	// Blueprint gives the provider whose steps are runs of a blueprint, as its files are at the
	// moment; nil where there are no blueprints.
	Blueprint func(name string) (model.Provider, error)
	Signals   Signaller
	// Logs is where logs lie; "" leaves out the live ones.
	Logs   string
	Agents *agentrun.Runner

	data    *dataset.Loader
	secrets *redact.Redactor
}

// Register makes the activities known under the names of the contract.
func (a *Activities) Register(r worker.ActivityRegistry) {
	a.data = dataset.NewLoader(a.Artifacts)
	a.secrets = redact.New(redact.Environ(os.Environ())...)
	for name, fn := range map[string]any{
		ace.ActivityGenerator: a.generator,
		ace.ActivitySkills:    a.skills,
		ace.ActivityReflector: a.reflector,
		ace.ActivityCurator:   a.curator,
		ace.ActivityPersist:   a.persist,
		ace.ActivityLoadTasks: a.loadTasks,
		ace.ActivityEvaluate:  a.evaluate,
		ace.ActivityHead:      a.head,
		ace.ActivityLoadStep:  a.loadStep,
		ace.ActivityAgentCLI:  a.agentCLI,
		ace.ActivityReadLog:   a.readLog,
		ace.ActivityBreakdown: a.breakdown,
	} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// beatEvery is how often a running step tells the server that it lives. It also bounds
// how late a cancellation is noticed.
const beatEvery = time.Second

// beat heartbeats until the returned function is called.
func beat(ctx context.Context) (stop func()) { return beatWith(ctx, func() []any { return nil }) }

// beatWith is beat with what a next attempt can go on from.
func beatWith(ctx context.Context, details func() []any) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				activity.RecordHeartbeat(ctx, details()...)
			}
		}
	}()
	return cancel
}

// placed is a context by which a provider knows on whose behalf it is called.
func placed(ctx context.Context) context.Context {
	info := activity.GetInfo(ctx)
	return model.WithPlace(ctx, &model.Place{WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID,
		Activity: info.ActivityType.Name, ActivityID: info.ActivityID, Attempt: info.Attempt})
}

// maxPrompt bounds a prompt that comes as an artifact, in bytes.
const maxPrompt = 16 << 20

// step is what every step needs before it can be served.
type step struct {
	provider model.Provider
	book     *playbook.Playbook
	prompt   string
}

func (a *Activities) prepare(t ace.TaskContext, prompt string, ref *ace.Ref) (step, error) {
	p, err := a.provider(t.Provider)
	if err != nil {
		return step{}, err
	}
	book, err := a.book(t.PlaybookHash)
	if err != nil {
		return step{}, err
	}
	if ref != nil {
		data, err := a.Artifacts.Get(*ref, maxPrompt)
		if err != nil {
			return step{}, permanent(fmt.Errorf("prompt: %w", err))
		}
		prompt = string(data)
	}
	return step{p, book, prompt}, nil
}

func (a *Activities) provider(name string) (model.Provider, error) {
	if blueprint, ok := ace.BlueprintOf(name); ok && a.Blueprint != nil {
		return a.Blueprint(blueprint)
	}
	for _, p := range a.Providers {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, permanent(fmt.Errorf("this worker has no provider %q", name))
}

func (a *Activities) book(hash string) (*playbook.Playbook, error) {
	if hash == "" {
		return &playbook.Playbook{}, nil
	}
	book, err := a.Books.Get(hash)
	if errors.Is(err, playbook.ErrNotFound) {
		return nil, permanent(err)
	}
	return book, err
}

// permanent marks an error that the retry policy gives up on.
func permanent(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), flow.ErrTypePermanent, nil)
}

// clock measures one attempt of a step.
type clock struct {
	started time.Time
	attempt int32
}

func start(ctx context.Context) clock {
	return clock{time.Now(), activity.GetInfo(ctx).Attempt}
}

// stop holds the step until the pace is over and says how long it really took.
func (c clock) stop(ctx context.Context, paceMS int64) *ace.StepTime {
	took := time.Since(c.started)
	hold(ctx, time.Duration(paceMS)*time.Millisecond-took)
	return &ace.StepTime{StartedAt: c.started.UTC(), DurationMS: millis(took), Attempt: c.attempt}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// hold waits for d, or until the context ends.
func hold(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
