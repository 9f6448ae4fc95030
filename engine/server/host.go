package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"acescope/engine/ace"
)

// startAttempts bounds how often a start is tried again because another program took
// one of the chosen ports in between.
const startAttempts = 3

// stopTimeout bounds the wait for a server that does not come to an end. Should it
// still write later, the next host's shard lease makes the database refuse it.
const stopTimeout = 10 * time.Second

// errPortLost means that a port was free when it was chosen and taken when the server
// wanted it.
var errPortLost = errors.New("a chosen port was taken")

// host is a running server. Who has one holds the host lock.
type host struct {
	dir      string
	server   temporal.Server
	log      *serverLog
	endpoint Endpoint
}

// startHost starts a server on a directory whose lock the caller holds, and returns
// when it has answered a call.
func startHost(ctx context.Context, dir, token string, opts Options) (*host, error) {
	if err := stamp(dir, opts.Version); err != nil {
		return nil, err
	}
	sql := sqlConfig(dir)
	if err := createDatabase(dir, sql); err != nil {
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
	if err := errors.Join(keepPort(dir, h.endpoint.Port()), h.endpoint.write(dir)); err != nil {
		h.stop()
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
	h := &host{dir: dir, log: openLog(dir), endpoint: newEndpoint(p.frontend, opts.Version)}
	door := newGate(token)
	err = h.start(
		temporal.WithConfig(serverConfig(sql, p)),
		temporal.ForServices(append([]string{"internal-frontend"}, temporal.DefaultServices...)),
		temporal.WithStaticHosts(staticHosts(p)),
		temporal.WithLogger(h.log),
		temporal.WithAuthorizer(door),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return door }),
		temporal.WithTLSConfigFactory(internode),
		temporal.WithDynamicConfigClient(dynamicConfig()),
		temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler),
	)
	if err == nil {
		err = awaitAnswer(ctx, h.endpoint.Address, token)
	}
	if err == nil {
		err = addAttributes(ctx, h.endpoint.Address, token)
	}
	if err != nil {
		h.stop()
		return nil, h.startError(err)
	}
	return h, nil
}

// start builds the server and starts it, in a goroutine of its own: a fatal log line
// ends that, or comes out as a panic where the server's code does not expect an end.
func (h *host) start(options ...temporal.ServerOption) error {
	done := make(chan error, 1)
	go func() {
		result := errors.New("it gave up")
		defer func() {
			if r := recover(); r != nil {
				result = fmt.Errorf("it panicked: %v", r)
			}
			done <- result
		}()
		server, err := temporal.NewServer(options...)
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
	if text := h.log.fatalText(); text != "" {
		why = text
		if strings.Contains(text, "listener") {
			err = errPortLost
		}
	}
	return failf(ErrStart, err, "the embedded Temporal server failed to start: %s (log: %s)", why, h.log.path())
}

// stop ends the server: calls in flight get a second, then the services go in order.
func (h *host) stop() {
	h.log.quiet()
	h.endpoint.remove(h.dir)
	if h.server == nil {
		h.log.close()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.server.Stop()
	}()
	select {
	case <-done:
		h.log.close()
	case <-time.After(stopTimeout):
	}
}

// awaitAnswer returns when the server has described the namespace.
func awaitAnswer(ctx context.Context, address, token string) error {
	conn, err := connect(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	frontend := workflowservice.NewWorkflowServiceClient(conn)
	ctx = authorized(ctx, token)
	for {
		_, err := frontend.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: ace.DefaultNamespace})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer from %s: %w", address, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func connect(address string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(quickReconnect))
}

func authorized(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", bearer+token)
}
