package sources

import (
	"os"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"acescope/sources/histories"
)

// TestFlowTimeline: the spans of a flow are named after its steps, timers after what they wait for, and
// decisions after the step that they decide.
func TestFlowTimeline(t *testing.T) {
	f, err := os.Open("flows/testdata/release.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range histories.Timeline(histories.NewEventLog("w", "r", h.GetEvents(), time.Now()), nil) {
		names = append(names, s.Kind.String()+" "+s.Name)
	}
	for _, want := range []string{"activity build_linux [sides/linux]", "activity check [each/29]",
		"timer wait cool for 2s",
		"signal decide approves decide: fine"} {
		if !slices.Contains(names, want) {
			t.Errorf("no span %q in %q", want, names)
		}
	}
}
