package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"acescope/engine/ace"
	"acescope/engine/activities"
	"acescope/engine/agents/session/host"
	"acescope/engine/flow"
	"acescope/engine/internal/process"
	"acescope/engine/internal/redact"
	"acescope/engine/workflows"
)

// FlowQueue returns the task queue for programs and agents of flows whose directory is on this machine. It is
// "" for the server of the data directory, because all of its workers are on this machine.
func FlowQueue(e *Engine) string {
	if e.Node() != nil {
		return ""
	}
	return strings.Replace(host.Queue(process.Hostname(), e.dir), "session.", "acescope-flow.", 1)
}

// serveFlows starts the worker of programs and agents of flows on this machine, for a cluster.
func (s *workerSet) serveFlows(e *Engine, acts *activities.Activities) error {
	queue := FlowQueue(e)
	if queue == "" || acts.Withheld != "" {
		return nil
	}
	s.flows = worker.New(e.workerClient(), queue, workerOptions(MaxActivities))
	if err := acts.RegisterOperations(s.flows); err != nil {
		return err
	}
	return s.flows.Start()
}

// ErrSecret means that an input looks like a secret. Inputs are recorded, so secrets are refused.
var ErrSecret = errors.New("looks like a secret")

// StartFlow starts a run of a flow and returns its run ID. It returns [ErrExists] if the ID is in use, and
// [ErrSecret]. Inputs are checked by the caller, see [flow.Flow.CheckInputs].
func StartFlow(ctx context.Context, e *Engine, id string, in flow.Input) (runID string, err error) {
	if !bytes.Equal(redact.New().Line(in.Inputs), in.Inputs) {
		return "", fmt.Errorf(
			"an input %w: inputs are recorded; programs and models get keys from the environment "+
				"of the worker", ErrSecret)
	}
	in.Digest = in.Source.Digest()
	in.Language = flow.Language
	memo := map[string]any{flow.MemoName: in.Name, ace.MemoBy: in.By}
	if in.Fork != nil {
		memo[ace.MemoFork] = in.Fork
	}
	o := client.StartWorkflowOptions{ID: flow.IDPrefix + id,
		TypedSearchAttributes: workflows.FlowAttributes(in.Name), Memo: memo}
	return e.start(ctx, id, o, flow.Workflow, in)
}

// FlowState returns the state of a run. It reads the history, so it needs no worker.
func FlowState(ctx context.Context, e *Engine, workflowID, runID string) (s flow.State, err error) {
	events := e.Client.GetWorkflowHistory(ctx, workflowID, runID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return s, readError(flow.ErrNotRunning, workflowID, err)
		}
		s.ApplyEvent(event)
	}
	return s, nil
}

// DecideFlow approves or rejects a step that waits for approval. The step may be "" if only one step waits.
func DecideFlow(
	ctx context.Context, e *Engine, workflowID, runID string, d flow.Decision,
) (flow.Decision, error) {
	s, err := FlowState(ctx, e, workflowID, runID)
	if err != nil {
		return d, err
	}
	waiting := s.Waiting()
	var paths []string
	for _, step := range waiting {
		paths = append(paths, step.Path)
	}
	switch {
	case len(waiting) == 0:
		return d, fmt.Errorf("%w: no step of %s waits for approval", flow.ErrNotWaiting, workflowID)
	case d.Step == "" && len(waiting) > 1:
		return d, fmt.Errorf("%w: several steps wait: %s; name one with --step", flow.ErrNotWaiting,
			strings.Join(paths, ", "))
	case d.Step == "":
		d.Step = paths[0]
	case !slices.Contains(paths, d.Step):
		return d, fmt.Errorf("%w: the step %s does not wait; %s", flow.ErrNotWaiting, d.Step,
			"waiting: "+strings.Join(paths, ", "))
	}
	arg, err := json.Marshal(d)
	if err != nil {
		return d, err
	}
	return d, e.Signal(ctx, workflowID, runID, flow.SignalDecide, arg)
}
