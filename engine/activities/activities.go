// Package activities implements the activities of the contract: the steps of a run, the data sets and
// evaluations of experiments, the operations of flows, calls of agents, and the messages between runs,
// runners and the dispatcher.
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
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/internal/lru"
	"acescope/engine/internal/redact"
	"acescope/engine/internal/sleep"
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
	// Cluster returns the identity of the cluster; nil if the server is that of the data directory.
	Cluster func(context.Context) (string, error)
	// Logs stores the live files; nil disables them.
	Logs   *artifact.Logs
	Agents *agentcall.Runner
	// Runs starts the blueprints of flows; nil if blueprints are not available.
	Runs run.Service
	// Withheld says why flows and graders may not start programs on this worker; "" if they may.
	Withheld string
	// Graders are the programs that grade answers, by name.
	Graders map[string]grade.Program
	// Self holds environment variables for a step of a flow that runs this program, so that it connects to
	// the same server.
	Self []string
	// CacheDir is the directory of cached operations; "" disables the cache.
	CacheDir string
	// JournalDir is the directory of journals of evaluations; "" disables them.
	JournalDir string
	// NoCallRecords disables the records of requests to models.
	NoCallRecords bool

	secrets *redact.Redactor
}

// Register registers the activities under the names of the contract.
func (a *Activities) Register(r worker.ActivityRegistry) error {
	a.secrets = redact.OfProcess()
	a.register(r)
	return a.RegisterOperations(r)
}

func (a *Activities) register(r worker.ActivityRegistry) {
	in := a.inputs()
	recordings := recordings{in, a.NoCallRecords}
	grader := grader{in, a.Graders, a.Withheld}
	branches := branches{in, a.Cluster}
	phases := phases{in, recordings, grader, a.Signals, a.Logs,
		lru.New[[3]string](maxVectors, func(v []float64) int { return 8 * len(v) })}
	evaluator := evaluator{in, recordings, grader, a.JournalDir}
	agents := agents{in, a.Agents}
	for name, fn := range map[string]any{
		ace.ActivityGenerator:    phases.generator,
		ace.ActivitySkills:       phases.skills,
		ace.ActivityReflector:    phases.reflector,
		ace.ActivityCurator:      phases.curator,
		ace.ActivityPersist:      branches.persist,
		ace.ActivityLoadTasks:    branches.loadTasks,
		ace.ActivityEvaluate:     evaluator.evaluate,
		ace.ActivityPlanTrials:   branches.planTrials,
		ace.ActivityHead:         branches.head,
		ace.ActivityReadPlaybook: branches.readPlaybook,
		ace.ActivityLoadStep:     branches.loadStep,
		ace.ActivityAgentCLI:     agents.agentCLI,
		ace.ActivityReadLog:      agents.readLog,
		ace.ActivityBreakdown:    agents.breakdown,
	} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

func (a *Activities) inputs() *inputs {
	return &inputs{a.Books, a.Artifacts, a.Providers, a.Blueprint, a.secrets}
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
		sleep.Every(ctx, heartbeatEvery, func() {
			var values []any
			for _, detail := range details {
				values = append(values, detail())
			}
			activity.RecordHeartbeat(ctx, values...)
		})
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

// stored makes an error of a store permanent if the content does not exist.
func stored(err error) error {
	if errors.Is(err, playbook.ErrNotFound) || errors.Is(err, artifact.ErrNotFound) {
		return permanent(err)
	}
	return err
}

// permanent returns an error that is not retried, except if the cause is a store that did not answer.
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

// stop returns the duration of the step. It first waits until the step has taken the duration of its pace.
func (w stopwatch) stop(ctx context.Context, paceMS int64) *ace.StepTime {
	took := time.Since(w.started)
	_ = sleep.For(ctx, time.Duration(paceMS)*time.Millisecond-took)
	return &ace.StepTime{StartedAt: w.started.UTC(), DurationMS: millis(took), Attempt: w.attempt}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
