package flows

import (
	"bytes"
	"testing"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/flow"
	flowsource "acescope/sources/flows"
)

// TestStepsEndBeforeTheirBlock checks that a block is reported after the steps in it, even if they end at the
// same event.
func TestStepsEndBeforeTheirBlock(t *testing.T) {
	var out bytes.Buffer
	p := printer{a: &cli.App{Err: &out}, seen: map[string]flow.Status{}}
	var r flowsource.Run
	apply := func(status flow.Status, paths ...string) {
		for _, path := range paths {
			r.State.Apply(path, time.Time{}, flow.Fact{Status: status})
		}
		p.changed(r)
	}
	apply(flow.StepRunning, "each", "each/1", "each/1/test", "each/2", "each/2/test", "each2")
	apply(flow.StepCompleted, "each/1/test", "each/1")
	apply(flow.StepCompleted, "each2", "each/2/test", "each/2", "each")
	want := "acescope: completed each/1/test\nacescope: completed each/1\n" +
		"acescope: completed each/2/test\nacescope: completed each/2\nacescope: completed each\n" +
		"acescope: completed each2\n"
	if out.String() != want {
		t.Errorf("%s\nwant:\n%s", out.String(), want)
	}
}
