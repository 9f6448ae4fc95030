package flow

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/run"
	"acescope/engine/runner"
)

// drained takes all signals from a channel; false where there were none.
func drained(c workflow.ReceiveChannel) (some bool) {
	for {
		var raw converter.RawValue // of a signal without an argument nothing is set
		if !c.ReceiveAsync(&raw) {
			return some
		}
		some = true
	}
}

// tellAgain tells a dispatcher that knows nothing what the run wants, or has.
func (r *running) tellAgain() {
	drained(r.again)
	switch {
	case r.state.Status == run.Pending:
		r.ask()
	case r.state.Claim != nil && r.state.Input.Queue == "":
		notice := r.state.Holds()
		notice.Request.Execution = workflow.GetInfo(r.calm).WorkflowExecution.RunID
		if err := notify(r.calm, runner.Notices{notice}, toldWithin); err != nil {
			workflow.GetLogger(r.calm).Warn("the dispatcher was not told again", "error", err)
		}
	}
}
