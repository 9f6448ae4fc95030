package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"gopkg.in/natefinch/lumberjack.v2"

	"acescope/engine/ace"
)

// startAttempts bounds the attempts to start when another program takes a chosen port.
const startAttempts = 3

// stopTimeout bounds the wait for the server to stop. If it writes later, the next host's
// shard lease makes the database reject the write.
const stopTimeout = 10 * time.Second

// errPortLost means that another program took a port after it was chosen.
var errPortLost = errors.New("a chosen port was taken")

// host is a running server. Its owner holds the host lock.
type host struct {
	dir      string
	server   temporal.Server
	log      *serverLog
	endpoint Endpoint
}

// startHost starts a server on a directory whose lock the caller holds. It returns when the
// server has answered a call.
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
	if err := errors.Join(keepPort(dir, h.endpoint.Port()), writeJSON(dir, endpointFile, h.endpoint)); err != nil {
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
	h := &host{dir: dir, log: openLog(dir), endpoint: newEndpoint(p[primitives.FrontendService], opts.Version)}
	auth := newTokenAuth(token)
	err = h.start(
		temporal.WithConfig(serverConfig(sql, p)),
		temporal.ForServices(append([]string{"internal-frontend"}, temporal.DefaultServices...)),
		temporal.WithStaticHosts(staticHosts(p)),
		temporal.WithLogger(h.log),
		temporal.WithAuthorizer(auth),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return auth }),
		temporal.WithTLSConfigFactory(internode),
		temporal.WithDynamicConfigClient(dynamicConfig()),
		temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler),
	)
	if err == nil {
		err = awaitReady(ctx, h.endpoint.Address, token)
	}
	if err != nil {
		h.stop()
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

// stop stops the server: calls in flight get a second, then the services stop in order.
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

// awaitReady waits until the server describes the namespace and knows all search attributes.
func awaitReady(ctx context.Context, address, token string) error {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(quickReconnect))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", bearer+token)
	frontend := workflowservice.NewWorkflowServiceClient(conn)
	missing, err := missingAttributes(ctx, frontend)
	for err != nil {
		if pause(ctx, 2*time.Millisecond) != nil {
			return fmt.Errorf("no answer from %s: %w", address, err)
		}
		missing, err = missingAttributes(ctx, frontend)
	}
	if len(missing) == 0 {
		return nil
	}
	return addAttributes(ctx, conn, missing)
}

// addAttributes adds search attributes that are missing because an older version created the
// database. It waits until the server accepts them, which takes up to two seconds.
func addAttributes(ctx context.Context, conn *grpc.ClientConn, missing []string) error {
	_, err := operatorservice.NewOperatorServiceClient(conn).AddSearchAttributes(ctx,
		&operatorservice.AddSearchAttributesRequest{
			Namespace: ace.DefaultNamespace, SearchAttributes: keywords(missing),
		})
	if err != nil {
		return fmt.Errorf("add the search attributes %v: %w", missing, err)
	}
	for {
		err := acceptsAttributes(ctx, workflowservice.NewWorkflowServiceClient(conn), missing)
		if err == nil {
			return nil
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("the search attributes %v were added but are not accepted: %w", missing, err)
		}
	}
}

func missingAttributes(ctx context.Context, c workflowservice.WorkflowServiceClient) ([]string, error) {
	r, err := c.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: ace.DefaultNamespace})
	if err != nil {
		return nil, err
	}
	known := slices.Collect(maps.Values(r.GetConfig().GetCustomSearchAttributeAliases()))
	return slices.DeleteFunc(ace.SearchAttributes(), func(name string) bool {
		return slices.Contains(known, name)
	}), nil
}

// acceptsAttributes makes a query that fails unless the server knows the attributes.
func acceptsAttributes(ctx context.Context, c workflowservice.WorkflowServiceClient, names []string) error {
	query := strings.Join(names, ` = "" AND `) + ` = ""`
	_, err := c.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: ace.DefaultNamespace, Query: query,
	})
	return err
}

// serverLog is the Temporal server's log: JSON lines of level warn and above in
// logs/server.log, three old files of 10 MB at most, nothing on the terminal.
type serverLog struct {
	log.Logger
	level zap.AtomicLevel
	file  *lumberjack.Logger
	fatal atomic.Pointer[string]
}

func openLog(dir string) *serverLog {
	l := &serverLog{
		level: zap.NewAtomicLevelAt(zap.WarnLevel),
		file: &lumberjack.Logger{
			Filename: filepath.Join(dir, logDir, logFile), MaxSize: 10, MaxBackups: 3,
		},
	}
	encoder := zapcore.NewJSONEncoder(log.DefaultZapEncoderConfig)
	// Errors writing the log, as on a full disk, must not appear on the terminal.
	core := zapcore.NewCore(encoder, zapcore.AddSync(l.file), l.level)
	l.Logger = log.NewZapLogger(zap.New(core, zap.WithFatalHook(l), zap.ErrorOutput(zapcore.AddSync(io.Discard))))
	return l
}

// OnWrite is called after a fatal line. Instead of ending the process, as the server would, it
// ends only the goroutine and keeps the first fatal line as the reason of the failure.
func (l *serverLog) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	text := entry.Message
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			text += ": " + err.Error()
		}
	}
	l.fatal.CompareAndSwap(nil, &text)
	runtime.Goexit()
}

func (l *serverLog) fatalText() string {
	if text := l.fatal.Load(); text != nil {
		return *text
	}
	return ""
}

// quiet drops the errors that services log about each other while they stop.
func (l *serverLog) quiet() { l.level.SetLevel(zap.FatalLevel) }

func (l *serverLog) close() { l.file.Close() }

func (l *serverLog) path() string { return l.file.Filename }
