package detail

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/tasks/run"
	"acescope/sources/cluster"
	"acescope/sources/histories"
	"acescope/sources/logs"
	"acescope/sources/runners"
	"acescope/sources/runs"
)

// recordedRuns returns the recorded histories of blueprint runs, by name.
func recordedRuns(t *testing.T) map[string][]*historypb.HistoryEvent {
	t.Helper()
	files, err := filepath.Glob("../../engine/workflows/testdata/run-*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded runs: %v", err)
	}
	all := map[string][]*historypb.HistoryEvent{}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = h.GetEvents()
	}
	return all
}

// At every event the detail equals the fold, and its steps, fields and log agree with it.
func TestBlueprintRunIsTheFold(t *testing.T) {
	for name, events := range recordedRuns(t) {
		w := newWatcher(linkTo(cluster.Deps{}), runs.ID{WorkflowID: "run/x", RunID: "r"}, nil)
		var fold run.State
		var decoder run.Decoder
		for _, e := range events {
			if err := w.take(e); err != nil {
				t.Fatal(err)
			}
			if fact, ok, _ := decoder.Fact(e); ok {
				fold.Apply(fact)
			}
			w.of.take(&w.detail)
			d := &w.detail
			if d.BlueprintRun.Status != fold.Status || d.Phase.Phase != ace.Phase(fold.Status) ||
				(d.BlueprintRun.Result == nil) != (fold.Result == nil) {
				t.Fatalf("%s, event %d: the detail says %s, the fold %s", name, e.GetEventId(),
					d.BlueprintRun.Status, fold.Status)
			}
			checkSteps(t, name, &d.Detail)
			if runners.Fields(d.BlueprintRun)[0].Value != runners.StatusText(fold.Status) ||
				len(runners.Fields(d.BlueprintRun)) != len(runners.Fields(&run.State{})) {
				t.Fatalf("%s, event %d: fields %+v", name, e.GetEventId(), runners.Fields(d.BlueprintRun))
			}
		}
		d := &w.detail
		if len(runners.ResultFields(d.BlueprintRun)) == 0 ||
			!slices.ContainsFunc(d.Log, func(l runs.LogLine) bool {
				return l.Kind == "phase" && l.Text == runners.StatusText(d.BlueprintRun.Status)
			}) {
			t.Errorf("%s: ended as %s, the log is %+v", name, d.BlueprintRun.Status, d.Log)
		}
		if n := len(d.BlueprintRun.Moves); n > 0 && !slices.ContainsFunc(d.Log, func(l runs.LogLine) bool {
			return strings.Contains(l.Text, "the run asks for another runner")
		}) {
			t.Errorf("%s: %d moves, but the log has no line about them", name, n)
		}
	}
}

// checkSteps checks that finished steps come before others, and that at most one step is running.
func checkSteps(t *testing.T, name string, d *histories.Detail) {
	t.Helper()
	running, pending := 0, false
	for _, st := range d.Phase.Steps[:3] {
		if st.Time != nil && st.Time.DurationMS < 0 || pending && st.Status != ace.StatusPending {
			t.Fatalf("%s: steps %+v", name, d.Phase.Steps)
		}
		pending = st.Status == ace.StatusPending
		if st.Status == ace.StatusRunning {
			running++
		}
	}
	last := d.Phase.Steps[3]
	if over := d.BlueprintRun.Status.Over(); over != (running == 0) ||
		over != (last.Status != ace.StatusPending) || over &&
		string(last.Phase) != string(d.BlueprintRun.Status) {
		t.Fatalf("%s, %s: steps %+v", name, d.BlueprintRun.Status, d.Phase.Steps)
	}
}

// A run without facts, such as a foreign workflow of the same type, has all fields.
func TestEmptyBlueprintRun(t *testing.T) {
	var s run.State
	if len(runners.Fields(&s)) == 0 || runners.ResultFields(&s) != nil ||
		len(runners.Steps(&s, time.Time{}, time.Time{})) != 4 {
		t.Error("a state that knows nothing")
	}
	s.Result = &run.Result{Output: []byte(`{"cut`), OutputIs: "invalid"}
	if got := runners.OutputText(s.Result); got != `{"cut` {
		t.Errorf("output %q", got)
	}
	s.Result = &run.Result{Output: []byte(`{"n":12345678901234567890,"a":[1]}`), OutputIs: "json"}
	if got := runners.OutputText(s.Result); !strings.Contains(got, "12345678901234567890") ||
		!strings.Contains(got, "\n") {
		t.Errorf("output %q", got)
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"": "''", "a-b_c.py": "a-b_c.py",
		"{blueprint_dir}/x": "{blueprint_dir}/x", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME;": "'$HOME;'"} {
		if got := runners.ShellWord(word); got != want {
			t.Errorf("%q: %s, not %s", word, got, want)
		}
	}
}

// The output of the program is added to the run's log, bounded; invalid lines are skipped.
func TestOutputIsFollowed(t *testing.T) {
	events := recordedRuns(t)["run-completed"]
	dir := t.TempDir()
	w := newWatcher(linkTo(cluster.Deps{DataDir: dir}), runs.ID{WorkflowID: "run/x", RunID: "r"}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.followOutput(ctx) }()
	for _, e := range events {
		if err := w.take(e); err != nil {
			t.Fatal(err)
		}
	}
	own := logs.RunDir(dir, "run/x", "r")
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	at := w.detail.Start.Add(-time.Hour).UTC().Format(time.RFC3339Nano)
	lines := `{"at":"` + at + `","stream":"stdout","text":"one"}` + "\n" + `{"at":"` + at +
		`","stream":"stderr","text":"\u001b[2Jtwo"}` + "\nno JSON\n{\"stream\":\"else\",\"text\":\"x\"}\n" +
		`{"at":"` + at + `","stream":"stdout","text":"","note":"there is more"}` + "\n"
	for range 2 * histories.MaxOutputLines {
		lines += `{"at":"2099-01-01T00:00:00Z","stream":"stdout","text":"many"}` + "\n"
	}
	for _, f := range []string{"execute_run-4-1.jsonl", "other-1-1.jsonl"} {
		if err := os.WriteFile(filepath.Join(own, f), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for w.outputNow() < histories.MaxOutputLines+3 {
		<-w.news
	}
	cancel()
	<-done
	d := w.takeDirty()
	if len(w.output.lines) > histories.MaxOutputLines || d == nil || d.LogDropped == 0 ||
		d.Log[len(d.Log)-1].Text != "many" || d.Log[len(d.Log)-1].Kind != "out" {
		t.Fatalf("%d lines are held, %d dropped", len(w.output.lines), w.output.dropped)
	}
}

// outputNow returns the number of lines.
func (w *watcher) outputNow() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.output.lines) + w.output.dropped
}

func TestOutputLine(t *testing.T) {
	for raw, want := range map[string]runs.LogLine{
		`{"stream":"stdout","text":"a"}`:                       {Kind: "out", Text: "a"},
		`{"stream":"stderr","text":"b"}`:                       {Kind: "err", Text: "b"},
		`{"stream":"stderr","text":"","note":"left out here"}`: {Kind: "status", Text: "left out here"},
	} {
		if got, ok := histories.OutputLine([]byte(raw)); !ok || got != want {
			t.Errorf("%s: %+v", raw, got)
		}
	}
	for _, raw := range []string{"", "{", "[]", `{"stream":"in","text":"x"}`, `"x"`} {
		if _, ok := histories.OutputLine([]byte(raw)); ok {
			t.Errorf("%s is taken for a line", raw)
		}
	}
}

// Lines are merged by time, no line is lost, and published lines are not changed.
func TestWithOutput(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	log := []runs.LogLine{{At: at(1), Text: "a"}, {At: at(3), Text: "c"}, {At: at(5), Text: "e"}}
	output := []runs.LogLine{{At: at(2), Text: "b"}, {At: at(4), Text: "d"}, {At: at(6), Text: "f"}}
	got := ""
	for _, l := range histories.WithOutput(log[:3:3], output) {
		got += l.Text
	}
	if got != "abcdef" || log[1].Text != "c" || output[0].Text != "b" {
		t.Errorf("%q", got)
	}
}

// A local activity is named by its type, another marker by its name.
func TestMarkerTitle(t *testing.T) {
	seen := map[string]bool{}
	for _, events := range recordedRuns(t) {
		for _, e := range events {
			if a := e.GetMarkerRecordedEventAttributes(); a != nil {
				seen[histories.MarkerTitle(a)] = true
			}
		}
	}
	if !seen["tell_dispatcher"] || seen["LocalActivity"] {
		t.Errorf("titles %v", seen)
	}
	version := &historypb.MarkerRecordedEventAttributes{MarkerName: "Version"}
	if got := histories.MarkerTitle(version); got != "Version" {
		t.Errorf("%q", got)
	}
}
