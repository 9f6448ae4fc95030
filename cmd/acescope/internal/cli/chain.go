package cli

import (
	"context"
	"errors"
	"fmt"

	"acescope/engine"
	"acescope/engine/temporal/historyfile"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// ChainLine says which run of a chain one is in.
type ChainLine struct {
	Number int      `json:"number"` // from 1, the oldest that is kept
	RunIDs []string `json:"run_ids"`
	Before string   `json:"before,omitempty"` // why what comes before is not there
	After  string   `json:"after,omitempty"`  // why what comes after is not there
}

// chainLineOf is nil for a run that neither continues another nor is continued.
func chainLineOf(l cluster.Line) *ChainLine {
	if len(l.RunIDs) < 2 && l.Before == "" && l.After == "" {
		return nil
	}
	return &ChainLine{Number: l.At + 1, RunIDs: l.RunIDs, Before: l.Before, After: l.After}
}

// String is "run 2 of 3 of its chain", and what of the chain is gone.
func (c *ChainLine) String() string {
	text := fmt.Sprintf("run %d of %d of its chain", c.Number, len(c.RunIDs))
	for _, gone := range []string{c.Before, c.After} {
		if gone != "" {
			text += "; " + gone
		}
	}
	return text
}

// ReadChain reads the histories of a run and of those that it continues or is continued
// as, the oldest first. Of a chain that is not whole the error of the last says so.
func (a *App) ReadChain(ctx context.Context, e *engine.Engine, id, runID string) ([]RunHistory, error) {
	run, err := runs.Resolve(ctx, e.Client, id)
	if err != nil {
		return nil, err
	}
	workflowID := run.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId()
	chain, err := cluster.ReadChain(ctx, e.Client, e.Namespace(), workflowID, runID, false, nil)
	if err != nil {
		return nil, err
	}
	var list []RunHistory
	for i, events := range chain.Runs {
		list = append(list, RunHistory{Source: workflowID, Number: i + 1, History: historyfile.History{Events: events},
			Chain: chainLineOf(cluster.Line{RunIDs: chain.RunIDs, At: i, Before: chain.Before, After: chain.Partial})})
	}
	if gone := chain.Gone(); gone != "" {
		list[len(list)-1].ReadErr = errors.New("the chain is not whole: " + gone)
	}
	return list, nil
}
