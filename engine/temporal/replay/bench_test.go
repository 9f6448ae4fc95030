package replay_test

import (
	"log/slog"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/temporal/replay"
	"acescope/engine/temporal/replay/replaytest"
	"acescope/engine/workflows"
)

// Every recorded history of the real workflows replays. Strict may only report that the
// current code adds to the result of a run.
func TestRealWorkflows(t *testing.T) {
	v := &replay.Verifier{Register: workflows.Register}
	strict := &replay.Verifier{Register: workflows.Register, Strict: true}
	for _, name := range replaytest.RecordedNames {
		events := replaytest.Recorded(t, name)
		if got := v.Verify(t.Context(), events); got.Outcome != replay.Deterministic {
			t.Errorf("%s: %+v %+v", name, got, got.Divergence)
		}
		if got := strict.Verify(t.Context(), events); got.Divergence != nil &&
			(got.Outcome != replay.Drifted || got.Divergence.EventID != int64(len(events))) {
			t.Errorf("%s, strictly: %+v %+v", name, got, got.Divergence)
		}
	}
}

type known struct{ worker.WorkflowReplayer }

func (known) RegisterDynamicWorkflow(any, workflow.DynamicRegisterOptions) {}

// BenchmarkVerify compares events per second with the bare replayer on the same histories.
func BenchmarkVerify(b *testing.B) {
	var all []*historypb.History
	events := 0
	for _, name := range replaytest.RecordedNames {
		h := &historypb.History{Events: replaytest.Recorded(b, name)}
		all = append(all, h)
		events += len(h.Events)
	}
	b.Run("ours", func(b *testing.B) {
		v := &replay.Verifier{Register: workflows.Register}
		for b.Loop() {
			for _, h := range all {
				if got := v.Verify(b.Context(), h.Events); got.Outcome != replay.Deterministic {
					b.Fatalf("%+v", got)
				}
			}
		}
		b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("bare", func(b *testing.B) {
		log := sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
		for b.Loop() {
			for _, h := range all {
				r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{})
				if err != nil {
					b.Fatal(err)
				}
				workflows.Register(known{r})
				if err := r.ReplayWorkflowHistory(log, h); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
	})
}
