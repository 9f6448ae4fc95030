//go:build bench

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/temporal/historyfile"
	"acescope/engine/temporal/replay/replaytest"
	embedded "acescope/engine/temporal/server"
)

// historyEvents is how many events the long history has. A server allows 51,200.
const historyEvents = 50_000

// history measures a console that opens a long history, of a simulated server and of a run that
// was executed on the embedded server, in another process.
func history(b *bench) {
	open := func(server string, env ...string) {
		about := func(what string) string {
			return fmt.Sprintf("%d events, %s server: %s", historyEvents, server, what)
		}
		b.goBench(goBenchmark{pkg: "views", ours: "History/" + server, count: 1, env: env}, []metric{
			{about("first byte to the first screen of the timeline"), "ms", "≤ 1000", "first-ms"},
			{about("key to the first byte"), "ms", "", "byte-ms"},
			{about("first byte to all events"), "ms", "", "all-ms"},
			{about("search in the shown text, key to screen"), "ms", "≤ 200", "search-ms"},
			{about("search in payloads too, key to screen"), "ms", "≤ 200", "full-search-ms"},
			{about("step along the bars, p99"), "ms", "≤ 16.7", "bars-p99-ms"},
			{about("step along the list, p99"), "ms", "≤ 16.7", "list-p99-ms"},
			{about("history as the server stores it"), "MB", "", "history-MB"},
			{about("heap that the history needs"), "MB", "", "heap-MB"},
			{about("resident before the timeline is opened"), "MB", "", "before-MB"},
			{about("resident with the timeline"), "MB", "", "resident-MB"},
			{about("peak resident"), "MB", "", "peak-MB"},
		})
	}
	open("simulated")
	dir := filepath.Join(b.dir, fmt.Sprintf("history-%d", historyEvents))
	if !exists(dir) {
		b.progress("  creating a run of %d events in %s, once", historyEvents, dir)
		tmp := b.tempDir()
		p := b.child(spec{Kind: "long", Dir: tmp})
		var events int64
		p.read(&events)
		p.wait()
		if events < historyEvents {
			fail("the run has %d events", events)
		}
		check(os.Rename(tmp, dir))
	}
	s := b.serve(dir)
	open("embedded", append(s.env, "ACESCOPE_BENCH_DATA="+dir)...)
}

// longState is the input and the result of the activities of the long workflow.
type longState struct {
	Turn      int
	Rationale string
}

// longWorkflow has a history like that of an agent that does not stop: timers, activities and
// markers.
func longWorkflow(ctx workflow.Context, events int) (int, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	turn := 0
	for ; workflow.GetInfo(ctx).GetCurrentHistoryLength() < events; turn++ {
		state := longState{turn, "net income divided by shareholders' equity, as a fraction"}
		var pending []workflow.Future
		for range 60 {
			pending = append(pending, workflow.NewTimer(ctx, time.Millisecond))
		}
		for n := range 10 {
			step := ace.Steps()[n%len(ace.Steps())]
			pending = append(pending, workflow.ExecuteActivity(ctx, step.Activity(), state))
		}
		for range 200 {
			workflow.SideEffect(ctx, func(workflow.Context) any { return state })
		}
		for _, f := range pending {
			if err := f.Get(ctx, nil); err != nil {
				return turn, err
			}
		}
	}
	return turn, nil
}

// longChild runs the long workflow and answers with the number of its events.
func longChild(ctx context.Context, s spec) {
	node := must(embedded.Join(ctx, embedded.Options{Dir: s.Dir, Version: "bench"}))
	defer stopIn(node.Close)
	c := must(node.Dial(ctx, node.ClientOptions()))
	defer c.Close()
	w := worker.New(c, "long", worker.Options{})
	w.RegisterWorkflow(longWorkflow)
	for _, step := range ace.Steps() {
		w.RegisterActivityWithOptions(func(_ context.Context, in longState) (longState,
			error) {
			return in, nil
		},
			activity.RegisterOptions{Name: step.Activity()})
	}
	check(w.Start())
	defer w.Stop()
	o := client.StartWorkflowOptions{ID: "long", TaskQueue: "long"}
	run := must(c.ExecuteWorkflow(ctx, o, longWorkflow, historyEvents))
	check(run.Get(ctx, nil))
	d := must(c.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID()))
	answer(d.GetWorkflowExecutionInfo().GetHistoryLength())
}

// diffEvents is about how many events each of two compared histories has.
const diffEvents = 10_000

// diff measures acescope diff on two history files. Every tenth result differs, and the second
// history has one more step in the middle.
func diff(b *bench) {
	dir := b.tempDir()
	args := []string{"diff", "--json", "--data-dir", dir}
	size := 0
	for salt := range 2 {
		path, text := filepath.Join(dir, fmt.Sprintf("%d.json", salt)), diffHistory(salt)
		check(os.WriteFile(path, text, 0o600))
		args, size = append(args, path), size+len(text)
	}
	what := fmt.Sprintf("two histories of %d events (%d MB of JSON), read, compared, written", diffEvents,
		size/1e6)
	b.compare(b.size.runs, []figure{
		{what: what, unit: "s", target: "≤ 1"},
		{what: "user and system CPU", unit: "s"},
		{what: "peak memory", unit: "MB"},
	}, func() []float64 {
		r, err := b.run(nil, b.acescope, args...)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 4 {
			fail("exit code 4 expected, because the histories differ: %v", err)
		}
		if r.lines < diffEvents/3 {
			fail("acescope diff wrote only %d lines", r.lines)
		}
		return []float64{r.total.Seconds(), r.cpu.Seconds(), r.peakMB}
	}, nil)
}

// diffHistory returns the file of a history of activities. The salt changes IDs and every tenth
// result.
func diffHistory(salt int) []byte {
	h := replaytest.Begin("Long")
	task := h.Task()
	ids := map[string]any{"task_id": fmt.Sprint("long-", salt), "run_id": fmt.Sprint("run-", salt),
		"model": "m"}
	at := replaytest.Noon.Add(time.Duration(salt) * time.Hour)
	step := func(i, answer int) {
		input := map[string]any{"task": ids, "prompt": filler, "n": i}
		h.Done(h.Activity(task, fmt.Sprintf("step_%d", i%7), input), map[string]any{"answer": answer,
			"notes": []string{filler, "b", "c"}, "time": map[string]any{"started_at": at, "duration_ms": i}})
	}
	for i := 0; len(h.Events) < diffEvents; i++ {
		if i == 1500 && salt > 0 {
			step(i, -1)
		}
		answer := i
		if i%10 == 0 {
			answer += salt
		}
		step(i, answer)
	}
	var text bytes.Buffer
	check(historyfile.Write(&text, h.Events))
	return text.Bytes()
}

// step measures reading a long history and seeking in it.
func step(b *bench) {
	read := goBenchmark{pkg: "engine/temporal/historyfile", ours: "Read/ours-50000", peer: "Read/bare-50000"}
	b.goBench(read, []metric{{"read 50000 events", "s", "≤ 1.5×", "ns/op"}})
	b.goBench(goBenchmark{pkg: "engine/stepper", ours: "Step/load"}, []metric{
		{"fold 50000 events and keep checkpoints", "s", "", "ns/op"},
		{"memory of the checkpoints", "MB", "", "MB-held"},
	})
	b.goBench(goBenchmark{pkg: "engine/stepper", ours: "Step/seek"}, []metric{
		{"seek to any event, p99", "ms", "≤ 5", "p99-ms"},
	})
}

// verify compares the verifier with the bare replayer of the SDK, and two cores with one.
func verify(b *bench) {
	b.goBench(goBenchmark{pkg: "engine/temporal/replay", ours: "Verify/ours", peer: "Verify/bare",
		count: 200}, []metric{
		{"one history after another", "events/s", "≥ 0.9×", "events/s"},
	})
	const files = 1000
	dir := b.tempDir()
	b.progress("  exporting histories")
	for i, text := range b.taskHistories(8) {
		for n := i; n < files; n += 8 {
			check(os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.json", n)), text, 0o600))
		}
	}
	onCores := func(cores string) measure {
		return func() []float64 {
			env := []string{"GOMAXPROCS=" + cores}
			r := must(b.run(env, b.acescope, "replay", "verify", dir, "--parallel", cores, "--json"))
			var summary struct {
				Histories int     `json:"histories"`
				Rate      float64 `json:"events_per_second"`
			}
			check(json.Unmarshal(r.last, &summary))
			if summary.Histories != files {
				fail("%d of %d histories verified", summary.Histories, files)
			}
			return []float64{summary.Rate}
		}
	}
	b.compare(b.size.runs, []figure{
		{what: fmt.Sprintf("%d histories, two cores over one", files), unit: "events/s", target: "≥ 1.7×"},
	}, onCores("2"), onCores("1"))
}

// taskHistories runs tasks and returns their exported histories.
func (b *bench) taskHistories(count int) (texts [][]byte) {
	output := func(args ...string) []byte {
		out, err := exec.CommandContext(b.ctx, b.acescope, args...).Output()
		if err != nil {
			fail("acescope %s: %w", args[0], err)
		}
		return out
	}
	data := b.tempDir()
	dataset := filepath.Join(b.tempDir(), "tasks.jsonl")
	check(os.WriteFile(dataset, output("problems", "--count", fmt.Sprint(count), "--seed", "1"), 0o600))
	output("run", "--dataset", dataset, "--experiment", "v", "--data-dir", data)
	for i := range count {
		texts = append(texts, output("replay", "export", fmt.Sprintf("v-e1-%04d", i+1), "--data-dir", data))
	}
	return texts
}
