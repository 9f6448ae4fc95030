package activity

import (
	"context"
	"log/slog"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"acescope/engine/runner"
)

// Workflows is the part of a Temporal client that carries what runs, runners and the
// dispatcher have to say to each other.
type Workflows interface {
	Signaller
	SignalWithStartWorkflow(ctx context.Context, workflowID, signalName string, signalArg any, o client.StartWorkflowOptions,
		workflow any, args ...any) (client.WorkflowRun, error)
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// Dispatch serves the local activities of runs, runners and the dispatcher. All fields are
// required.
type Dispatch struct {
	Workflows Workflows
	Logger    *slog.Logger

	gather *gather
	sender *sender
}

// Register makes the activities known under the names of the contract, to a worker that
// serves workflows.
func (d *Dispatch) Register(r worker.ActivityRegistry) {
	d.gather = newGather(d.toDispatcher, gatherFor)
	d.sender = newSender(d.Workflows)
	for name, fn := range map[string]any{
		runner.ActivityTell:      d.gather.tell,
		runner.ActivityTellRuns:  d.tellRuns,
		runner.ActivityCheckRuns: d.checkRuns,
	} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}
