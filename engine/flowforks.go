package engine

import (
	"context"
	"errors"
	"fmt"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/flowfork"
)

// StartFlowFork starts a fork of a run of a flow under the next free number of its original, which does not
// change. It returns the ID of the run.
func StartFlowFork(ctx context.Context, e *Engine, p *flowfork.Plan, by string) (id, runID string,
	err error) {
	in := p.Input
	in.By = by
	root, _ := ace.ForkRoot(p.Name())
	first := e.lastFork(ctx, flow.IDPrefix+root) + 1
	for n := first; n < first+forkTries; n++ {
		id = ace.ForkID(root, n)
		if runID, err = StartFlow(ctx, e, id, in); !errors.Is(err, ErrExists) {
			return id, runID, err
		}
	}
	return "", "", fmt.Errorf("the IDs %s to %s are all in use",
		ace.ForkID(root, first), ace.ForkID(root, first+forkTries-1))
}
