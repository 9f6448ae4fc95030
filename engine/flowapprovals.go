package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/api/workflowservice/v1"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/tasks/mcp"
	"acescope/engine/tasks/run"
)

// maxApprovals bounds the runs whose steps [FlowApprovals] reads.
const maxApprovals = 100

// FlowApprovals implements [mcp.Approvals] for the runs of flows of an engine.
type FlowApprovals struct{ Engine *Engine }

// Waiting implements [mcp.Approvals]. It omits runs whose history cannot be read.
func (f FlowApprovals) Waiting(ctx context.Context) (list []mcp.Approval, more bool, err error) {
	query := fmt.Sprintf("WorkflowType = %s AND ExecutionStatus = 'Running' AND %s = %s",
		strconv.Quote(flow.Workflow),
		ace.AttrPhase, strconv.Quote(flow.PhaseApproval))
	answer, err := f.Engine.Client.ListWorkflow(ctx,
		&workflowservice.ListWorkflowExecutionsRequest{Query: query,
			PageSize: maxApprovals})
	if err != nil {
		return nil, false, err
	}
	for _, info := range answer.GetExecutions() {
		id := info.GetExecution().GetWorkflowId()
		s, err := FlowState(ctx, f.Engine, id, info.GetExecution().GetRunId())
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err != nil {
			more = true
			continue
		}
		for _, step := range s.Waiting() {
			list = append(list, mcp.Approval{RunID: strings.TrimPrefix(id, flow.IDPrefix), Flow: s.Name,
				Step:    step.Path,
				Message: step.Detail, Since: step.Start.UTC()})
		}
	}
	slices.SortStableFunc(list, func(a, b mcp.Approval) int { return a.Since.Compare(b.Since) })
	return list, more || len(answer.GetNextPageToken()) > 0, nil
}

// Decide implements [mcp.Approvals].
func (f FlowApprovals) Decide(ctx context.Context, d mcp.Decision) (mcp.Decision, error) {
	decided, err := DecideFlow(ctx, f.Engine, flow.IDPrefix+d.RunID, "",
		flow.Decision{Step: d.Step, Approved: d.Approved, By: d.By, Comment: d.Comment})
	d.Step = decided.Step
	if errors.Is(err, flow.ErrNotRunning) || errors.Is(err, flow.ErrNotWaiting) {
		err = fmt.Errorf("%w: %w", run.ErrNotFound, err)
	}
	return d, err
}
