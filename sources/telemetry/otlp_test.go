package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// collector is a client that answers with errors until none are left.
type collector struct {
	mu     sync.Mutex
	errors []error
	got    int
	news   chan int // the number of spans so far
}

func (*collector) Start(context.Context) error { return nil }
func (*collector) Stop(context.Context) error  { return nil }

func (c *collector) UploadTraces(_ context.Context, batch []*tracepb.ResourceSpans) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.errors) > 0 {
		err := c.errors[0]
		c.errors = c.errors[1:]
		return err
	}
	c.got += len(batch[0].ScopeSpans[0].Spans)
	c.news <- c.got
	return nil
}

func exporterTo(c *collector) (*exporter, *prometheus.Registry) {
	registry := prometheus.NewRegistry()
	log := slog.New(slog.DiscardHandler)
	m := newMetrics(registry, "ace-dev", "1")
	return &exporter{client: c, metrics: m, failures: newFailures(log),
		queue: newSpanQueue(), pause: 1}, registry
}

func sentAndDropped(f families) (sent, dropped float64) {
	return f.value("acescope_telemetry_spans_sent_total"), f.value("acescope_telemetry_spans_dropped_total")
}

func repeated(err error, n int) (list []error) {
	for range n {
		list = append(list, err)
	}
	return list
}

// TestExporterWaits: spans wait for a collector that cannot be reached, however often it fails.
func TestExporterWaits(t *testing.T) {
	for name, err := range map[string]error{
		"http": &url.Error{Op: "Post", Err: errors.New("connection refused")},
		"grpc": status.Error(codes.Unavailable, "connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			c := &collector{errors: repeated(err, 4*maxRefused), news: make(chan int, 10)}
			x, registry := exporterTo(c)
			x.pause = 1
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				x.run(ctx)
			}()
			x.add(make([]*tracepb.Span, 7))
			if n := <-c.news; n != 7 {
				t.Errorf("%d spans arrived, want 7", n)
			}
			cancel()
			<-done
			f := gather(t, registry)
			sent, dropped := sentAndDropped(f)
			if sent != 7 || dropped != 0 {
				t.Errorf("%v sent, %v dropped", sent, dropped)
			}
		})
	}
}

// TestExporterDrops: spans that a collector refuses repeatedly do not hold up later ones.
func TestExporterDrops(t *testing.T) {
	c := &collector{errors: repeated(errors.New("failed to send to http://x: 400 Bad Request"), maxRefused),
		news: make(chan int, 10)}
	x, registry := exporterTo(c)
	x.deliver(t.Context(), make([]*tracepb.Span, 5))
	x.deliver(t.Context(), make([]*tracepb.Span, 2))
	f := gather(t, registry)
	sent, dropped := sentAndDropped(f)
	if sent != 2 || dropped != 5 {
		t.Errorf("%v sent, %v dropped, want 2 and 5", sent, dropped)
	}
}

// TestExporterEnds: what is queued is sent at the end, or given up if the collector is away.
func TestExporterEnds(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, away := range []bool{false, true} {
		c := &collector{news: make(chan int, 10)}
		if away {
			c.errors = repeated(errors.New("away"), 10)
		}
		x, registry := exporterTo(c)
		x.add(make([]*tracepb.Span, maxSent+1))
		x.run(ended)
		f := gather(t, registry)
		sent, dropped := sentAndDropped(f)
		if sent+dropped != maxSent+1 || (dropped > 0) != away {
			t.Errorf("away %v: %v sent, %v dropped", away, sent, dropped)
		}
	}
}

// TestQueueIsBounded: the oldest spans are dropped and counted.
func TestQueueIsBounded(t *testing.T) {
	x, registry := exporterTo(&collector{})
	for range maxQueued/1000 + 2 {
		x.add(make([]*tracepb.Span, 1000))
	}
	if got := gather(t, registry).value("acescope_telemetry_spans_dropped_total"); got != 2000 {
		t.Errorf("%v dropped, want 2000", got)
	}
	if n := x.queue.clear(); n != maxQueued {
		t.Errorf("%d queued, want %d", n, maxQueued)
	}
}

// TestProtocol rejects a protocol that the library does not speak.
func TestProtocol(t *testing.T) {
	protocols := map[string]bool{"": true, "grpc": true, "http/protobuf": true, "http/json": false}
	for protocol, ok := range protocols {
		getenv := func(name string) string {
			if name == "OTEL_EXPORTER_OTLP_PROTOCOL" {
				return protocol
			}
			return ""
		}
		if _, err := otlpClient(On, getenv); (err == nil) != ok {
			t.Errorf("protocol %q: %v", protocol, err)
		}
	}
}
