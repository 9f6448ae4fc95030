package compare

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"acescope/engine/temporal/replay/replaytest"

	historypb "go.temporal.io/api/history/v1"
)

// runs compares two histories.
func runs(a, b []*historypb.HistoryEvent) *Diff {
	return Of(Side{Runs: [][]*historypb.HistoryEvent{a}}, Side{Runs: [][]*historypb.HistoryEvent{b}},
		Options{})
}

func pairOf(d *Diff, key string) *Pair {
	for i := range d.Pairs {
		p := &d.Pairs[i]
		if p.A != nil && p.A.Key == key || p.B != nil && p.B.Key == key {
			return p
		}
	}
	return nil
}

// A run equals itself.
func TestSameRun(t *testing.T) {
	for _, name := range replaytest.RecordedNames {
		d := runs(replaytest.Recorded(t, name), replaytest.Recorded(t, name))
		if d.Differs() || len(d.Pairs) < 3 || d.Counts[Same] != len(d.Pairs) {
			t.Errorf("%s: %+v of %d: %v", name, d.First, len(d.Pairs), d.Counts)
		}
		for _, m := range d.Metrics {
			if m.A != m.B {
				t.Errorf("%s: %+v", name, m)
			}
		}
	}
}

// Two tasks are aligned step by step, and their differences have paths.
func TestTwoTasks(t *testing.T) {
	d := runs(replaytest.Recorded(t, "right"), replaytest.Recorded(t, "wrong"))
	for _, key := range []string{"start AceTaskWorkflow", "activity run_generator #1",
		"activity run_skills_session #1", "activity persist_results #1", "end run"} {
		p := pairOf(d, key)
		if p == nil || p.A == nil || p.B == nil {
			t.Fatalf("%s is not in both: %+v", key, p)
		}
	}
	start := pairOf(d, "start AceTaskWorkflow")
	paths := map[string]bool{}
	for _, c := range start.Input {
		paths[c.Path] = true
	}
	if start.Status != Changed || paths["/task_id"] || !paths["/label"] || d.First.Pair != 1 ||
		d.First.Path != "/label" {
		t.Errorf("start: %s %v, first %+v", start.Status, paths, d.First)
	}
}

func TestFailedAgainstCorrect(t *testing.T) {
	d := runs(replaytest.Recorded(t, "right"), replaytest.Recorded(t, "failed"))
	if p := pairOf(d, "activity run_reflector #1"); p == nil || p.Status != OnlyA {
		t.Errorf("reflector: %+v", p)
	}
	if p := pairOf(d, "end run"); p == nil || p.Status != Changed || p.B.Status != Failed || p.B.Error == "" {
		t.Errorf("end: %+v", p)
	}
}

// runOf returns a run of activities, each given as "name=result".
func runOf(activities ...string) []*historypb.HistoryEvent {
	run := started("W", "", "", nil)
	for _, a := range activities {
		name, result, _ := strings.Cut(a, "=")
		run.activity(name, nil, j(result))
	}
	return run.Events
}

// A step inserted at the front moves nothing, and a moved step is still the same step.
func TestAlignment(t *testing.T) {
	d := runs(runOf("a=1", "b=2", "c=3"), runOf("x=0", "a=1", `b={"v":[1,2]}`, "c=3"))
	var statuses []string
	for _, p := range d.Pairs[1:] {
		key := ""
		if p.A != nil {
			key = p.A.Name
		} else {
			key = p.B.Name
		}
		statuses = append(statuses, key+" "+p.Status)
	}
	if got := strings.Join(statuses, ", "); got != "x only_b, a same, b changed, c same" ||
		d.First.Pair != 2 {
		t.Errorf("%s, first %+v", got, d.First)
	}
	moved := runs(runOf("a=1", "b=2"), runOf("b=2", "a=1"))
	for _, p := range moved.Pairs {
		if p.A == nil || p.B == nil {
			t.Errorf("%+v is not paired", p)
		}
	}
}

func TestChangesHavePaths(t *testing.T) {
	d := runs(runOf(`a={"list":[1,2,3],"same":true,"gone":1}`),
		runOf(`a={"list":[1,9,3],"same":true,"new":{"x":1}}`))
	p := pairOf(d, "activity a #1")
	got := map[string]string{}
	for _, c := range p.Result {
		got[c.Path] = string(c.A) + "→" + string(c.B)
	}
	want := map[string]string{"/list/1": "2→9", "/gone": "1→", "/new": `→{"x":1}`}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Payloads that are not JSON or too long are compared as a whole, and changes beyond the limit
// are counted.
func TestPayloadLimits(t *testing.T) {
	d := runs(runOf("a=not json"), runOf("a=nor this"))
	if p := pairOf(d, "activity a #1"); p.Status != Changed || len(p.Result) != 1 || p.Result[0].Path != "" {
		t.Errorf("%+v", p)
	}
	list := func(add int) string {
		var v []int
		for i := range 1000 {
			v = append(v, i+add)
		}
		data, _ := json.Marshal(v)
		return string(data)
	}
	if p := pairOf(runs(runOf("a="+list(0)), runOf("a="+list(5000))),
		"activity a #1"); len(p.Result) != MaxChanges || p.More != 1000-MaxChanges {
		t.Errorf("%d changes, %d more", len(p.Result), p.More)
	}
}

func FuzzRuns(f *testing.F) {
	f.Add("a=1,b=2", "b=2,a=1")
	f.Add(`a={"x":[1]}`, `a={"x":[1,2],"y":null}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		d := runs(runOf(strings.Split(a, ",")...), runOf(strings.Split(b, ",")...))
		if a == b && d.Differs() {
			t.Errorf("%q differs from itself at %+v", a, d.First)
		}
	})
}

// BenchmarkRuns compares two runs of 10,000 events of which every tenth result differs.
func BenchmarkRuns(b *testing.B) {
	names := func(salt int) (out []string) {
		for i := range 5000 {
			v := i
			if i%10 == 0 {
				v += salt
			}
			out = append(out, fmt.Sprintf(
				`step%d={"answer":%d,"notes":["a","b","c"],"usage":{"input_tokens":%d}}`, i%7, v, i))
		}
		return out
	}
	x, y := runOf(names(0)...), runOf(append([]string{"first=1"}, names(3)...)...)
	for b.Loop() {
		if d := runs(x, y); len(d.Pairs) < 5000 {
			b.Fatal(len(d.Pairs))
		}
	}
}
