package flowtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"acescope/engine/flow"
	"acescope/engine/temporal/history"
	"acescope/engine/temporal/replay"
)

// Outcomes of [Check].
const (
	Unchanged  = "unchanged"  // the run has the same file
	Same       = "same"       // the run would have done the same so far
	Differs    = "differs"    // the run would have done something else
	Unverified = "unverified" // the history cannot be verified
)

// Verdict is the result of [Check].
type Verdict struct {
	Outcome    string      `json:"outcome"`
	Difference *Difference `json:"difference,omitempty"`
	Why        string      `json:"why,omitempty"` // of [Unverified]
}

// Check reports whether a run would have executed the same operations with a changed flow. It replays the
// history with the changed source and the workflow code of the verifier; then it compares the parameters of
// operations, which a replay does not compare.
func Check(ctx context.Context, v *replay.Verifier, src flow.Source,
	events []*historypb.HistoryEvent) Verdict {
	rec, err := flow.ReadRecord(events)
	if err != nil {
		return Verdict{Outcome: Unverified, Why: err.Error()}
	}
	if rec.Input.Digest == src.Digest() {
		return Verdict{Outcome: Unchanged}
	}
	changed, err := substitute(events, rec.Input, src)
	if err != nil {
		return Verdict{Outcome: Unverified, Why: err.Error()}
	}
	switch verdict := v.Verify(ctx, changed); {
	case verdict.Outcome == replay.Unverified:
		return Verdict{Outcome: Unverified, Why: verdict.Why}
	case verdict.Divergence != nil:
		return Verdict{Outcome: Differs, Difference: place(events, *verdict.Divergence)}
	}
	if history.NextRun(events[len(events)-1]) != "" { // a simulation does not continue as new
		return Verdict{Outcome: Same}
	}
	out, err := Replay(src, rec)
	if err != nil {
		return Verdict{Outcome: Unverified, Why: err.Error()}
	}
	if d := Compare(rec, out); d != nil {
		return Verdict{Outcome: Differs, Difference: d}
	}
	return Verdict{Outcome: Same}
}

// substitute returns the history of a run as if it had begun with another source.
func substitute(
	events []*historypb.HistoryEvent, in flow.Input, src flow.Source,
) ([]*historypb.HistoryEvent, error) {
	in.Source = src
	in.Digest = src.Digest()
	in.Language = flow.Language
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(json.RawMessage(data))
	if err != nil {
		return nil, err
	}
	first := proto.Clone(events[0]).(*historypb.HistoryEvent)
	first.GetWorkflowExecutionStartedEventAttributes().Input = payloads
	out := slices.Clone(events)
	out[0] = first
	return out, nil
}

// place names the step of a divergence: the step of the operation, or else the last step that was open.
func place(events []*historypb.HistoryEvent, d replay.Divergence) *Difference {
	out := &Difference{}
	for _, c := range []*replay.Command{d.Actual, d.Expected} {
		if c != nil && out.Operation == "" && flow.IsOperation(c.ID) {
			out.Operation = c.ID
			out.Step = flow.Operation{ID: c.ID}.Path()
		}
	}
	if out.Step == "" {
		until := slices.IndexFunc(events, func(
			e *historypb.HistoryEvent) bool {
			return e.GetEventId() == d.EventID
		})
		for _, s := range flow.Fold(events[:until+1]).Steps {
			if !s.Status.Over() {
				out.Step = s.Path
			}
		}
	}
	out.Message = fmt.Sprintf("step %s: at event %d the run has %s, the changed file does %s", out.Step,
		d.EventID,
		command(d.Expected), command(d.Actual))
	return out
}

// command names an operation by its ID alone.
func command(c *replay.Command) string {
	if c != nil && flow.IsOperation(c.ID) {
		return "operation " + c.ID
	}
	return c.String()
}
