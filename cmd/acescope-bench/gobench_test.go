//go:build bench

package bench

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"acescope/engine/agents/agentcli"
)

// goBenchmark is a benchmark of a package of this module, and the benchmark of its peer.
type goBenchmark struct {
	pkg   string // directory in the module
	ours  string // "Verify/ours" is sub-benchmark ours of BenchmarkVerify
	peer  string // of the same parent; "" for none
	count int    // iterations; 0 for as many as fit in one second
	env   []string
}

// metric is a figure that a Go benchmark reports as a metric of this name.
type metric struct {
	what   string
	unit   string
	target string
	name   string
}

// goBench compiles the tests of a package and runs a benchmark of it in a new process for each
// attempt, so that memory is measured from the start. The working directory is the root of the
// module.
func (b *bench) goBench(g goBenchmark, metrics []metric) {
	binary := filepath.Join(b.dir, "bin", strings.ReplaceAll(g.pkg, "/", "-")+".test")
	must(b.run(nil, "go", "test", "-c", "-o", binary, "./"+g.pkg))
	pattern := "^Benchmark" + strings.ReplaceAll(g.ours, "/", "$/^") + "$"
	if g.peer != "" {
		parent, ours, _ := strings.Cut(g.ours, "/")
		pattern = fmt.Sprintf("^Benchmark%s$/^(%s|%s)$", parent, ours, strings.TrimPrefix(g.peer, parent+"/"))
	}
	args := []string{"-test.run=^$", "-test.timeout=30m", "-test.bench=" + pattern}
	if g.count > 0 {
		args = append(args, fmt.Sprintf("-test.benchtime=%dx", g.count))
	}
	if b.profile != "" {
		name := filepath.Join(b.profile, strings.ReplaceAll(g.ours, "/", "-"))
		args = append(args, "-test.cpuprofile="+name+".pprof", "-test.memprofile="+name+"-heap.pprof")
	}
	figures := make([]figure, len(metrics))
	for i, m := range metrics {
		figures[i] = figure{what: m.what, unit: m.unit, target: m.target}
	}
	b.compareBoth(b.size.runs, figures, func() (ours, peer []float64) {
		cmd := command(b.ctx, g.env, binary, args...)
		cmd.Dir = filepath.FromSlash(g.pkg)
		out, err := cmd.CombinedOutput()
		if err != nil {
			fail("%s: %w\n%s", pattern, err, out)
		}
		reported := parseMetrics(string(out))
		for _, m := range metrics {
			ours = append(ours, m.value(reported, g.ours))
			if g.peer != "" {
				peer = append(peer, m.value(reported, g.peer))
			}
		}
		return ours, peer
	})
}

// value returns what a benchmark reported, in the unit of the metric.
func (m metric) value(reported map[string]float64, benchmark string) float64 {
	v, ok := reported[benchmark+" "+m.name]
	if !ok {
		fail("Benchmark%s has not reported %s", benchmark, m.name)
	}
	if m.name == "ns/op" {
		v *= map[string]float64{"ms": 1e-6, "s": 1e-9}[m.unit]
	}
	return v
}

// parseMetrics returns the metrics in the output of benchmarks, by name and unit.
func parseMetrics(out string) map[string]float64 {
	reported := map[string]float64{}
	for line := range strings.Lines(out) {
		line, ok := strings.CutPrefix(line, "Benchmark")
		fields := strings.Fields(line)
		if !ok || len(fields) < 4 {
			continue
		}
		name := strings.TrimSuffix(fields[0], fmt.Sprint("-", runtime.GOMAXPROCS(0)))
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				reported[name+" "+fields[i+1]] = v
			}
		}
	}
	return reported
}

// frame measures the console while events come and a user types, and the table of Bubbles with the
// same rows, changes and keys.
func frame(b *bench) {
	keys := 100 * b.size.typingSecs
	g := goBenchmark{pkg: "views", ours: "Typing/console", peer: "Typing/bubbles", count: keys}
	b.goBench(g, []metric{
		{"key to drawn frame, 10000 runs, 1000 events/s, p99", "ms", "≤ 16.7", "key-p99-ms"},
		{"key to drawn frame, p50", "ms", "≤ 0.333×", "key-p50-ms"},
		{"snapshot to drawn frame, p99", "ms", "", "data-p99-ms"},
		{"CPU", "% of a core", "", "cpu-%"},
		{"written to the terminal", "bytes/frame", "", "B/frame"},
		{fmt.Sprintf("keys lost of %d", keys), "keys", "≤ 0", "keys-lost"},
	})
}

// scroll measures scrolling through more runs than the console holds. The server is simulated and
// holds no runs either, so the memory is the console's.
func scroll(b *bench) {
	b.goBench(goBenchmark{pkg: "views", ours: "Scroll", count: 1}, []metric{
		{"100000 runs, page by page to the last: peak resident", "MB", "≤ 200", "peak-MB"},
		{"resident with the first page", "MB", "", "before-MB"},
		{"heap at the last page", "MB", "", "heap-MB"},
		{"page by page to the last", "s", "", "scroll-s"},
		{"page key to drawn frame, p99", "ms", "≤ 16.7", "key-p99-ms"},
		{"runs held at most", "runs", "", "held-runs"},
		{"first run to the last with one key, second time", "ms", "", "last-ms"},
	})
}

// transcripts measures how fast a console indexes transcripts while a user types, and how fast it
// starts again.
func transcripts(b *bench) {
	b.goBench(goBenchmark{pkg: "views", ours: "Transcripts", count: b.size.megabytes}, []metric{
		{fmt.Sprintf("%d MB indexed while a user types", b.size.megabytes), "MB/s", "≥ 200", "index-MB/s"},
		{"time until all is indexed", "s", "", "index-s"},
		{"CPU until all is indexed, with the drawing", "s", "", "cpu-s"},
		{"newest session on the screen", "ms", "≤ 500", "first-ms"},
		{"key to drawn frame, p99", "ms", "≤ 16.7", "key-p99-ms"},
		{"peak resident", "MB", "≤ 200", "peak-MB"},
		{"heap with all sessions", "MB", "", "heap-MB"},
		{"restart: all sessions on the screen, from the cache", "ms", "", "restart-ms"},
	})
}

// stream measures how fast the output of agents becomes events, against encoding/json.
func stream(b *bench) {
	for _, cli := range agentcli.CLIs() {
		name := fmt.Sprintf("Reader/%s-", cli)
		g := goBenchmark{pkg: "engine/agents/agentcli", ours: name + "ours", peer: name + "json",
			count: min(b.size.megabytes, 512)}
		b.goBench(g, []metric{
			{fmt.Sprintf("%s: %d MB of output to events, per second of CPU", cli, g.count), "MB/s", "≥ 200",
				"MB/cpu-s"},
			{fmt.Sprintf("%s: peak heap", cli), "MB", "≤ 32", "heap-MB"},
		})
	}
}

// runs compares a run of a blueprint with a bare activity that starts the same program, and many
// runs that the dispatcher assigns with runs on a fixed task queue.
func runs(b *bench) {
	one := goBenchmark{pkg: "engine", ours: "BlueprintRun/run", peer: "BlueprintRun/activity",
		count: b.size.events}
	b.goBench(one, []metric{
		{"start of a no-op program to its first byte, median, against a bare activity", "ms", "",
			"first-p50-ms"},
		{"start of a no-op program to its first byte, p95", "ms", "", "first-p95-ms"},
		{"start of a no-op program to its result, median", "ms", "", "end-p50-ms"},
	})
	many := goBenchmark{pkg: "engine", ours: "ManyRuns/matched", peer: "ManyRuns/fixed",
		count: b.size.programs}
	what := fmt.Sprintf("%d runs over 8 runners, 16 at a time, matched against a fixed task queue",
		many.count)
	b.goBench(many, []metric{
		{what, "s", "≤ 1.2×", "total-s"},
		{what, "ms CPU a run", "", "cpu-ms/run"},
	})
}

// dispatch measures the decisions of the dispatcher while many runs wait and all runners are busy,
// and its history on a server, which limits it to 51,200 events and 50 MB.
func dispatch(b *bench) {
	b.goBench(goBenchmark{pkg: "engine/tasks/runner", ours: "Decide/requirements-20"}, []metric{
		{"10000 runs that wait, 200 runners: a decision, median", "µs", "", "p50-µs"},
		{"10000 runs that wait, 200 runners: a decision, p99", "µs", "", "p99-µs"},
	})
	b.goBench(goBenchmark{pkg: "engine/tasks/runner", ours: "Carry"}, []metric{
		{"20000 runs that wait: carrying the state into the next run, and reading it", "ms", "", "ns/op"},
		{"20000 runs that wait: carried state", "MB", "≤ 2", "MB"},
	})
	what := fmt.Sprintf("%d runs that wait, 200 runners: ", b.size.pending)
	b.goBench(goBenchmark{pkg: "engine", ours: "Dispatcher", count: b.size.pending / 5}, []metric{
		{what + "runs assigned on the server", "runs/s", "", "runs/s"},
		{"longest run of the dispatcher", "events", "≤ 51200", "max-events"},
		{"longest run of the dispatcher", "MB", "≤ 50", "max-MB"},
		{"all runs of the dispatcher, per assigned run", "events", "", "events/run"},
		{"continued as new", "times", "≥ 1", "continued"},
	})
}

// flows compares a flow of 100 actions with the same workflow in Go, and measures a long loop and the parser.
func flows(b *bench) {
	b.goBench(goBenchmark{pkg: "engine", ours: "Flow/ours", peer: "Flow/plain", count: 5}, []metric{
		{"a flow of 100 actions, against the same workflow in Go", "ms", "≤ 1.2×", "ns/op"},
		{"its history", "events", "≤ 1.3×", "events"},
	})
	b.goBench(goBenchmark{pkg: "engine", ours: "FlowLoop", count: 1}, []metric{
		{"10,000 iterations: longest pause while the run continues as new", "ms", "≤ 200", "pause-ms"},
		{"10,000 iterations", "s", "", "ns/op"},
	})
	b.goBench(goBenchmark{pkg: "engine/flow", ours: "Parse/1000_steps", count: 20}, []metric{
		{"parse and check a flow of 1,000 steps", "ms", "≤ 50", "ns/op"},
	})
}

// evaluation compares an evaluation of 1,000 items with bare activities, and measures the grid of many
// evaluations.
func evaluation(b *bench) {
	b.goBench(goBenchmark{pkg: "engine", ours: "Evaluation/ours", peer: "Evaluation/items", count: 5},
		[]metric{
			{"1,000 items by the built-in learner, kept, against a bare activity for each", "ms", "≤ 1.2×",
				"ns/op"},
		})
	b.goBench(goBenchmark{pkg: "engine", ours: "Evaluation/ours", peer: "Evaluation/chunks", count: 5},
		[]metric{
			{"the same against bare activities of 25 items that keep nothing", "ms", "", "ns/op"},
		})
	b.goBench(goBenchmark{pkg: "views", ours: "EvaluationGrid", count: 200}, []metric{
		{"grid of 1,000 items and 100 versions: key to drawn frame", "ms", "≤ 16.7", "ns/op"},
	})
}
