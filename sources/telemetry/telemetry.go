package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"acescope/engine/ace"
	"acescope/sources/cluster"
)

// Options say what is exported.
type Options struct {
	Metrics string // address to listen on, see [CheckMetrics]; "" or [Off] for no metrics
	OTLP    string // [On], [Off], "" or the URL of a collector
	Version string
	Getenv  func(string) string
}

// Telemetry exports the closed runs of a namespace.
type Telemetry struct {
	options  Options
	listener net.Listener // nil without metrics
	registry *prometheus.Registry
	cancel   context.CancelFunc
	tasks    sync.WaitGroup
}

// New listens for scrapes, so that an address in use is an error before anything else starts. The result is
// nil if nothing is to be exported.
func New(o Options) (*Telemetry, error) {
	t := &Telemetry{options: o, cancel: func() {}}
	if !enabled(o.Metrics) && !enabled(o.OTLP) {
		return nil, nil
	}
	if enabled(o.OTLP) {
		if _, err := otlpClient(o.OTLP, o.Getenv); err != nil {
			return nil, err
		}
	}
	if enabled(o.Metrics) {
		address, err := metricsAddress(o.Metrics)
		if err != nil {
			return nil, err
		}
		if t.listener, err = net.Listen("tcp", address); err != nil {
			return nil, fmt.Errorf("metrics cannot be served: %w; choose another address with --metrics", err)
		}
		t.registry = prometheus.NewRegistry()
	}
	return t, nil
}

func enabled(setting string) bool { return setting != "" && setting != Off }

// CheckMetrics checks a value of the setting metrics: HOST:PORT, or PORT on the loopback interface, or off.
func CheckMetrics(value string) error {
	if !enabled(value) {
		return nil
	}
	_, err := metricsAddress(value)
	return err
}

// metricsAddress returns the address to listen on. Without a host it is on the loopback interface.
func metricsAddress(value string) (string, error) {
	if !strings.Contains(value, ":") {
		value = ":" + value
	}
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return "", fmt.Errorf(`%q must be HOST:PORT or off, such as "127.0.0.1:9464"`, value)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return "", fmt.Errorf("%q is not a port; use HOST:PORT or off, such as \"127.0.0.1:9464\"", port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

const metricsPath = "/metrics"

// Registerer takes further metrics for the same page. It is nil without metrics, also if t is nil.
func (t *Telemetry) Registerer() prometheus.Registerer {
	if t == nil || t.registry == nil {
		return nil
	}
	return t.registry
}

// Address returns the URL of the metrics, or "" without metrics.
func (t *Telemetry) Address() string {
	if t == nil || t.listener == nil {
		return ""
	}
	return "http://" + t.listener.Addr().String() + metricsPath
}

// Source is the namespace whose runs are exported.
type Source struct {
	cluster.Deps
	Address string // of the server, which names the position; "" for the embedded one
	// Save replaces a file atomically.
	Save func(path string, data []byte) error
	Log  *slog.Logger
}

// Start exports until Close. It may be called on nil.
func (t *Telemetry) Start(s Source) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	file := filepath.Join(s.DataDir, "telemetry", ace.FileName(s.Address+"/"+s.Namespace)+".json")
	start, err := loadPosition(file, time.Now())
	if err != nil {
		s.Log.Warn("telemetry", "error", err)
	}
	r := &reader{deps: s.Deps, position: start, log: s.Log, failures: newFailures(s.Log)}
	r.save = func() error {
		data, err := json.Marshal(r.position)
		if err != nil {
			return err
		}
		return s.Save(file, data)
	}
	if t.listener != nil {
		r.metrics = newMetrics(t.registry, s.Namespace, t.options.Version)
		t.serve(ctx, s.Log)
		t.tasks.Go(func() { r.metrics.watch(ctx, s.Deps) })
	}
	x, err := t.newExporter(ctx, r.metrics, s.Log)
	if err != nil {
		cancel()
		return err
	}
	r.export = func(c *record) {
		if r.metrics != nil {
			r.metrics.add(c)
		}
		if x != nil {
			x.add(c.Spans())
		}
	}
	reading := make(chan struct{})
	t.tasks.Go(func() {
		defer close(reading)
		r.run(ctx)
	})
	if x != nil {
		sending, stop := context.WithCancel(context.Background())
		t.tasks.Go(func() {
			<-reading
			stop()
		})
		t.tasks.Go(func() { x.run(sending) })
	}
	t.cancel = cancel
	return nil
}

// newExporter returns the exporter of traces, or nil without traces.
func (t *Telemetry) newExporter(ctx context.Context, m *Metrics, log *slog.Logger) (*exporter, error) {
	if !enabled(t.options.OTLP) {
		return nil, nil
	}
	client, err := otlpClient(t.options.OTLP, t.options.Getenv)
	if err != nil {
		return nil, err
	}
	resource, err := newResource(ctx, t.options.Version)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, fmt.Errorf("OTLP: %w", err)
	}
	return &exporter{client: client, resource: resource, metrics: m, failures: newFailures(log),
		scope: &commonpb.InstrumentationScope{Name: "acescope", Version: t.options.Version},
		queue: newSpanQueue(), pause: firstPause}, nil
}

// scrapeTimeout bounds a scrape.
const scrapeTimeout = 10 * time.Second

// serve answers scrapes until ctx ends.
func (t *Telemetry) serve(ctx context.Context, log *slog.Logger) {
	mux := http.NewServeMux()
	options := promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Timeout: scrapeTimeout,
		EnableOpenMetrics: true}
	mux.Handle("GET "+metricsPath, promhttp.HandlerFor(t.registry, options))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: scrapeTimeout, WriteTimeout: 2 * scrapeTimeout}
	t.tasks.Go(func() {
		if err := server.Serve(t.listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("metrics are no longer served", "error", err)
		}
	})
	t.tasks.Go(func() {
		<-ctx.Done()
		_ = server.Close() // an interrupted scrape is repeated
	})
}

// Close exports the runs that closed last, if the server and the collector answer within a few seconds, and
// stops. It may be called on nil, and without Start.
func (t *Telemetry) Close() {
	if t == nil {
		return
	}
	t.cancel()
	t.tasks.Wait()
	if t.listener != nil {
		_ = t.listener.Close() // it is closed unless Start was not called
	}
}
