package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/agentrun"
	"acescope/engine/artifact"
	"acescope/engine/codec"
	"acescope/engine/model"
	"acescope/engine/model/agent"
	"acescope/engine/observe"
	"acescope/engine/playbook"
	"acescope/engine/price"
	"acescope/engine/server"
	"acescope/engine/session/host"
)

// What can be wrong with a remote cluster.
var (
	// ErrUnreachable means that it did not answer, or did not let this user in.
	ErrUnreachable = errors.New("cluster unreachable")
	// ErrProfile means that the temporal command's configuration has no such profile, or
	// cannot be read.
	ErrProfile = errors.New("no usable profile")
	// ErrCodec means that a codec server is configured in a way that cannot be used.
	ErrCodec = errors.New("no usable codec server")
)

// Options say which server to use and what to do there.
type Options struct {
	DataDir string
	Version string
	Port    int // of the embedded server, 0: a free one
	// Remote uses a cluster instead of the embedded server.
	Remote *Remote
	// Providers can serve steps here; nil for all that acescope has.
	Providers []model.Provider
	// Blueprints are the programs that can serve steps here; nil for none.
	Blueprints Blueprints
	// Worker serves workflows and activities from this process.
	Worker bool
	// NoRunner leaves out the local runner that a process with Worker runs otherwise.
	NoRunner bool
	// Agents says how agents' command lines are called on this machine.
	Agents map[agentcli.CLI]agentrun.Agent
	// LookOnly makes no directories for artifacts and playbooks on this machine; with
	// Remote and without Worker.
	LookOnly bool
	// Takeover makes this process host when the hosting one dies.
	Takeover bool
	// Codec names the codec server that payloads are read and written through; without an
	// endpoint it is the one of the cluster's profile, if that has one.
	Codec codec.Config
	// Sessions says what agent sessions may do on this machine, where it serves them; only
	// AllowFull, Binaries, MaxWarm, MaxIdle and At are read.
	Sessions host.Options
	// Intercept, where it is set, is called around every call to the server.
	Intercept grpc.UnaryClientInterceptor
	// Spool is the directory from which what observers left is forwarded to its runs, by a
	// process with Worker; "" for none.
	Spool string
	// Redact strikes secrets out of what was observed before it is kept; nil for nothing.
	Redact observe.Redact
	Logger *slog.Logger
}

// Remote names a cluster. Empty fields come from the environment and then from the
// temporal command's profile file.
type Remote struct {
	Address   string
	Namespace string
	Profile   string
	APIKey    string
}

// Mode says whom an engine is connected to, in words for the screen.
type Mode string

// Modes.
const (
	Embedded Mode = "embedded"
	Attached Mode = "attached"
	Cluster  Mode = "remote"
)

// Engine is a connection with what this process does there.
type Engine struct {
	Client    client.Client
	Books     *playbook.Store
	Artifacts *artifact.Store
	Providers []model.Provider
	Codec     *codec.Server // nil for payloads as they are

	Agents *agentrun.Runner

	serving client.Client // of the worker, nil where it shares Client

	node      *server.Node
	worker    *workerSet
	observing *observing
	address   string
	namespace string
	dir       string
	version   string
	log       *slog.Logger
}

// Open connects, starting the embedded server where nobody hosts it.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	e := &Engine{log: o.Logger, Providers: o.Providers, dir: o.DataDir, version: o.Version}
	if err := e.openStores(o); err != nil {
		return nil, err
	}
	e.Agents = agentrun.New(agentrun.Options{DataDir: o.DataDir, Artifacts: e.Artifacts, Agents: o.Agents, Logger: o.Logger})
	if e.Providers == nil {
		e.Providers = Providers(nil, price.Shipped(), os.Getenv)
	}
	if o.Providers == nil || o.Agents != nil {
		e.Providers = slices.Concat(e.Providers, agent.Providers(e.Agents))
	}
	if err := checkSpace(o.DataDir); err != nil {
		return nil, err
	}
	if err := e.connect(ctx, o); err != nil {
		e.closeQuietly()
		return nil, err
	}
	if o.Worker {
		if err := e.serve(sessionsOf(o), o.Blueprints); err != nil {
			e.closeQuietly()
			return nil, err
		}
		if !o.NoRunner {
			e.worker.runner = e.startRunner()
		}
		e.forward(o.Spool, o.Redact)
	}
	return e, nil
}

func (e *Engine) openStores(o Options) error {
	artifacts, books := filepath.Join(o.DataDir, "artifacts"), filepath.Join(o.DataDir, "playbooks")
	if o.LookOnly && o.Remote != nil && !o.Worker {
		e.Artifacts, e.Books = artifact.Look(artifacts), playbook.LookStore(books)
		return nil
	}
	var err error
	if e.Artifacts, err = artifact.Open(artifacts); err != nil {
		return fmt.Errorf("%w: %w", server.ErrDataDir, err)
	}
	if e.Books, err = playbook.OpenStore(books); err != nil {
		return fmt.Errorf("%w: %w", server.ErrDataDir, err)
	}
	return nil
}

func (e *Engine) connect(ctx context.Context, o Options) error {
	if o.Remote != nil {
		return e.dialRemote(ctx, *o.Remote, o)
	}
	var err error
	if e.Codec, err = codecServer(o.Codec, nil); err != nil {
		return err
	}
	node, err := server.Join(ctx, server.Options{Dir: o.DataDir, Port: o.Port, Version: o.Version,
		NoTakeover: !o.Takeover, Logger: o.Logger})
	if err != nil {
		return err
	}
	e.node, e.namespace = node, ace.DefaultNamespace
	if o.Takeover || node.Role() == server.Hosting {
		tuneGC() // a command that only looks stays small
	}
	opts := node.ClientOptions()
	opts.Logger = sdklog.NewStructuredLogger(e.log)
	return e.dial(ctx, opts, o)
}

func (e *Engine) dialRemote(ctx context.Context, r Remote, o Options) error {
	profile, err := r.profile()
	if err != nil {
		return err
	}
	opts, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return fmt.Errorf("%w %q in the temporal command's configuration: %w", ErrProfile, r.Profile, err)
	}
	if r.Address != "" {
		opts.HostPort = r.Address
	}
	if r.Namespace != "" {
		opts.Namespace = r.Namespace
	}
	if opts.Namespace == "" {
		opts.Namespace = ace.DefaultNamespace
	}
	if r.APIKey != "" {
		opts.Credentials = client.NewAPIKeyStaticCredentials(r.APIKey)
	}
	opts.Logger = sdklog.NewStructuredLogger(e.log)
	e.address, e.namespace = opts.HostPort, opts.Namespace
	o.Codec.Namespace = opts.Namespace
	if e.Codec, err = codecServer(o.Codec, &profile); err != nil {
		return err
	}
	if err := e.dial(ctx, opts, o); err != nil {
		return fmt.Errorf("%w: %s: %w; %s", ErrUnreachable, opts.HostPort, err, adviceFor(err))
	}
	return nil
}

func adviceFor(err error) string {
	var denied *serviceerror.PermissionDenied
	if errors.As(err, &denied) || status.Code(err) == codes.Unauthenticated {
		return "give its API key or token: --api-key, TEMPORAL_API_KEY or TEMPORAL_GRPC_META_AUTHORIZATION"
	}
	return "check --address and that the cluster runs"
}

// Mode says whom the engine is connected to. It can change from Attached to Embedded.
func (e *Engine) Mode() Mode {
	switch {
	case e.node == nil:
		return Cluster
	case e.node.Role() == server.Hosting:
		return Embedded
	}
	return Attached
}

// Address is the server's host and port.
func (e *Engine) Address() string {
	if e.node != nil {
		return e.node.Endpoint().Address
	}
	return e.address
}

// DataDir is where this process keeps artifacts and playbooks.
func (e *Engine) DataDir() string { return e.dir }

// Namespace is the Temporal namespace in use.
func (e *Engine) Namespace() string { return e.namespace }

// Serves tells whether this process works on runs.
func (e *Engine) Serves() bool { return e.worker != nil }

// Node is this process's part in the embedded server, nil for a cluster.
func (e *Engine) Node() *server.Node { return e.node }

// Close stops serving, leaves or stops the server, and waits for both within ctx. Steps
// that are under way are given up and go on at the next worker.
func (e *Engine) Close(ctx context.Context) error {
	e.observing.stop()
	if e.worker != nil {
		e.worker.stop()
	}
	for _, c := range []client.Client{e.serving, e.Client} {
		if c != nil {
			c.Close()
		}
	}
	if e.node != nil {
		return e.node.Close(ctx)
	}
	return nil
}

func (e *Engine) closeQuietly() {
	if err := e.Close(context.Background()); err != nil {
		e.log.Warn("close after a failed start", "error", err)
	}
}
