package detail

import (
	"os"
	"path/filepath"
	"testing"

	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/historyfile"
	"acescope/engine/trace"
	"acescope/engine/trace/adapter"
	"acescope/sources/histories"
)

// agents are the recordings of agents of several frameworks.
const agents = "../../engine/trace/adapter/testdata"

func recordedAgent(t testing.TB, path string) []*historypb.HistoryEvent {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := historyfile.Read(f)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %d histories, %v", path, len(all), err)
	}
	return all[0].Events
}

func tailOf(events []*historypb.HistoryEvent) (changes []histories.Change) {
	tail := NewTail("w", "r")
	for _, e := range events {
		changes = append(changes, tail.Apply(e)...)
	}
	return changes
}

// A tail reports every call of every recorded agent once, in the order of the history, and all tokens.
func TestTailReportsEveryCallOnce(t *testing.T) {
	paths, err := filepath.Glob(agents + "/*.json")
	if err != nil || len(paths) < 18 {
		t.Fatalf("%d recordings, %v", len(paths), err)
	}
	for _, path := range paths {
		events := recordedAgent(t, path)
		var f adapter.Folder
		for _, e := range events {
			f.Apply(e)
		}
		want := f.Trace()
		var sum trace.Sum
		seen := map[int]int{}
		last := int64(0)
		for _, c := range tailOf(events) {
			if c.Event < last {
				t.Errorf("%s: event %d after %d", path, c.Event, last)
			}
			if last = c.Event; c.Call == nil {
				continue
			}
			if seen[c.Call.N]++; c.Call.Operation == trace.Chat {
				sum.Add(c.Call)
			}
		}
		for _, c := range want.Calls {
			if seen[c.N] != 1 {
				t.Errorf("%s: call %d was reported %d times", path, c.N, seen[c.N])
			}
		}
		if sum.Tokens() != want.Sum.Tokens() || sum.Requests != want.Sum.Requests ||
			sum.Failed != want.Sum.Failed || len(seen) != len(want.Calls) {
			t.Errorf("%s: %+v in %d calls, want %+v in %d", path, sum, len(seen), want.Sum, len(want.Calls))
		}
	}
}
