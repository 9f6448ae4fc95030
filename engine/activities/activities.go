// Package activities implements the activities of the contract on this machine: the steps of
// a run, the data sets and evaluations of experiments, calls of agents, and the messages between
// runs, runners and the dispatcher.
//
// Order: tool events are signaled in the order in which they happened, and the notices of a run
// or a runner arrive at the dispatcher in the order in which it sent them. Bounds: events are
// signaled in batches of at most [batch.Max], one batch at a time. Loss: an event that could not
// be signaled is in the session's result; if the session fails, the waiting events are sent
// before the activity returns.
package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/internal/lru"
	"acescope/engine/internal/redact"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
	"acescope/engine/tasks/run"
	"acescope/engine/workflows"
)

// Signaler is the part of a Temporal client that activities need.
type Signaler interface {
	SignalWorkflow(ctx context.Context, workflowID, runID, signalName string, arg any) error
}

// Activities implements the activity types of the contract. All fields except Blueprint,
// Graders and Logs are required.
type Activities struct {
	Books     *playbook.Store
	Artifacts *artifact.Store
	Providers []model.Provider
	// Blueprint returns the provider that executes steps as runs of a blueprint, according to its
	// current files. It is nil if blueprints are not available.
	Blueprint func(name string) (model.Provider, error)
	Signals   Signaler
	// Cluster returns the identity of the cluster, nil for the server of the data directory.
	Cluster func(context.Context) (string, error)
	// Logs are for live files; nil disables them.
	Logs   *artifact.Logs
	Agents *agentcall.Runner
	// Runs starts the blueprints of flows; nil if blueprints are not available.
	Runs run.Service
	// Withheld says why flows and graders may not start programs here, or is "".
	Withheld string
	// Graders are the programs that grade answers, by name.
	Graders map[string]grade.Program
	// Self are variables with which this program, as a step of a flow, connects to the same server.
	Self []string
	// CacheDir is the directory of cached operations; "" disables the cache.
	CacheDir string
	// JournalDir is the directory of journals of evaluations; "" for none.
	JournalDir string
	// NoCallRecords disables the records of requests to models.
	NoCallRecords bool

	secrets *redact.Redactor
	vectors *lru.Cache[[3]string, []float64] // embeddings by provider, model and text
}

// Register registers the activities under the names of the contract.
func (a *Activities) Register(r worker.ActivityRegistry) error {
	a.secrets = redact.New(redact.Environ(os.Environ())...)
	a.vectors = lru.New[[3]string](maxVectors, func(v []float64) int { return 8 * len(v) })
	for name, fn := range map[string]any{
		ace.ActivityGenerator:    a.generator,
		ace.ActivitySkills:       a.skills,
		ace.ActivityReflector:    a.reflector,
		ace.ActivityCurator:      a.curator,
		ace.ActivityPersist:      a.persist,
		ace.ActivityLoadTasks:    a.loadTasks,
		ace.ActivityEvaluate:     a.evaluate,
		ace.ActivityPlanTrials:   a.planTrials,
		ace.ActivityHead:         a.head,
		ace.ActivityReadPlaybook: a.readPlaybook,
		ace.ActivityLoadStep:     a.loadStep,
		ace.ActivityAgentCLI:     a.agentCLI,
		ace.ActivityReadLog:      a.readLog,
		ace.ActivityBreakdown:    a.breakdown,
	} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
	return a.RegisterOperations(r)
}

// heartbeatEvery is the heartbeat interval of a running step. It also bounds the delay of a
// cancellation.
const heartbeatEvery = time.Second

// heartbeat sends heartbeats until the returned function is called, with details from which the
// next attempt can resume.
func heartbeat(ctx context.Context, details ...func() any) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() {
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				var values []any
				for _, detail := range details {
					values = append(values, detail())
				}
				activity.RecordHeartbeat(ctx, values...)
			}
		}
	})
	return func() {
		cancel()
		beating.Wait()
	}
}

// withPlace returns a context that identifies the calling activity to a provider.
func withPlace(ctx context.Context) context.Context {
	info := activity.GetInfo(ctx)
	return model.WithCaller(ctx, &model.Caller{WorkflowID: info.WorkflowExecution.ID,
		RunID:    info.WorkflowExecution.RunID,
		Activity: info.ActivityType.Name, ActivityID: info.ActivityID, Attempt: info.Attempt})
}

// maxPrompt bounds a prompt that is an artifact, in bytes.
const maxPrompt = 16 << 20

// step holds the resolved references of a step's input.
type step struct {
	provider model.Provider
	book     *playbook.Playbook
	prompt   string
	task     ace.TaskContext
	earlier  *ace.Usage // of the attempts before
}

func (a *Activities) prepare(ctx context.Context, t ace.TaskContext, prompt string, ref *ace.Ref) (step,
	error) {
	p, err := a.provider(t.Provider)
	if err != nil {
		return step{}, err
	}
	book, err := a.playbook(ctx, t.PlaybookHash)
	if err != nil {
		return step{}, err
	}
	if prompt, err = a.resolve(ctx, "prompt", prompt, ref); err != nil {
		return step{}, permanent(err)
	}
	t.PhasePrompt, err = a.phasePrompt(ctx, p, t.PhasePrompt)
	return step{provider: p, book: book, prompt: prompt, task: t}, err
}

// phasePrompt returns the prompt of a phase with its text, or nil for the default.
func (a *Activities) phasePrompt(ctx context.Context, p model.Provider,
	of *ace.PhasePrompt) (*ace.PhasePrompt, error) {
	if of == nil {
		return nil, nil
	}
	if err := model.CheckPrompt(p); err != nil {
		return nil, err
	}
	text, err := a.resolve(ctx, "phase prompt "+of.String(), "", &of.Ref)
	if err != nil {
		return nil, permanent(err)
	}
	with := *of
	with.Text = text
	return &with, nil
}

// resolve returns a text that is given inline or by reference.
func (a *Activities) resolve(ctx context.Context, name, text string, ref *ace.Ref) (string, error) {
	if ref == nil {
		return text, nil
	}
	data, err := patiently(ctx, func() ([]byte, error) { return a.Artifacts.Get(ctx, *ref, maxPrompt) })
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(data), nil
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
	return nil, permanent(fmt.Errorf("provider %q is not available on this worker", name))
}

func (a *Activities) playbook(ctx context.Context, hash string) (*playbook.Playbook, error) {
	if hash == "" {
		return &playbook.Playbook{}, nil
	}
	book, err := patiently(ctx, func() (*playbook.Playbook, error) { return a.Books.Get(ctx, hash) })
	return book, stored(err)
}

// stored returns an error of the stores. It is not retried if the content does not exist.
func stored(err error) error {
	if errors.Is(err, playbook.ErrNotFound) || errors.Is(err, artifact.ErrNotFound) {
		return permanent(err)
	}
	return err
}

// permanent returns an error that is not retried, unless a store did not answer.
func permanent(err error) error {
	if errors.Is(err, bucket.ErrUnavailable) {
		return err
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), workflows.ErrTypePermanent, nil)
}

// stopwatch measures one attempt of a step.
type stopwatch struct {
	started time.Time
	attempt int32
}

func startStopwatch(ctx context.Context) stopwatch {
	return stopwatch{time.Now(), activity.GetInfo(ctx).Attempt}
}

// stop returns the duration of the step, and before that delays the step to the pace.
func (w stopwatch) stop(ctx context.Context, paceMS int64) *ace.StepTime {
	took := time.Since(w.started)
	sleep(ctx, time.Duration(paceMS)*time.Millisecond-took)
	return &ace.StepTime{StartedAt: w.started.UTC(), DurationMS: millis(took), Attempt: w.attempt}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// sleep waits for d or until the context is done.
func sleep(ctx context.Context, d time.Duration) {
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
