package telemetry

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"acescope/engine/ace"
	"acescope/sources/histories"
)

// Bounds of labels.
const (
	maxLabelValues = 50
	maxBranches    = 20
	otherValue     = "other"
	unknownValue   = "unknown"
)

// Buckets in seconds: steps take from milliseconds (the built-in provider) to half an hour (an agent), runs
// up to a week (a session).
var (
	stepBuckets = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	runBuckets  = []float64{.1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}
)

// Metrics are the metrics of one namespace.
type Metrics struct {
	labels labels

	runs       *prometheus.CounterVec
	runTime    *prometheus.HistogramVec
	steps      *prometheus.HistogramVec
	waits      *prometheus.HistogramVec
	retries    *prometheus.CounterVec
	calls      *prometheus.CounterVec
	tokens     *prometheus.CounterVec
	cost       *prometheus.CounterVec
	unpriced   *prometheus.CounterVec
	tools      *prometheus.CounterVec
	operations *prometheus.CounterVec
	tags       *prometheus.CounterVec
	bullets    recent

	openRuns  prometheus.Gauge
	reachable prometheus.Gauge
	backlog   *prometheus.GaugeVec
	oldest    *prometheus.GaugeVec
	pollers   *prometheus.GaugeVec

	readUntil prometheus.Gauge
	unread    prometheus.Counter
	sent      prometheus.Counter
	dropped   prometheus.Counter
}

// newMetrics registers the metrics of a namespace, and those of this process.
func newMetrics(r prometheus.Registerer, namespace, version string) *Metrics {
	m := &Metrics{labels: labels{known: map[string]map[string]bool{}}}
	r.MustRegister(collectors.NewGoCollector())
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := factory{prometheus.WrapRegistererWith(prometheus.Labels{"namespace": namespace}, r)}
	m.defineRuns(f)
	m.defineState(f)
	build := f.gauge("acescope_build_info", "Version of acescope; the value is always 1.", "version")
	build.WithLabelValues(version).Set(1)
	return m
}

// defineRuns defines the metrics that count closed runs.
func (m *Metrics) defineRuns(f factory) {
	m.runs = f.counter("acescope_runs_total",
		"Closed runs by workflow type, status, and verdict on the answer.",
		"workflow_type", "status", "verdict")
	m.runTime = f.histogram("acescope_run_duration_seconds", "Time from the start to the end of closed runs.",
		runBuckets, "workflow_type")
	m.steps = f.histogram("acescope_step_duration_seconds", "Time that the last attempt of a step took.",
		stepBuckets, "step", "status")
	m.waits = f.histogram("acescope_step_wait_seconds",
		"Time from the scheduling of a step to its last attempt: waiting for a worker, and earlier attempts.",
		stepBuckets, "step")
	m.retries = f.counter("acescope_step_retries_total", "Attempts of steps after the first.", "step")
	m.calls = f.counter("acescope_model_calls_total", "Steps and turns that used a model or an agent.",
		"model")
	m.tokens = f.counter("acescope_tokens_total", "Tokens by type: input, output, cache_read.", "model",
		"type")
	m.cost = f.counter("acescope_cost_usd_total", "Cost in US dollars of tokens with a known price.", "model")
	m.unpriced = f.counter("acescope_unpriced_calls_total",
		"Model calls with tokens of unknown price, which acescope_cost_usd_total lacks.", "model")
	m.tools = f.counter("acescope_tool_calls_total", "Tool calls by tool and status: done, failed, refused.",
		"tool", "status")
	m.operations = f.counter("acescope_playbook_operations_total",
		"Operations that curators proposed, by type and outcome.", "type", "outcome")
	m.tags = f.counter("acescope_bullet_tags_total", "Ratings of bullets: helpful, harmful, neutral.", "tag")
	for _, tag := range []string{"helpful", "harmful", "neutral"} {
		m.tags.WithLabelValues(tag) // a rate needs a first value
	}
	for _, status := range ace.Statuses()[1:] {
		m.runs.WithLabelValues(ace.TaskWorkflow, string(status), verdictLabel(""))
	}
	for _, verdict := range ace.Verdicts() {
		m.runs.WithLabelValues(ace.TaskWorkflow, string(ace.Completed), string(verdict))
	}
}

// defineState defines the metrics of the server's state, which is read at intervals, and of telemetry itself.
func (m *Metrics) defineState(f factory) {
	single := func(name, help string) prometheus.Gauge { return f.gauge(name, help).WithLabelValues() }
	m.openRuns = single("acescope_open_runs", "Runs that have not closed.")
	m.bullets.gauge = f.gauge("acescope_playbook_bullets",
		"Bullets in the newest version of the playbook branches that changed last.", "branch")
	m.reachable = single("acescope_server_reachable",
		"1 if the server answered the last reading, otherwise 0.")
	m.backlog = f.gauge("acescope_queue_backlog_tasks", "Tasks that wait for a worker.", "task_queue", "kind")
	m.oldest = f.gauge("acescope_queue_backlog_age_seconds",
		"Age of the oldest task that waits for a worker.",
		"task_queue", "kind")
	m.pollers = f.gauge("acescope_queue_pollers", "Workers that polled the task queue in the last minutes.",
		"task_queue", "kind")
	m.readUntil = single("acescope_telemetry_read_timestamp_seconds",
		"When closed runs were last read completely, in seconds since 1970.")
	total := func(name, help string) prometheus.Counter { return f.counter(name, help).WithLabelValues() }
	m.unread = total("acescope_telemetry_unread_histories_total",
		"Closed runs that are counted without their steps, because their history could not be read.")
	m.sent = total("acescope_telemetry_spans_sent_total", "Spans that the collector accepted.")
	m.dropped = total("acescope_telemetry_spans_dropped_total",
		"Spans that were given up, because the collector could not be reached or rejected them.")
}

// factory registers metrics.
type factory struct{ prometheus.Registerer }

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	f.MustRegister(v)
	return v
}

func (f factory) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	f.MustRegister(v)
	return v
}

func (f factory) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets},
		labels)
	f.MustRegister(v)
	return v
}

// add counts a closed run. The run itself is counted last, so that a scrape that includes it includes its
// parts.
func (m *Metrics) add(c *record) {
	workflow := m.labels.bound("workflow_type", c.Type)
	m.runTime.WithLabelValues(workflow).Observe(c.Age(c.Close).Seconds())
	for i := range c.spans {
		if s := &c.spans[i]; !c.inherited(s.Last) {
			m.addSpan(c, s)
		}
	}
	for _, call := range c.calls {
		m.addCall(call)
	}
	if c.state != nil {
		m.addDelta(c.state, c.own)
	}
	m.runs.WithLabelValues(workflow, string(c.Status), verdictLabel(c.Verdict)).Inc()
}

// verdictLabel returns the label of a verdict.
func verdictLabel(v ace.Verdict) string {
	if v == "" {
		return "none"
	}
	return string(v)
}

func (m *Metrics) addSpan(c *record, s *histories.Span) {
	switch s.Kind {
	case histories.SpanCall:
		m.tools.WithLabelValues(m.labels.bound("tool", s.Name), s.State.String()).Inc()
	case histories.SpanActivity:
		st := c.steps[s.Event]
		name := m.labels.bound("step", st.activity)
		if st.phase != "" {
			name = string(st.phase)
		}
		if st.tool != "" {
			m.tools.WithLabelValues(m.labels.bound("tool", st.tool), s.State.String()).Inc()
		}
		if s.Run == 0 {
			return // no worker took it
		}
		m.steps.WithLabelValues(name, s.State.String()).Observe(s.Ran(c.Close).Seconds())
		m.waits.WithLabelValues(name).Observe(s.Waited(c.Close).Seconds())
		m.retries.WithLabelValues(name).Add(float64(max(s.Attempt-1, 0)))
	}
}

func (m *Metrics) addCall(call modelCall) {
	model := m.labels.bound("model", call.model)
	m.calls.WithLabelValues(model).Inc()
	u := call.usage
	if u == (ace.Usage{}) {
		return // none is recorded
	}
	m.tokens.WithLabelValues(model, "input").Add(float64(max(u.InputTokens, 0)))
	m.tokens.WithLabelValues(model, "output").Add(float64(max(u.OutputTokens, 0)))
	m.tokens.WithLabelValues(model, "cache_read").Add(float64(max(u.CacheReadTokens, 0)))
	m.cost.WithLabelValues(model).Add(max(u.CostUSD, 0))
	if u.Unpriced {
		m.unpriced.WithLabelValues(model).Inc()
	}
}

// addDelta counts what a task changed in its playbook.
func (m *Metrics) addDelta(s *ace.State, own map[ace.Phase]bool) {
	if own[ace.PhaseCurator] {
		for _, op := range s.Delta.Operations {
			kind, outcome := m.labels.bound("type", string(op.Type)),
				m.labels.bound("outcome", string(op.Outcome))
			m.operations.WithLabelValues(kind, outcome).Inc()
		}
	}
	if own[ace.PhaseReflector] {
		for _, tag := range s.BulletTags {
			m.tags.WithLabelValues(m.labels.bound("tag", tag.Tag)).Inc()
		}
	}
	if own[ace.PhasePersist] && s.Input.Branch != "" && s.Delta.PlaybookAfter != "" {
		m.bullets.set(ace.Cut(clean(s.Input.Branch), maxLabel), float64(s.Delta.Bullets))
	}
}

// labels bounds the values of labels that come from payloads.
type labels struct {
	mu    sync.Mutex
	known map[string]map[string]bool // values by label
}

// bound returns the value of a label, or [otherValue] if the label has too many.
func (l *labels) bound(label, value string) string {
	if value = ace.Cut(clean(value), maxLabel); value == "" {
		return unknownValue
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.known[label]
	if known == nil {
		known = map[string]bool{}
		l.known[label] = known
	}
	if !known[value] && len(known) >= maxLabelValues {
		return otherValue
	}
	known[value] = true
	return value
}

// recent is the gauge of the size of the branches that changed last.
type recent struct {
	gauge *prometheus.GaugeVec

	mu       sync.Mutex
	branches []string // the last changed last
}

func (r *recent) set(branch string, bullets float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.branches, branch); i >= 0 {
		r.branches = slices.Delete(r.branches, i, i+1)
	}
	r.branches = append(r.branches, branch)
	if len(r.branches) > maxBranches {
		r.gauge.DeleteLabelValues(r.branches[0])
		r.branches = slices.Delete(r.branches, 0, 1)
	}
	r.gauge.WithLabelValues(branch).Set(bullets)
}
