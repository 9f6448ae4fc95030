package compare

import (
	"bytes"
	"os"
	"slices"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/temporal/history"
)

// flowRun returns the recorded run of a flow with texts of its payloads replaced.
func flowRun(t *testing.T, replace ...string) []*historypb.HistoryEvent {
	t.Helper()
	f, err := os.Open("../../../sources/flows/testdata/release.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range h.GetEvents() {
		payloads := slices.Concat(history.FoldedPayloads(e),
			e.GetActivityTaskScheduledEventAttributes().GetInput().GetPayloads())
		for _, d := range e.GetMarkerRecordedEventAttributes().GetDetails() {
			payloads = append(payloads, d.GetPayloads()...)
		}
		for _, p := range payloads {
			for i := 0; i+1 < len(replace); i += 2 {
				p.Data = bytes.ReplaceAll(p.Data, []byte(replace[i]), []byte(replace[i+1]))
			}
		}
	}
	return h.GetEvents()
}

// Of two runs of a flow, operations and steps without one are named after the step and differ where it
// differs, and not in their times, keys and notes.
func TestFlowRuns(t *testing.T) {
	changed := func(a, b []*historypb.HistoryEvent) (keys []string) {
		r := Of(Side{Runs: [][]*historypb.HistoryEvent{a}}, Side{Runs: [][]*historypb.HistoryEvent{b}},
			Options{})
		for _, p := range r.Pairs {
			if Differs(p.Status) {
				keys = append(keys, p.Status+" "+(p.A).Key)
			}
		}
		return keys
	}
	if got := changed(flowRun(t), flowRun(t, "01a20671-ba59", "01a20671-ffff", `"time":"2026-`,
		`"time":"2027-`,
		`"executed_at":"2026-`, `"executed_at":"2027-`)); got != nil {
		t.Errorf("the same run at another time: %q", got)
	}
	got := changed(flowRun(t), flowRun(t, `"plan 1.2.0`, `"plan 2.0.0`, "approved: fine", "rejected: no"))
	want := []string{"changed activity operation plan", "changed step decide #1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
