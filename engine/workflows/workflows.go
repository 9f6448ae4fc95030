// Package workflows contains the Temporal workflows: an ACE task, an experiment over a data set,
// an agent session, a blueprint run, a runner, and the dispatcher that assigns runs to runners.
//
// It is replayed, so it may import nothing that reads a clock, a file or the network: only
// engine/ace, the domain packages of sessions, runs and runners, engine/temporal/history and
// searchattr, and Temporal's workflow packages.
//
// Order: the steps of a task run one after the other; an experiment starts its tasks in the
// order of the data set. Bounds: an experiment keeps at most Parallel tasks open and continues
// as new when Temporal suggests it. Loss: a failed task is counted, and the experiment continues
// until too many tasks in a row fail.
package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/searchattr"
)

// registered lists all workflows that acescope executes, by their names in the contract. Workers and verify
// use the same list.
var registered = []struct {
	name     string
	workflow any
}{
	{ace.TaskWorkflow, Task},
	{ace.ExperimentWorkflow, Experiment},
	{session.Workflow, Session},
	{run.Workflow, Run},
	{runner.Workflow, Runner},
	{flow.Workflow, flow.Run},
	{runner.DispatcherWorkflow, Dispatcher},
}

// Register registers the workflows under the names of the contract.
func Register(r worker.WorkflowRegistry) {
	for _, w := range registered {
		r.RegisterWorkflowWithOptions(w.workflow, workflow.RegisterOptions{Name: w.name})
	}
}

// SessionAttributes returns the initial search attributes of a session.
func SessionAttributes(in session.Input) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		searchattr.Keyword(ace.AttrTask, in.SessionID),
		searchattr.Keyword(ace.AttrModel, in.Model),
		searchattr.Keyword(ace.AttrPhase, string(session.Starting)),
		searchattr.Keyword(ace.AttrExit, string(ace.ExitRunning)),
	)
}

// FlowAttributes returns the initial search attributes of a run of a flow.
func FlowAttributes(name string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		searchattr.Keyword(ace.AttrTask, name),
		searchattr.Keyword(ace.AttrPhase, flow.PhaseRunning),
		searchattr.Keyword(ace.AttrExit, string(ace.ExitRunning)),
	)
}

// RunAttributes returns the initial search attributes of a blueprint run. They include those
// that are set later, so that a server that lacks one rejects the run at once.
func RunAttributes(in run.Input) temporal.SearchAttributes {
	model := ""
	if in.Blueprint != nil {
		model = in.Blueprint.Model
	}
	return temporal.NewSearchAttributes(
		searchattr.Keyword(ace.AttrTask, in.SessionID),
		searchattr.Keyword(ace.AttrModel, model),
		searchattr.Keyword(ace.AttrPhase, string(run.Pending)),
		searchattr.Keyword(ace.AttrExit, string(ace.ExitRunning)),
		searchattr.Keyword(ace.AttrBlueprint, in.Name()),
		searchattr.Keyword(ace.AttrRunner, ""),
	)
}

// announceAfter delays an update of the phase in the search attributes.
const announceAfter = 300 * time.Millisecond

// announce updates the phase in the search attributes whenever a run stays in another one than shown: an
// update costs the server as much as a step, and lists are read only every second or two. The outcome has the
// phases in final.
func announce[P ~string](ctx workflow.Context, shown P, phase func() P, final ...P) {
	for {
		if err := workflow.Await(ctx, func() bool { return phase() != shown }); err != nil {
			return
		}
		if err := workflow.Sleep(ctx, announceAfter); err != nil {
			return
		}
		if now := phase(); now == shown || slices.Contains(final, now) {
			continue
		}
		shown = phase()
		err := workflow.UpsertTypedSearchAttributes(ctx, searchattr.Keyword(ace.AttrPhase, string(shown)))
		if err != nil {
			workflow.GetLogger(ctx).Error("search attribute Phase was not updated", "error", err)
		}
	}
}

// writeSummary writes the summary of a workflow to its memo.
func writeSummary(ctx workflow.Context, summary ace.Summary) error {
	if err := workflow.UpsertMemo(ctx, map[string]any{ace.MemoSummary: summary}); err != nil {
		return fmt.Errorf("write memo %s: %w", ace.MemoSummary, err)
	}
	return nil
}

// writeUsage writes the usage of a session or a blueprint run to the memo, for lists. Earlier versions did
// not.
func writeUsage(ctx workflow.Context, summary ace.Summary) error {
	if summary.Usage == (ace.Usage{}) ||
		workflow.GetVersion(ctx, "memo-usage", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return nil
	}
	return writeSummary(ctx, summary)
}

// writeOutcome writes the outcome of a workflow to its memo and search attributes.
func writeOutcome(ctx workflow.Context, summary ace.Summary, phase string, exit ace.ExitStatus) error {
	if err := writeSummary(ctx, summary); err != nil {
		return err
	}
	return workflow.UpsertTypedSearchAttributes(ctx,
		searchattr.Keyword(ace.AttrPhase, phase), searchattr.Keyword(ace.AttrExit, string(exit)))
}

// updateHandler is the handler of an update, and its validator, which may be nil.
type updateHandler struct {
	name              string
	handle, validator any
}

func setUpdateHandlers(ctx workflow.Context, handlers ...updateHandler) error {
	for _, h := range handlers {
		options := workflow.UpdateHandlerOptions{Validator: h.validator}
		if err := workflow.SetUpdateHandlerWithOptions(ctx, h.name, h.handle, options); err != nil {
			return err
		}
	}
	return nil
}

// failed returns the error of a workflow that ends with the failure.
func failed(f ace.Failure) error {
	return temporal.NewNonRetryableApplicationError(f.Message, f.Type, nil)
}
