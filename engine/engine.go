// Package engine connects to a Temporal server (embedded in this process, in another process, or a
// cluster), runs the workers there, and starts and controls runs. It may import every engine
// package; only cmd imports it.
//
// Order and loss are those of Temporal: the result of a finished step survives any crash. Bounds:
// an engine executes at most [MaxActivities] steps at a time.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
	"acescope/engine/agents/session/host"
	"acescope/engine/internal/memory"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/agent"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/prompts"
	"acescope/engine/store/artifact"
	"acescope/engine/store/bucket"
	_ "acescope/engine/store/bucket/drivers"
	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/server"
)

// Errors of connecting to a cluster.
var (
	// ErrUnreachable means that the cluster did not answer or denied access.
	ErrUnreachable = errors.New("cluster unreachable")
	// ErrProfile means that the temporal command's configuration lacks the profile, or that the configuration
	// or the environment is invalid.
	ErrProfile = errors.New("wrong connection settings")
	// ErrCodec means that the configuration of the codec server is invalid.
	ErrCodec = errors.New("no usable codec server")
)

// Options configure an engine.
type Options struct {
	DataDir string
	Version string
	Port    int // of the embedded server, 0 for a free port
	// Remote selects a cluster instead of the embedded server.
	Remote *Remote
	// Store is the URL of the store to register for the cluster's namespace; "" uses the registered store.
	// See [bucket.Open]. It must not contain secrets.
	Store string
	// TaskQueue is the task queue of acescope's runs and workers; "" for [ace.TaskQueue].
	TaskQueue string
	// Providers are the step providers of this process; nil for all built-in ones.
	Providers []model.Provider
	// Blueprints are the programs that can execute steps; may be nil.
	Blueprints Blueprints
	// Graders are the programs of this machine that grade answers, by name.
	Graders map[string]grade.Program
	// Worker executes workflows and activities in this process.
	Worker bool
	// NoRunner omits the local runner of a process with Worker on a data directory.
	NoRunner bool
	// Runner is the name of the runner that a process with Worker starts on a cluster; "" for none.
	// Every user who may start workflows there can then start programs on this machine.
	Runner string
	// HostAgents lets the workflows of a cluster start agents on this machine: sessions with their tools, and
	// calls of agent CLIs. The workflows of a data directory always may.
	HostAgents bool
	// Agents configures the agent CLIs on this machine.
	Agents map[agentcli.CLI]agentcall.Agent
	// LookOnly creates no directories for artifacts and playbooks. It requires Remote and excludes
	// Worker.
	LookOnly bool
	// ReadOnly executes no runs and refuses every call that changes something. It needs LookOnly.
	ReadOnly bool
	// Key confirms a data directory whose database this process creates. On any other one, Open executes runs
	// only if Key has confirmed it before, or Trust confirms it now: without, it fails with a
	// [*server.Unconfirmed], or with LookOnly starts no workers. A nil Key confirms every directory.
	Key   server.Key
	Trust bool
	// Takeover makes this process the host as soon as the current host ends. Processes without Takeover first
	// wait a second for a process with it.
	Takeover bool
	// Codec configures the codec server for payloads. Without an endpoint, the cluster's profile
	// decides.
	Codec codec.Config
	// Sessions configures agent sessions on this machine; only Agents, MaxWarm,
	// MaxIdle and At are read.
	Sessions host.Options
	// Intercept, if set, intercepts every call to the server.
	Intercept grpc.UnaryClientInterceptor
	// Spool is the directory of observers' records that a process with Worker forwards to their
	// runs; may be "".
	Spool string
	// Prices holds the prices of models in the transcripts of observed runs; nil for list prices.
	Prices *price.Prices
	// NoCallRecords disables the records of requests to models.
	NoCallRecords bool
	// Metrics receives the metrics of Temporal's SDK in this process; may be nil.
	Metrics prometheus.Registerer
	Logger  *slog.Logger
	// Warn receives a line when the cluster or its store is unavailable for some seconds, when it is
	// available again, and when the runner fails, if this process executes runs; may be nil. The lines are
	// logged too.
	Warn func(line string)
}

// Remote identifies a cluster. Defaults come from the environment, then from the temporal command's
// profile file.
type Remote struct {
	Address   string
	Namespace string
	Profile   string
	APIKey    string
}

// Mode is the kind of server that an engine is connected to.
type Mode string

// Modes.
const (
	Embedded Mode = "embedded"
	Attached Mode = "attached"
	Cluster  Mode = "remote"
)

// ErrReadOnly means that a process in read-only mode would have to change something.
var ErrReadOnly = errors.New("this changes something or executes runs, which read-only mode (--read-only, " +
	"$ACESCOPE_READ_ONLY or read_only) refuses")

// Engine is a connection to a Temporal server with the workers of this process.
type Engine struct {
	Sessions
	Forks
	RunnerActions
	Client    client.Client
	Books     *playbook.Store
	Artifacts *artifact.Store
	Prompts   *prompts.Store // of phases
	Providers []model.Provider
	Codec     *codec.Server // may be nil
	TaskQueue string

	Agents *agentcall.Runner

	serving client.Client // of workers, nil if they share Client

	shared    bucket.Bucket // nil without a shared store
	store     registration  // of shared
	options   Options
	withheld  error                     // see Withheld
	node      *server.Node              // nil for a cluster
	worker    atomic.Pointer[workerSet] // nil without Worker
	memory    *memory.Keeper            // nil for short commands
	forwarder *spoolForwarder
	address   string
	namespace string
	dir       string
	version   string
	log       *slog.Logger
}

// Open connects to the server. It starts the embedded server if no process hosts it.
func Open(ctx context.Context, o Options) (*Engine, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.NewTextHandler(io.Discard, nil)))
	e := &Engine{log: o.Logger, Providers: o.Providers, TaskQueue: cmp.Or(o.TaskQueue, ace.TaskQueue),
		dir: o.DataDir, version: o.Version, options: o}
	e.Sessions.e = e
	e.Forks.e = e
	e.RunnerActions.e = e
	if err := checkSpace(o.DataDir); err != nil {
		return nil, err
	}
	err := e.checkTrust(o)
	if err == nil {
		err = e.connect(ctx, o)
	}
	if err == nil && (o.Takeover || o.LookOnly || e.Mode() == Embedded) { // short commands keep the defaults
		e.memory = memory.Keep()
	}
	if err == nil {
		err = e.openSharedStores(ctx, o)
	}
	if err != nil {
		e.closeQuietly()
		return nil, err
	}
	e.Agents = agentcall.New(agentcall.Options{DataDir: o.DataDir, Artifacts: e.Artifacts, Agents: o.Agents,
		Withheld: o.withheld(), Logger: o.Logger})
	if e.Providers == nil {
		e.Providers = Providers(nil, price.Shipped(), os.Getenv)
	}
	if o.Providers == nil || o.Agents != nil {
		e.Providers = slices.Concat(e.Providers, agent.Providers(e.Agents))
	}
	if o.Worker && e.withheld == nil {
		if err := e.startWorkers(o); err != nil {
			e.closeQuietly()
			return nil, err
		}
	}
	return e, nil
}

// checkTrust sets why this process must not execute runs, or returns it if it was to do so.
func (e *Engine) checkTrust(o Options) error {
	switch {
	case o.ReadOnly && !o.LookOnly:
		return ErrReadOnly
	case o.Remote == nil:
		e.withheld = server.CheckTrust(o.DataDir, o.Key)
	}
	switch {
	case o.ReadOnly:
		e.withheld = cmp.Or(e.withheld, ErrReadOnly)
	case e.withheld != nil && o.Trust:
		e.withheld = nil
		if err := server.Confirm(o.DataDir, o.Key); err != nil {
			o.Logger.Warn("the data directory is trusted this time only", "error", err)
		}
	case o.Worker && !o.LookOnly:
		return e.withheld
	}
	return nil
}

// Withheld returns why Open started no workers even if it was to do so: [ErrReadOnly], or the
// [*server.Unconfirmed] of a data directory.
func (e *Engine) Withheld() error { return e.withheld }

// Confirm records that the user trusts the data directory, and starts the workers that Open has withheld. An
// error of the record does not prevent that. Confirm must return before Close is called.
func (e *Engine) Confirm() error {
	return errors.Join(server.Confirm(e.dir, e.options.Key), e.startWorkers(e.options))
}

func (e *Engine) startWorkers(o Options) error {
	if err := e.serve(o); err != nil {
		return err
	}
	e.worker.Load().runner = e.startRunner(o)
	e.startForwarder(o)
	return nil
}

// withheld returns why this process starts no agents, or "".
func (o Options) withheld() string {
	if o.Remote == nil || o.HostAgents {
		return ""
	}
	return "this process starts no agents for a cluster; start a worker with \"acescope serve --host-agents\" " +
		"where they may run"
}

// openStores opens the artifacts, playbooks and phase prompts in a directory, which is the cache of a shared
// store if there is one.
func (e *Engine) openStores(ctx context.Context, o Options, dir string) (err error) {
	artifacts := filepath.Join(dir, "artifacts")
	books := filepath.Join(dir, "playbooks")
	if o.LookOnly && o.Remote != nil && !o.Worker && e.shared == nil {
		e.Artifacts = artifact.OpenReadOnly(artifacts)
		e.Books = playbook.OpenStoreReadOnly(books)
		e.Prompts, err = prompts.OpenDirReadOnly(ctx, dir, e.Artifacts)
		return err
	}
	if _, err := server.OpenDir(o.DataDir, o.Version); err != nil {
		return err
	}
	if e.Artifacts, err = artifact.OpenShared(artifacts, e.shared); err != nil {
		return fmt.Errorf("%w: %w", server.ErrDataDir, err)
	}
	if e.Books, err = playbook.OpenShared(books, e.shared, e.namespace); err != nil {
		return fmt.Errorf("%w: %w", server.ErrDataDir, err)
	}
	if e.shared != nil {
		e.Prompts = prompts.Open(e.shared, e.namespace, e.Artifacts)
		return nil
	}
	if e.Prompts, err = prompts.OpenDir(ctx, dir, e.Artifacts); err != nil {
		return fmt.Errorf("%w: %w", server.ErrDataDir, err)
	}
	return nil
}

// Mode returns the kind of server. It can change from Attached to Embedded.
func (e *Engine) Mode() Mode {
	switch {
	case e.node == nil:
		return Cluster
	case e.node.Role() == server.Hosting:
		return Embedded
	}
	return Attached
}

// Address returns the server's host and port.
func (e *Engine) Address() string {
	if e.node != nil {
		return e.node.Endpoint().Address
	}
	return e.address
}

// DataDir returns the directory of artifacts and playbooks.
func (e *Engine) DataDir() string { return e.dir }

// Namespace returns the Temporal namespace.
func (e *Engine) Namespace() string { return e.namespace }

// Serves reports whether this process executes runs.
func (e *Engine) Serves() bool { return e.worker.Load() != nil }

// Node returns this process's part of the embedded server, or nil for a cluster.
func (e *Engine) Node() *server.Node { return e.node }

// Close stops the workers, leaves or stops the server, and waits for both until ctx ends. Open steps
// are abandoned and continue on the next worker. After an error, parts of the engine may still be
// ending.
func (e *Engine) Close(ctx context.Context) error {
	closed := make(chan error, 1)
	go func() { closed <- e.close(ctx) }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("close the engine: %w", ctx.Err())
	}
}

func (e *Engine) close(ctx context.Context) error {
	e.memory.Stop()
	e.forwarder.stop()
	if w := e.worker.Load(); w != nil {
		w.stop()
	}
	for _, c := range []client.Client{e.serving, e.Client} {
		if c != nil {
			c.Close()
		}
	}
	var err error
	if e.shared != nil {
		err = e.shared.Close()
	}
	if e.node != nil {
		err = errors.Join(err, e.node.Close(ctx))
	}
	return err
}

func (e *Engine) closeQuietly() {
	if err := e.Close(context.Background()); err != nil {
		e.log.Warn("close after a failed start", "error", err)
	}
}
