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
	ListWorkflow(ctx context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// Dispatch serves the local activities of runs, runners and the dispatcher. All fields are
// required.
type Dispatch struct {
	Workflows Workflows
	Logger    *slog.Logger

	gather  *gather
	sender  *sender
	waiting *waiting
	aside   *aside
}

// Register makes the activities known under the names of the contract, to a worker that
// serves workflows.
func (d *Dispatch) Register(r worker.ActivityRegistry) {
	d.gather = newGather(d.toDispatcher, gatherFor)
	d.waiting = newWaiting(waitFor)
	d.sender = newSender(d.Workflows, d.waiting)
	d.aside = newAside(d.gather.tell, d.Logger)
	for name, fn := range map[string]any{
		runner.ActivityTell:      d.tell,
		runner.ActivityTellRuns:  d.tellRuns,
		runner.ActivityCheckRuns: d.checkRuns,
		runner.ActivityRecall:    d.recall,
	} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// Close waits for a moment until the dispatcher was told what nobody waits for. It is called
// when the worker has stopped.
func (d *Dispatch) Close() { d.aside.close(asideClose) }

// tell tells the dispatcher something. Of a run that wants a runner it returns the answer,
// where that comes soon; nil means that the answer, if there is one, comes as a signal.
func (d *Dispatch) tell(ctx context.Context, notices runner.Notices) (*runner.Answer, error) {
	var asks *runner.Request
	leaves := len(notices) > 0
	for _, n := range notices {
		switch n.Kind {
		case runner.Enqueue:
			asks = n.Request
		case runner.Release, runner.Withdraw:
			continue
		}
		leaves = false
	}
	if leaves && d.aside.take(notices) {
		return nil, nil
	}
	if asks == nil {
		return nil, d.gather.tell(ctx, notices)
	}
	w := d.waiting.begin(*asks)
	err := d.gather.tell(ctx, notices)
	if answer := d.waiting.end(ctx, w, err == nil); answer != nil {
		return answer, nil
	}
	return nil, err
}
