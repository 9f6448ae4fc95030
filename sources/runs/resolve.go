package runs

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/sources/cluster"
)

// ErrNotFound means that no run has the name.
var ErrNotFound = ace.NotFound{Kind: "run", Hint: `run "acescope list"`}

var runIDPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// SplitName splits ID@RUN, which names one of several runs of a workflow. run is "" for any other name.
func SplitName(name string) (id, run string) {
	if at := strings.LastIndexByte(name, '@'); at > 0 && runIDPattern.MatchString(name[at+1:]) {
		return name[:at], name[at+1:]
	}
	return name, ""
}

// Resolve finds the newest run of a task, an experiment, a session, a flow, a blueprint or a workflow. ID@RUN
// selects one run of it. The ID of a session that is not on the engine stands for its newest blueprint run.
func Resolve(
	ctx context.Context, c client.Client, name string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	id, runID := SplitName(name)
	for _, workflowID := range []string{
		ace.WorkflowID(ace.TaskIDOf(id)), ace.ExperimentWorkflowID(id), session.WorkflowID(id),
		flow.IDPrefix + id, run.WorkflowID(id), id,
	} {
		if workflowID == "" {
			continue
		}
		r, err := c.DescribeWorkflowExecution(ctx, workflowID, runID)
		if err == nil || !cluster.NotFound(err) {
			return r, err
		}
	}
	if runID != "" {
		return nil, ErrNotFound.Of(name)
	}
	if workflowID := newestIn(ctx, c, id); workflowID != "" {
		return c.DescribeWorkflowExecution(ctx, workflowID, "")
	}
	return nil, ErrNotFound.Near(id, near(ctx, c, id))
}

// newestIn returns the workflow ID of the newest blueprint run in a session, or "".
func newestIn(ctx context.Context, c client.Client, sessionID string) (workflowID string) {
	if !run.ValidName(sessionID) {
		return ""
	}
	query := "WorkflowType = " + Quote(run.Workflow) + " AND " + ace.AttrTask + " = " + Quote(sessionID)
	_ = ListNewest(ctx, c, query, 1, func(r Run) error {
		workflowID = r.WorkflowID
		return nil
	})
	return workflowID
}

// near returns up to three similar ids of the newest tasks and experiments.
func near(ctx context.Context, c client.Client, id string) []string {
	var ids []string
	_ = List(ctx, c, "", PageSize, func(r Run) error {
		if name := cmp.Or(r.TaskID, r.Experiment); name != "" {
			ids = append(ids, name)
		}
		return nil
	})
	return Near(id, ids)
}

// Near returns up to three similar names, most similar first.
func Near(id string, names []string) []string {
	type hit struct {
		id    string
		score int
	}
	var hits []hit
	seen := map[string]bool{}
	for _, name := range names {
		if d := ace.Distance(id, name); !seen[name] && d <= max(2, len(id)/3) {
			hits = append(hits, hit{name, d})
		}
		seen[name] = true
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(a.score-b.score, cmp.Compare(a.id, b.id)) })
	var like []string
	for _, h := range hits[:min(3, len(hits))] {
		like = append(like, h.id)
	}
	return like
}
