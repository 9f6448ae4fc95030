package engine

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/sdk"
)

// sdkBuckets are the buckets of the SDK's latencies, in seconds.
var sdkBuckets = []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 60, 600}

// sdkMetrics returns a handler that registers the metrics of Temporal's SDK, under their own names, with r.
// The embedded server's metrics are not recorded: that costs a sixth of the processor time of a run.
func sdkMetrics(r prometheus.Registerer) (client.MetricsHandler, error) {
	reader, err := exporter.New(exporter.WithRegisterer(r), exporter.WithoutScopeInfo(),
		exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("metrics of Temporal's SDK: %w", err)
	}
	latencies := sdkmetric.NewView(
		sdkmetric.Instrument{Kind: sdkmetric.InstrumentKindHistogram, Unit: metrics.Seconds},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: sdkBuckets}})
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithView(latencies))
	handler, err := metrics.NewOtelMetricsHandler(log.NewNoopLogger(), meter{provider.Meter("temporal")},
		metrics.ClientConfig{}, true)
	if err != nil {
		return nil, fmt.Errorf("metrics of Temporal's SDK: %w", err)
	}
	return sdk.NewMetricsHandler(handler), nil
}

// meter implements [metrics.OpenTelemetryProvider].
type meter struct{ metric.Meter }

func (meter) Stop(log.Logger) {}

func (m meter) GetMeter() metric.Meter { return m.Meter }
