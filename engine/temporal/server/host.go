package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"acescope/engine/ace"
	"acescope/engine/internal/sleep"
	"acescope/engine/temporal/searchattr"
)

// startAttempts bounds the attempts to start when another program takes a chosen port.
const startAttempts = 3

// errPortLost means that another program took a port after it was chosen.
var errPortLost = errors.New("a chosen port was taken")

// host is a running server. Its owner holds the host lock.
type host struct {
	dir      string
	token    string
	server   temporal.Server
	log      *serverLog
	clock    *hostClock
	conn     *grpc.ClientConn // to itself
	endpoint Endpoint
	files    map[string]fs.FileInfo // files by path that must stay the same
	stopOnce sync.Once
	stopped  chan struct{} // closed when the server has stopped
}

// startHost starts a server on a directory whose lock the caller holds. It returns when the
// server has answered a call.
func startHost(ctx context.Context, dir, token string, opts Options) (*host, error) {
	if err := stamp(dir, opts.Version); err != nil {
		return nil, err
	}
	sql := sqlConfig(dir)
	if err := createDatabase(dir, sql, opts.Key); err != nil {
		return nil, err
	}
	var h *host
	var err error
	for range startAttempts {
		var p ports
		if p, err = choosePorts(opts.Port, readPort(dir)); err != nil {
			return nil, err
		}
		h, err = startOn(ctx, dir, token, sql, p, opts)
		if !errors.Is(err, errPortLost) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	err = errors.Join(h.identify(dir, filepath.Join(dir, databaseFile)), keepPort(dir, h.endpoint.Port()),
		h.keepFiles())
	if err != nil {
		h.stop(opts.stopTimeout)
		return nil, err
	}
	return h, nil
}

func startOn(
	ctx context.Context, dir, token string, sql *config.SQL, p ports, opts Options,
) (*host, error) {
	internode, err := internodeTLS()
	if err != nil {
		return nil, err
	}
	h := &host{dir: dir, token: token, clock: newHostClock(opts.wall, opts.last), log: openLog(dir),
		endpoint: newEndpoint(p[primitives.FrontendService], opts.Version), stopped: make(chan struct{})}
	h.endpoint.Clock = h.clock.noticed
	auth := &tokenAuth{want: sha256.Sum256([]byte(token))}
	err = h.start(
		temporal.WithConfig(serverConfig(sql, p)),
		temporal.ForServices(append([]string{"internal-frontend"}, temporal.DefaultServices...)),
		temporal.WithStaticHosts(staticHosts(p)),
		temporal.WithLogger(h.log),
		temporal.WithAuthorizer(auth),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return auth }),
		temporal.WithChainedFrontendGrpcInterceptors(proveIdentity(token, h.endpoint)),
		temporal.WithTLSConfigFactory(internode),
		temporal.WithDynamicConfigClient(dynamicConfig),
		temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler),
	)
	if err == nil {
		err = h.awaitReady(ctx)
	}
	if err != nil {
		h.stop(opts.stopTimeout)
		return nil, h.startError(err)
	}
	return h, nil
}

// start creates and starts the server in a separate goroutine, because a fatal log line ends
// the goroutine or panics.
func (h *host) start(options ...temporal.ServerOption) error {
	done := make(chan error, 1)
	go func() {
		result := errors.New("it exited")
		defer func() {
			if r := recover(); r != nil {
				result = fmt.Errorf("it panicked: %v", r)
			}
			done <- result
		}()
		server, err := temporal.NewServerFx(module(h.clock), options...)
		if err != nil {
			result = err
			return
		}
		h.server = server
		result = server.Start()
	}()
	return <-done
}

func (h *host) startError(err error) error {
	why := err.Error()
	if text := h.log.why(); text != "" {
		why = text
		if strings.Contains(text, "listener") {
			err = errPortLost
		}
	}
	if err := storageError(h.dir, why); err != nil {
		return err
	}
	return failf(ErrStart, err, "the embedded Temporal server failed to start: %s (log: %s)", why,
		h.log.path())
}

// stop stops the server: calls in flight get a second, then the services stop in order. It returns
// false if the server has not stopped in time, in which case it may still write. Further calls wait for
// the first.
func (h *host) stop(timeout time.Duration) bool {
	h.stopOnce.Do(func() {
		h.log.quiet()
		h.endpoint.remove(h.dir)
		close(h.clock.done)
		go func() {
			defer close(h.stopped)
			if h.conn != nil {
				_ = h.conn.Close()
			}
			if h.server != nil {
				_ = h.server.Stop()
			}
			h.log.file.Close()
		}()
	})
	select {
	case <-h.stopped:
		return true
	case <-time.After(timeout):
		return false
	}
}

// awaitReady waits until the server describes the namespace and knows all search attributes. It does not
// wait for a server that reported that it is broken.
func (h *host) awaitReady(ctx context.Context) (err error) {
	if h.conn, err = connect(h.endpoint.Address); err != nil {
		return err
	}
	ctx = h.authorize(ctx)
	frontend := workflowservice.NewWorkflowServiceClient(h.conn)
	gap, err := searchattr.ReadGap(ctx, frontend, ace.DefaultNamespace)
	for err != nil {
		select {
		case <-h.log.broken:
			return err
		default:
		}
		if sleep.For(ctx, 2*time.Millisecond) != nil {
			return fmt.Errorf("no answer from %s: %w", h.endpoint.Address, err)
		}
		gap, err = searchattr.ReadGap(ctx, frontend, ace.DefaultNamespace)
	}
	if len(gap.Missing) == 0 {
		return nil
	}
	// An older version created the database.
	return searchattr.Add(ctx, frontend, operatorservice.NewOperatorServiceClient(h.conn),
		ace.DefaultNamespace,
		gap.Missing)
}

func (h *host) authorize(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", bearer+h.token)
}
