package telemetry

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"acescope/engine/store/bucket/buckettest/ports"
	"acescope/sources/cluster"
)

// TestCollector sends a trace to a real collector, over HTTP and gRPC, and reads what its debug exporter
// writes. ACESCOPE_OTELCOL names the binary of a collector with the OTLP receiver and the debug exporter.
func TestCollector(t *testing.T) {
	binary := os.Getenv("ACESCOPE_OTELCOL")
	if binary == "" {
		t.Skip("$ACESCOPE_OTELCOL does not name the binary of an OpenTelemetry collector")
	}
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(strings.ReplaceAll(protocol, "/", "-"), func(t *testing.T) {
			url, output := startCollector(t, binary, protocol)
			s := newServer()
			s.close("ace/q", runA, time.Now())
			env := map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
			getenv := func(name string) string { return env[name] }
			tel, err := New(Options{OTLP: url, Version: "1.2.3", Getenv: getenv})
			if err != nil {
				t.Fatal(err)
			}
			defer tel.Close()
			err = tel.Start(Source{Deps: cluster.Deps{Client: s, Namespace: "ace-dev", DataDir: t.TempDir()},
				Log: slog.New(slog.DiscardHandler), Save: func(string, []byte) error { return nil }})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				"service.name: Str(acescope)", "service.version: Str(1.2.3)",
				"deployment.environment.name: Str(test)", "https://opentelemetry.io/schemas/1.41.0",
				"Trace ID       : " + strings.ReplaceAll(runA, "-", ""),
				"invoke_workflow AceTaskWorkflow", "Name           : run_generator",
				"Name           : chat m",
				"gen_ai.usage.input_tokens: Int(10)", "temporalRunID: Str(" + runA + ")",
			} {
				output.await(t, want)
			}
		})
	}
}

const collectorConfig = `
receivers:
  otlp:
    protocols:
      http: {endpoint: "%s"}
      grpc: {endpoint: "%s"}
exporters:
  debug: {verbosity: detailed}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
`

// startCollector starts a collector and returns its URL and its output.
func startCollector(t *testing.T, binary, protocol string) (string, output) {
	t.Helper()
	dir := t.TempDir()
	http, grpc := freeAddress(t), freeAddress(t)
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, collectorConfig, http, grpc), 0o600); err != nil {
		t.Fatal(err)
	}
	out := output(filepath.Join(dir, "output"))
	f, err := os.Create(string(out))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command(binary, "--config", "file:"+config)
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	out.await(t, "Everything is ready")
	if protocol == "grpc" {
		http = grpc
	}
	return "http://" + http, out
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, release, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return address
}

// output is the file with the output of a collector.
type output string

// await waits for a text.
func (o output) await(t *testing.T, want string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		data, err := os.ReadFile(string(o))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the collector did not write %q but\n%s", want, data)
		}
	}
}
