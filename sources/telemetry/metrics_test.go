package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/temporal/operation"
	"acescope/sources/cluster"
	"acescope/sources/historytest"
	"acescope/sources/runs"
)

// families are the metrics of a scrape by name.
type families map[string]*dto.MetricFamily

// value returns the sum of the metrics of a name with some labels, as "label=value".
func (f families) value(name string, labels ...string) (sum float64) {
	for _, m := range f[name].GetMetric() {
		var have []string
		for _, l := range m.GetLabel() {
			have = append(have, l.GetName()+"="+l.GetValue())
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(have, l) }) {
			continue
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() +
			float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

func gather(t testing.TB, g prometheus.Gatherer) families {
	t.Helper()
	list, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	f := families{}
	for _, mf := range list {
		f[mf.GetName()] = mf
	}
	return f
}

func scrape(t testing.TB, url string) families {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	problems, err := promlint.New(strings.NewReader(string(body))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "acescope_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	var parser expfmt.TextParser
	f, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestScrape reads the metrics of a namespace as Prometheus does.
func TestScrape(t *testing.T) {
	s := newServer()
	s.close("ace/a", runA, time.Now())
	s.close("ace/b", runB, time.Now())
	tel, err := New(Options{Metrics: "127.0.0.1:0", Version: "1.2.3", Getenv: func(string) string {
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Close()
	saved := make(chan string, 10)
	err = tel.Start(Source{Deps: cluster.Deps{Client: s, Namespace: "ace-dev", DataDir: t.TempDir()},
		Log: slog.New(slog.DiscardHandler), Save: func(path string, _ []byte) error {
			saved <- path
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if file := <-saved; filepath.Base(filepath.Dir(file)) != "telemetry" {
		t.Errorf("position in %s", file)
	}
	var f families
	for f.value("acescope_runs_total") < 2 || f.value("acescope_open_runs") == 0 {
		f = scrape(t, tel.Address())
	}
	f = scrape(t, tel.Address()) // families are gathered at slightly different times
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "acescope_runs_total", []string{"workflow_type=AceTaskWorkflow", "status=completed"}},
		{2, "acescope_runs_total", []string{"namespace=ace-dev"}},
		{2, "acescope_run_duration_seconds", []string{"workflow_type=AceTaskWorkflow"}},
		{2, "acescope_step_duration_seconds", []string{"step=generator", "status=done"}},
		{2, "acescope_model_calls_total", []string{"model=m"}},
		{20, "acescope_tokens_total", []string{"model=m", "type=input"}},
		{10, "acescope_tokens_total", []string{"model=m", "type=output"}},
		{1, "acescope_cost_usd_total", []string{"model=m"}},
		{1, "acescope_build_info", []string{"version=1.2.3"}},
		{1, "acescope_server_reachable", nil}, {3, "acescope_open_runs", nil},
	} {
		if got := f.value(c.name, c.labels...); got != c.want {
			t.Errorf("%s%v = %v, want %v", c.name, c.labels, got, c.want)
		}
	}
}

// TestMetricsOfTask counts retries, tool calls and failures of a task.
func TestMetricsOfTask(t *testing.T) {
	b := historytest.Task(true).Of("ace/q", runA, "", runA)
	r := rowOf(b.Events)
	r.Verdict = ace.Wrong
	registry := prometheus.NewRegistry()
	newMetrics(registry, "ace-dev", "1").add(newRecord(r, "ace-dev", b.Events))
	f := gather(t, registry)
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "acescope_runs_total", []string{"verdict=wrong"}},
		{2, "acescope_step_retries_total", []string{"step=generator"}},
		{1, "acescope_step_duration_seconds", []string{"step=curator", "status=failed"}},
		{1, "acescope_tool_calls_total", []string{"tool=look_up", "status=failed"}},
		{1, "acescope_tool_calls_total", []string{"tool=calculate", "status=done"}},
		{1, "acescope_tool_calls_total", []string{"tool=shell", "status=refused"}},
		{900, "acescope_tokens_total", []string{"type=input"}},
	} {
		if got := f.value(c.name, c.labels...); got != c.want {
			t.Errorf("%s%v = %v, want %v", c.name, c.labels, got, c.want)
		}
	}
}

// TestMetricsOfFlow counts the model calls of a flow's prompts and agents.
func TestMetricsOfFlow(t *testing.T) {
	b := historytest.New(flow.Workflow, flow.Input{Name: "f"}).Of("ace-flow/f", runA, "", runA)
	for _, r := range []ace.AgentResult{
		{Provider: "claude", Model: "opus", SessionID: "s", Usage: ace.Usage{InputTokens: 5, CostUSD: 2}},
		{Provider: "openai", Model: "gpt", Usage: ace.Usage{InputTokens: 3, OutputTokens: 1}}, {},
	} {
		id := fmt.Sprint(len(b.Events) + 1)
		answer, err := json.Marshal(flow.Answer{AgentResult: r})
		if err != nil {
			t.Fatal(err)
		}
		b.Activity(time.Millisecond, time.Second, operation.AgentResponse.Activity(),
			operation.Request{OperationID: id, Type: operation.AgentResponse, Step: "ask", Occurrence: 1},
			operation.Result{OperationID: id, Value: answer})
	}
	b.Close(time.Millisecond, flow.Result{})
	registry := prometheus.NewRegistry()
	newMetrics(registry, "ace-dev", "1").add(newRecord(rowOf(b.Events), "ace-dev", b.Events))
	f := gather(t, registry)
	for _, c := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "acescope_runs_total", []string{"workflow_type=" + flow.Workflow}},
		{1, "acescope_model_calls_total", []string{"model=opus"}},
		{1, "acescope_model_calls_total", []string{"model=gpt"}},
		{5, "acescope_tokens_total", []string{"model=opus", "type=input"}},
		{2, "acescope_cost_usd_total", []string{"model=opus"}},
	} {
		if got := f.value(c.name, c.labels...); got != c.want {
			t.Errorf("%s%v = %v, want %v", c.name, c.labels, got, c.want)
		}
	}
}

// TestMetricsOfRecordedHistories compares the counted tags and operations with the recorded states.
func TestMetricsOfRecordedHistories(t *testing.T) {
	tags, operations := 0, 0
	registry := prometheus.NewRegistry()
	m := newMetrics(registry, "ace-dev", "1")
	for _, name := range []string{"right.json", "wrong.json", "retried.json"} {
		c := recordOf(t, recordedHistories+name)
		m.add(c)
		tags, operations = tags+len(c.state.BulletTags), operations+len(c.state.Delta.Operations)
	}
	f := gather(t, registry)
	if got := f.value("acescope_bullet_tags_total"); int(got) != tags {
		t.Errorf("%v tags, want %d", got, tags)
	}
	if got := f.value("acescope_playbook_operations_total"); int(got) != operations || operations == 0 {
		t.Errorf("%v operations, want %d", got, operations)
	}

	registry = prometheus.NewRegistry()
	m = newMetrics(registry, "ace-dev", "1")
	m.add(recordOf(t, recordedHistories+"review-canceled.json"))
	f = gather(t, registry)
	if got := f.value("acescope_playbook_operations_total", "outcome=unmerged"); got == 0 ||
		f.value("acescope_playbook_operations_total", "outcome=accepted") != 0 {
		t.Errorf("a run canceled in review: %v operations unmerged", got)
	}
}

// TestLabelsAreBounded: names that come from payloads cannot fill the memory of Prometheus.
func TestLabelsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry, "ace-dev", "1")
	for i := range 1000 {
		r := runs.Run{Type: fmt.Sprint("type", i), Status: ace.Completed}
		state := &ace.State{Input: ace.TaskInput{Branch: fmt.Sprint("branch", i)}}
		state.Delta.PlaybookAfter, state.Delta.Bullets = "hash", i
		long := strings.Repeat("m", 10_000) + fmt.Sprint(i)
		m.add(&record{Run: r, state: state, own: map[ace.Phase]bool{ace.PhasePersist: true},
			calls: []modelCall{{model: long}, {model: fmt.Sprint(i)}, {model: "\xff"}}})
	}
	f := gather(t, registry)
	for name, limit := range map[string]int{"acescope_run_duration_seconds": maxLabelValues + 1,
		"acescope_model_calls_total": maxLabelValues + 1, "acescope_playbook_bullets": maxBranches} {
		if n := len(f[name].GetMetric()); n > limit || n < 2 {
			t.Errorf("%s has %d series, want at most %d", name, n, limit)
		}
	}
	if got := f.value("acescope_playbook_bullets", "branch=branch999"); got != 999 {
		t.Errorf("the branch that changed last has %v bullets", got)
	}
	if got := f.value("acescope_runs_total"); got != 1000 {
		t.Errorf("%v runs, want 1000", got)
	}
}

// TestAddressInUse is one clear line.
func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = New(Options{Metrics: l.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "--metrics") {
		t.Errorf("error %v", err)
	}
}

// TestSettings checks the values of the settings.
func TestSettings(t *testing.T) {
	for value, want := range map[string]string{"9464": "127.0.0.1:9464", ":9464": "127.0.0.1:9464",
		"0.0.0.0:1": "0.0.0.0:1", "[::1]:2": "[::1]:2"} {
		if got, err := metricsAddress(value); got != want || CheckMetrics(value) != nil {
			t.Errorf("%s: %q, %v", value, got, err)
		}
	}
	for _, value := range []string{"a:b:c", "127.0.0.1:", "x", "127.0.0.1:99999"} {
		if CheckMetrics(value) == nil {
			t.Errorf("metrics %q is accepted", value)
		}
	}
	for value, ok := range map[string]bool{"on": true, "off": true, "": true, "http://h:4318": true,
		"https://h/otlp": true, "localhost:4318": false, "ftp://h": false, "yes": false} {
		if err := CheckOTLP(value); (err == nil) != ok {
			t.Errorf("otlp %q: %v", value, err)
		}
	}
	if tel, err := New(Options{Metrics: Off, OTLP: Off}); tel != nil || err != nil {
		t.Errorf("telemetry %v, %v, want none", tel, err)
	}
	var none *Telemetry
	none.Close()
	if none.Registerer() != nil || none.Address() != "" || none.Start(Source{}) != nil {
		t.Error("no telemetry does something")
	}
}

// metricNames returns the names of all metrics, those of histograms with their suffixes.
func metricNames(t testing.TB) []string {
	t.Helper()
	registry := prometheus.NewRegistry()
	m := newMetrics(registry, "ace-dev", "1")
	for i := range 2 { // a vector without values is not gathered
		b := historytest.Task(true).Of("ace/q", runA, "", runA)
		c := newRecord(rowOf(b.Events), "ace-dev", b.Events)
		c.state.Input.Branch, c.state.Delta.PlaybookAfter, c.own[ace.PhasePersist] = "b", "hash", true
		c.state.Delta.Operations, c.own[ace.PhaseCurator] = []ace.Operation{{Type: ace.OpAdd}}, true
		c.calls = append(c.calls, modelCall{usage: ace.Usage{Unpriced: i == 0}})
		m.add(c)
	}
	m.backlog.WithLabelValues("q", "activity")
	m.oldest.WithLabelValues("q", "activity")
	m.pollers.WithLabelValues("q", "activity")
	names := map[string]bool{}
	for name, mf := range gather(t, registry) {
		names[name] = true
		if mf.GetType() == dto.MetricType_HISTOGRAM {
			names[name+"_bucket"], names[name+"_sum"], names[name+"_count"] = true, true, true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
