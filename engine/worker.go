package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc/codes"

	"acescope/engine/ace"
	"acescope/engine/activities"
	"acescope/engine/agents/observe"
	"acescope/engine/agents/session/host"
	"acescope/engine/internal/process"
	"acescope/engine/internal/redact"
	"acescope/engine/internal/sleep"
	"acescope/engine/store/artifact"
	"acescope/engine/temporal/server"
	"acescope/engine/workflows"
)

// MaxActivities bounds the concurrent steps of one process.
const MaxActivities = 64

// maxSessionActivities bounds the concurrent turns and tool calls of one process. It is large,
// because a turn that waits for a tool call must not block the tool.
const maxSessionActivities = 1000

// workerSet holds the workers of this process.
type workerSet struct {
	w        worker.Worker
	flows    worker.Worker // nil if the main worker executes the programs of flows
	dispatch *activities.Dispatch
	sessions *background // may be nil
	runner   *background // may be nil
	watch    *background // runs dispatch.Watch
	store    *storeWatch
	checks   []*background // watch the store and the cluster
}

func (s *workerSet) stop() {
	for _, c := range s.checks {
		c.stop()
	}
	s.watch.stop()
	s.runner.stop() // first, because it notifies its workflow
	s.w.Stop()
	if s.flows != nil {
		s.flows.Stop()
	}
	s.dispatch.Close()
	s.sessions.stop()
}

// Directories of this machine with references that no history may have.
func (e *Engine) journalDir() string    { return filepath.Join(e.dir, "evaluations") }
func (e *Engine) operationsDir() string { return filepath.Join(e.dir, "cache", "operations") }

// workerClient returns the client of workers.
func (e *Engine) workerClient() client.Client {
	if e.serving != nil {
		return e.serving
	}
	return e.Client
}

// serve starts a worker for the contract's task queue and a worker for sessions.
func (e *Engine) serve(o Options) error {
	c := e.workerClient()
	w := worker.New(c, e.TaskQueue, workerOptions(MaxActivities))
	workflows.Register(w)
	acts := &activities.Activities{
		Books: e.Books, Artifacts: e.Artifacts, Providers: e.Providers,
		Blueprint: e.stepProviders(o.Blueprints),
		Signals:   e.Client, Logs: artifact.NewLogs(e.dir, e.Artifacts), Agents: e.Agents,
		Withheld: o.withheld(), CacheDir: e.operationsDir(), Self: e.ownEnv(o),
		NoCallRecords: o.NoCallRecords, JournalDir: e.journalDir(),
		Graders: o.Graders,
	}
	if o.Blueprints != nil {
		acts.Runs = e.Runs(o.Blueprints)
	}
	if e.Node() == nil || e.shared != nil {
		acts.Cluster = e.clusterID
	}
	if err := acts.Register(w); err != nil {
		return err
	}
	dispatch := &activities.Dispatch{Workflows: c, TaskQueue: e.TaskQueue, Logger: e.log}
	dispatch.Register(w)
	h, err := e.sessionHost(w, o)
	if err != nil {
		return err
	}
	if err := w.Start(); err != nil {
		if h != nil {
			h.Close()
		}
		return fmt.Errorf("start the worker: %w", err)
	}
	store := &storeWatch{e.registry(), e.store, e.dir, make(chan error, 1)}
	set := &workerSet{w: w, dispatch: dispatch, watch: inBackground(dispatch.Watch), store: store,
		checks: []*background{regularly(storeCheckEvery, store.run)}}
	e.worker.Store(set)
	if o.Remote != nil {
		for _, watch := range e.outageWatches(o.Warn) {
			set.checks = append(set.checks, regularly(probeEvery, watch.run))
		}
	}
	if h != nil {
		set.sessions = startSessions(c, h, e.log)
	}
	return set.serveFlows(e, acts)
}

// ownEnv returns environment variables for steps of flows that run acescope, so that they connect to the same
// server as this process. A codec server must be in the environment or in the configuration.
func (e *Engine) ownEnv(o Options) []string {
	env := []string{"ACESCOPE_DATA_DIR=" + e.dir}
	if o.Remote == nil {
		return append(env, "TEMPORAL_ADDRESS=", "TEMPORAL_PROFILE=")
	}
	for _, v := range [][2]string{{"TEMPORAL_ADDRESS", o.Remote.Address},
		{"TEMPORAL_NAMESPACE", o.Remote.Namespace},
		{"TEMPORAL_PROFILE", o.Remote.Profile}, {"TEMPORAL_API_KEY", o.Remote.APIKey},
		{"ACESCOPE_STORE", o.Store},
		{"ACESCOPE_TASK_QUEUE", o.TaskQueue}} {
		if v[1] != "" {
			env = append(env, v[0]+"="+v[1])
		}
	}
	return env
}

// clusterID returns the id of the cluster, or its address if the cluster denies reading the id.
func (e *Engine) clusterID(ctx context.Context) (string, error) {
	info, err := e.Client.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	if code := serviceerror.ToStatus(err).Code(); code == codes.PermissionDenied ||
		code == codes.Unimplemented {
		return e.Address(), nil
	}
	return info.GetClusterId(), err
}

// sessionHost returns the host of the sessions that this process claims, or nil if it may not
// start agents.
func (e *Engine) sessionHost(w worker.Worker, o Options) (*host.Host, error) {
	if why := o.withheld(); why != "" {
		host.RegisterNoClaim(w, why)
		return nil, nil
	}
	s := o.Sessions
	if o.Agents != nil {
		s.Agents = o.Agents
	}
	s.DataDir = e.dir
	s.Artifacts = e.Artifacts
	s.Workflows = host.Client{Client: e.workerClient()}
	s.Logger = e.log
	h, err := host.New(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", server.ErrDataDir, err)
	}
	h.RegisterClaim(w)
	return h, nil
}

func workerOptions(activities int) worker.Options {
	return worker.Options{
		Identity: fmt.Sprintf("%s%d@%s", ace.WorkerIdentity, os.Getpid(),
			process.Hostname()),
		MaxConcurrentActivityExecutionSize: activities,
		// A step learns about a cancellation in the answer to a heartbeat: do not delay heartbeats.
		MaxHeartbeatThrottleInterval: time.Second,
		WorkerStopTimeout:            300 * time.Millisecond,
		// The dispatcher encodes and decodes 20,000 runs when it continues as new.
		DeadlockDetectionTimeout: 10 * time.Second,
	}
}

// background is a goroutine that runs until it is stopped.
type background struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func inBackground(run func(context.Context)) *background {
	ctx, cancel := context.WithCancel(context.Background())
	b := &background{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		run(ctx)
	}()
	return b
}

// regularly runs a function in the background that acts at each tick.
func regularly(every time.Duration, run func(context.Context, <-chan time.Time)) *background {
	return inBackground(func(ctx context.Context) {
		tick := time.NewTicker(every)
		defer tick.Stop()
		run(ctx, tick.C)
	})
}

// stop stops the goroutine and waits for its end. It may be called on nil.
func (b *background) stop() {
	if b != nil {
		b.cancel()
		<-b.done
	}
}

// startSessions executes the sessions of the data directory as soon as no other process does.
func startSessions(c client.Client, h *host.Host, log *slog.Logger) *background {
	return inBackground(func(ctx context.Context) {
		defer h.Close()
		release, err := h.Lock(ctx)
		if err != nil {
			if ctx.Err() == nil {
				log.Error("this process executes no sessions", "error", err)
			}
			return
		}
		defer release()
		serveSessions(ctx, c, h, log)
	})
}

// startRetry is the interval of attempts to start the session worker.
const startRetry = time.Second

func serveSessions(ctx context.Context, c client.Client, h *host.Host, log *slog.Logger) {
	for {
		w := worker.New(c, h.Queue(), workerOptions(maxSessionActivities))
		h.Register(w)
		err := w.Start()
		if err == nil {
			log.Info("this process executes sessions", "queue", h.Queue())
			<-ctx.Done()
			w.Stop()
			h.Close()
			return
		}
		log.Warn("cannot start the worker of sessions; retrying", "error", err)
		if sleep.For(ctx, startRetry) != nil {
			return
		}
	}
}

// spoolForwarder forwards the records of observers in a spool to their runs.
type spoolForwarder struct {
	to *observe.Temporal
	*background
}

// startForwarder starts to forward the spool, if there is one.
func (e *Engine) startForwarder(o Options) {
	if o.Spool == "" {
		return
	}
	redact := redact.OfProcess().Line
	to := observe.NewTemporal(e.Client, e.TaskQueue, redact, e.log)
	f := &observe.Forwarder{Dir: o.Spool, To: to, Artifacts: e.Artifacts, Redact: redact, Prices: o.Prices,
		Log: e.log}
	e.forwarder = &spoolForwarder{to, inBackground(func(ctx context.Context) {
		if err := f.Run(ctx); err != nil {
			e.log.Error("the spool of observers is not forwarded", "spool", o.Spool, "error", err)
		}
	})}
}

// stop stops the forwarder. Undelivered records stay in the spool. It may be called on nil.
func (s *spoolForwarder) stop() {
	if s == nil {
		return
	}
	s.cancel()
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	s.to.Close(canceled)
	<-s.done
}
