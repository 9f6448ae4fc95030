package flowfork

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"acescope/engine/flow"
	"acescope/engine/temporal/fork"
	"acescope/engine/temporal/replay/replaytest"
)

// At every event of a recorded run, a fork reuses the operations that had ended, and executes the others.
func TestEveryEvent(t *testing.T) {
	for _, name := range []string{"flow-loop", "flow-parallel", "flow-fork", "flow-approval"} {
		events := replaytest.Recorded(t, name)
		rec, err := flow.ReadRecord(events)
		if err != nil {
			t.Fatal(err)
		}
		for n := int64(1); n <= int64(len(events)); n++ {
			p, err := New(name, events, Point{Event: n}, Changes{})
			if err != nil {
				t.Fatalf("%s, event %d: %v", name, n, err)
			}
			var reused []string
			for _, v := range rec.Values {
				if v.IsOperation() && v.Event <= n && v.Event > 0 {
					reused = append(reused, v.ID)
				}
			}
			if !slices.Equal(p.Reused, reused) {
				t.Errorf("%s, event %d: reuses %q, not %q", name, n, p.Reused, reused)
			}
			all := len(p.Reused) + len(p.Rerun)
			if want := rec.State.Operations; all != want || p.Unknown != 0 || len(p.Changed) != 0 {
				t.Errorf("%s, event %d: %d operations, not %d; %+v", name, n, all, want, p)
			}
		}
	}
}

// Decisions, signals and the ends of waits before the point are reused.
func TestWaits(t *testing.T) {
	p, err := New("w", replaytest.Recorded(t, "flow-approval"), Point{Step: "after"}, Changes{})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"wait ok": `"by":"Ann"`,
		"wait go":   `{"timed_out":false,"data":{"to":"all"}}`,
		"wait late": `{"timed_out":true}`, "wait pause": `{"timed_out":false}`} {
		if got := string(p.Input.Reuse[id]); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

func TestImpossible(t *testing.T) {
	loop := replaytest.Recorded(t, "flow-loop")
	prompt := "x"
	for name, c := range map[string]struct {
		history string
		at      Point
		changes Changes
		kind    error
		want    string
	}{
		"step":   {"flow-loop", Point{Step: "no"}, Changes{}, fork.ErrPoint, `did not begin a step "no"`},
		"event":  {"flow-loop", Point{Event: 999}, Changes{}, fork.ErrPoint, "the history has events 1 to"},
		"before": {"flow-loop", Point{Event: -1}, Changes{}, fork.ErrPoint, "event -1 not found"},
		"input": {"flow-loop", Point{Event: 1},
			Changes{Inputs: map[string]json.RawMessage{"names": json.RawMessage("1")}},
			fork.ErrNoChange, "names"},
		"continued": {"flow-continued", Point{Event: 1}, Changes{Source: &flow.Source{}}, fork.ErrNoChange,
			"the file cannot change"},
		"prompt": {"flow-continued", Point{Event: 1}, Changes{Prompt: &prompt}, fork.ErrNoChange,
			"the file cannot change"},
		"prompt at an event": {"flow-loop", Point{Event: 1}, Changes{Prompt: &prompt}, fork.ErrNoChange,
			"fork from the step that has it"},
		"prompt of a loop": {"flow-loop", Point{Step: "each"}, Changes{Prompt: &prompt}, fork.ErrNoChange,
			`step "each" has no prompt`},
	} {
		events := loop
		if c.history != "flow-loop" {
			events = replaytest.Recorded(t, c.history)
		}
		_, err := New("w", events, c.at, c.changes)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
