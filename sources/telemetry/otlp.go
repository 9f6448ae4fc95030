package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkresource "go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"acescope/engine/ace"
	"acescope/sources/cluster"
)

// Values of the setting otlp, which otherwise is the URL of a collector.
const (
	Off = "off"
	On  = "on" // where the standard environment variables say
)

// CheckOTLP checks a value of the setting otlp.
func CheckOTLP(value string) error {
	if value == "" || value == Off || value == On {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf(`%q must be on, off or the URL of a collector, such as "http://127.0.0.1:4318"`,
			value)
	}
	return nil
}

// Bounds of the queue of traces, in spans.
const (
	maxQueued = 50_000
	maxSent   = 2_000 // per call
)

const tracesPath = "/v1/traces"

// otlpClient returns a client of a collector. Headers, certificates, compression and timeouts are those of
// the standard environment variables, which the client reads itself.
func otlpClient(target string, getenv func(string) string) (otlptrace.Client, error) {
	protocol := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL"))
	named := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if target != On {
		named = target
	}
	if u, err := url.Parse(named); protocol == "" && err == nil && u.Port() == "4317" {
		protocol = "grpc"
	}
	switch protocol {
	case "grpc":
		var options []otlptracegrpc.Option
		if target != On {
			options = append(options, otlptracegrpc.WithEndpointURL(target))
		}
		return otlptracegrpc.NewClient(options...), nil
	case "", "http/protobuf":
		var options []otlptracehttp.Option
		if target != On {
			base := strings.TrimSuffix(strings.TrimSuffix(target, "/"), tracesPath)
			options = append(options, otlptracehttp.WithEndpointURL(base+tracesPath))
		}
		return otlptracehttp.NewClient(options...), nil
	}
	return nil, fmt.Errorf("$OTEL_EXPORTER_OTLP_PROTOCOL: %q must be http/protobuf or grpc", protocol)
}

// newResource describes this program: the service name is acescope unless the standard environment variables
// say otherwise.
func newResource(ctx context.Context, version string) (*resourcepb.Resource, error) {
	r, err := sdkresource.New(ctx, sdkresource.WithAttributes(semconv.ServiceName("acescope"),
		semconv.ServiceVersion(version)), sdkresource.WithFromEnv(), sdkresource.WithTelemetrySDK())
	if err != nil && !errors.Is(err, sdkresource.ErrPartialResource) {
		return nil, err
	}
	out := &resourcepb.Resource{}
	for _, kv := range r.Attributes() {
		out.Attributes = append(out.Attributes, attribute(string(kv.Key), kv.Value.Emit()))
	}
	return out, nil
}

// exporter sends spans to a collector from a goroutine of its own.
type exporter struct {
	client   otlptrace.Client
	resource *resourcepb.Resource
	scope    *commonpb.InstrumentationScope
	metrics  *Metrics // may be nil
	failures *failures
	queue    spanQueue
	pause    time.Duration // before the first repetition
}

// Pauses between attempts to send.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// maxRefused is how often a collector may refuse some spans before they are dropped.
const maxRefused = 3

// run sends what is queued until ctx ends, and then once what is left.
func (x *exporter) run(ctx context.Context) {
	for {
		batch := x.queue.take(ctx, maxSent)
		if batch == nil {
			break
		}
		x.deliver(ctx, batch)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRead)
	defer cancel()
	for batch := x.queue.next(maxSent); batch != nil; batch = x.queue.next(maxSent) {
		if err := x.send(last, batch); err != nil {
			x.failures.report("send the last spans", err)
			x.drop(len(batch) + x.queue.clear())
		}
	}
	_ = x.client.Stop(last) // everything is sent or given up
}

// deliver sends spans until the collector takes them, refuses them repeatedly, or ctx ends. Then they are
// queued again for the last attempt.
func (x *exporter) deliver(ctx context.Context, batch []*tracepb.Span) {
	refused := 0
	for pause := x.pause; ; pause = min(2*pause, maxPause) {
		err := x.send(ctx, batch)
		if ctx.Err() == nil {
			x.failures.report("send spans", err)
		}
		switch {
		case err == nil:
			return
		case ctx.Err() == nil && !unreachable(err):
			refused++
		}
		if refused == maxRefused {
			x.drop(len(batch))
			return
		}
		if cluster.Sleep(ctx, pause) != nil {
			x.queue.putBack(batch)
			return
		}
	}
}

func (x *exporter) send(ctx context.Context, batch []*tracepb.Span) error {
	scoped := &tracepb.ScopeSpans{Scope: x.scope, Spans: batch, SchemaUrl: semconv.SchemaURL}
	err := x.client.UploadTraces(ctx, []*tracepb.ResourceSpans{
		{Resource: x.resource, SchemaUrl: semconv.SchemaURL, ScopeSpans: []*tracepb.ScopeSpans{scoped}}})
	if err == nil && x.metrics != nil {
		x.metrics.sent.Add(float64(len(batch)))
	}
	return err
}

// drop counts spans that are given up.
func (x *exporter) drop(n int) {
	if n > 0 && x.metrics != nil {
		x.metrics.dropped.Add(float64(n))
	}
}

// add queues the spans of a run.
func (x *exporter) add(spans []*tracepb.Span) {
	var err error
	n := x.queue.put(spans)
	if n > 0 {
		err = fmt.Errorf("more than %s wait for the collector; the oldest are dropped",
			ace.Count(maxQueued, "span"))
	}
	x.drop(n)
	x.failures.report("queue spans", err)
}

// unreachable reports whether the collector did not answer.
func unreachable(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok || status.Code(err) == codes.Unavailable || errors.Is(err, context.DeadlineExceeded)
}
