// Package flow holds the workflows: one ACE task, an experiment over a data set, an agent
// session, the run of a blueprint, a runner, and the dispatcher that gives runs to runners.
// It may import engine/ace, engine/session, engine/run, engine/runner, engine/history and
// Temporal's workflow packages; nothing
// that reads a clock, a file or the network, since all of it is replayed.
//
// Order: a task's steps run one after the other; an experiment starts its tasks in the
// order of the data set. Bounds: an experiment keeps at most Parallel tasks open and
// continues as new when Temporal suggests it. Loss: a failed task is counted and the
// experiment goes on, until too many fail in a row.
package flow

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/run"
	"acescope/engine/runner"
	"acescope/engine/session"
)

// Register makes the workflows known under the names of the contract.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(Task, workflow.RegisterOptions{Name: ace.TaskWorkflow})
	r.RegisterWorkflowWithOptions(Experiment, workflow.RegisterOptions{Name: ace.ExperimentWorkflow})
	r.RegisterWorkflowWithOptions(Session, workflow.RegisterOptions{Name: session.Workflow})
	r.RegisterWorkflowWithOptions(Run, workflow.RegisterOptions{Name: run.Workflow})
	r.RegisterWorkflowWithOptions(Runner, workflow.RegisterOptions{Name: runner.Workflow})
	r.RegisterWorkflowWithOptions(Dispatcher, workflow.RegisterOptions{Name: runner.DispatcherWorkflow})
}
