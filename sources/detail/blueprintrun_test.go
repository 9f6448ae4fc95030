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

// recordedRuns are the histories of runs that the engine recorded, by name.
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

// At every event the detail is what the one fold says, and its steps, fields and log fit it.
func TestCourseIsTheFold(t *testing.T) {
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
			w.takeCourse()
			d := &w.detail
			if d.Course.Status != fold.Status || d.Phase.Phase != ace.Phase(fold.Status) || (d.Course.Result == nil) != (fold.Result == nil) {
				t.Fatalf("%s, event %d: the detail says %s, the fold %s", name, e.GetEventId(), d.Course.Status, fold.Status)
			}
			checkSteps(t, name, d)
			if runners.CourseFields(d.Course)[0].Value != runners.StatusText(fold.Status) || len(runners.CourseFields(d.Course)) != len(runners.CourseFields(&run.State{})) {
				t.Fatalf("%s, event %d: fields %+v", name, e.GetEventId(), runners.CourseFields(d.Course))
			}
		}
		d := &w.detail
		if len(runners.ResultFields(d.Course)) == 0 || !slices.ContainsFunc(d.Log, func(l runs.LogLine) bool { return l.Kind == "phase" && l.Text == runners.StatusText(d.Course.Status) }) {
			t.Errorf("%s: ended as %s, the log is %+v", name, d.Course.Status, d.Log)
		}
		if n := len(d.Course.Moves); n > 0 && !slices.ContainsFunc(d.Log, func(l runs.LogLine) bool { return strings.Contains(l.Text, "the run asks for another runner") }) {
			t.Errorf("%s: %d moves, and the log tells of none", name, n)
		}
	}
}

// checkSteps tells whether what is done comes before what is not, and one step at most is
// under way.
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
	if over := d.Course.Status.Over(); over != (running == 0) || over != (last.Status != ace.StatusPending) || over && string(last.Phase) != string(d.Course.Status) {
		t.Fatalf("%s, %s: steps %+v", name, d.Course.Status, d.Phase.Steps)
	}
}

// A run of nothing, as a foreign workflow of the same type may be, has fields all the same.
func TestCourseOfNothing(t *testing.T) {
	var s run.State
	if len(runners.CourseFields(&s)) == 0 || runners.ResultFields(&s) != nil || len(runners.CourseSteps(&s, time.Time{}, time.Time{})) != 4 {
		t.Error("a state that knows nothing")
	}
	s.Result = &run.Result{Output: []byte(`{"cut`), OutputIs: "invalid"}
	if got := runners.OutputText(s.Result); got != `{"cut` {
		t.Errorf("output %q", got)
	}
	s.Result = &run.Result{Output: []byte(`{"n":12345678901234567890,"a":[1]}`), OutputIs: "json"}
	if got := runners.OutputText(s.Result); !strings.Contains(got, "12345678901234567890") || !strings.Contains(got, "\n") {
		t.Errorf("output %q", got)
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"": "''", "a-b_c.py": "a-b_c.py", "{blueprint_dir}/x": "{blueprint_dir}/x", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME;": "'$HOME;'"} {
		if got := runners.ShellWord(word); got != want {
			t.Errorf("%q: %s, not %s", word, got, want)
		}
	}
}

// What the program writes is in the run's log as it is written, with the steps of the run,
// bounded, and lines that are none are left out.
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
	own := logs.RunLogsDir(dir, "run/x", "r")
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	at := w.detail.Start.Add(-time.Hour).UTC().Format(time.RFC3339Nano)
	lines := `{"at":"` + at + `","stream":"stdout","text":"one"}` + "\n" + `{"at":"` + at + `","stream":"stderr","text":"\u001b[2Jtwo"}` + "\nno JSON\n{\"stream\":\"else\",\"text\":\"x\"}\n" +
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
	if len(w.output) > histories.MaxOutputLines || d == nil || d.LogDropped == 0 || d.Log[len(d.Log)-1].Text != "many" || d.Log[len(d.Log)-1].Kind != "out" {
		t.Fatalf("%d lines are held, %d dropped", len(w.output), w.outputDropped)
	}
}

// outputNow counts the lines that came, for the test.
func (w *watcher) outputNow() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.output) + w.outputDropped
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

// Lines are merged by their times, none is lost, and what was published is not written to.
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

// A local activity is called by what it does, and a marker that is none by its name.
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
	if got := histories.MarkerTitle(&historypb.MarkerRecordedEventAttributes{MarkerName: "Version"}); got != "Version" {
		t.Errorf("%q", got)
	}
}
