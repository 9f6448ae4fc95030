package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/redact"
	"acescope/engine/run"
)

// Blueprints are where runs get their blueprints from.
type Blueprints interface {
	List(ctx context.Context) ([]run.Described, error)
	// Load gives the blueprint of a name, and what checks the parameters of a program: it
	// gives them back with their defaults.
	Load(name string) (run.Blueprint, func(json.RawMessage) (json.RawMessage, error), error)
}

// Runs are the verbs of runs on a server. It may be used by many at once.
type Runs struct {
	e       *Engine
	lib     Blueprints
	secrets *redact.Redactor

	mu sync.Mutex
	// newest is the newest run that this process started of a session, which lists know only
	// a moment later. It is bounded by maxNewest.
	newest map[string]run.Input
}

var _ run.Verbs = (*Runs)(nil)

// maxNewest is how many sessions are remembered.
const maxNewest = 1000

// Runs are the verbs of runs on this server, with the blueprints of a library.
func (e *Engine) Runs(lib Blueprints) *Runs {
	return &Runs{e: e, lib: lib, secrets: redact.New(redact.Environ(os.Environ())...), newest: map[string]run.Input{}}
}

// Blueprints implements [run.Verbs].
func (r *Runs) Blueprints(ctx context.Context) ([]run.Described, error) { return r.lib.List(ctx) }

// Start implements [run.Verbs]. A request with a run id that was used before answers with that
// run where it asks for the same, and is refused otherwise.
func (r *Runs) Start(ctx context.Context, q run.Request) (run.Input, error) {
	in, err := r.input(ctx, q)
	if err != nil {
		return run.Input{}, err
	}
	return r.begin(ctx, q, in)
}

// begin starts the workflow of a run.
func (r *Runs) begin(ctx context.Context, q run.Request, in run.Input) (run.Input, error) {
	_, err := r.e.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: run.WorkflowID(in.RunID), TaskQueue: ace.TaskQueue, TypedSearchAttributes: flow.RunAttributes(in),
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo: map[string]any{run.MemoRun: run.Listed{SessionID: in.SessionID, Type: in.Type, AgentName: in.Name(),
			ParentSessionID: in.ParentSessionID, Mode: in.Mode}}}, run.Workflow, in)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	var refused *serviceerror.InvalidArgument
	switch {
	case errors.As(err, &started):
		return r.same(ctx, q, in)
	case errors.As(err, &refused):
		return run.Input{}, fmt.Errorf("start run %s: %w; where the namespace lacks the search attributes of runs: %s", in.RunID, err,
			ace.AddAttributes(r.e.namespace, []string{ace.AttrBlueprint, ace.AttrRunner}))
	case err != nil:
		return run.Input{}, fmt.Errorf("start run %s: %w", in.RunID, err)
	}
	r.remember(in)
	return in, nil
}

// same answers a request whose run was started before.
func (r *Runs) same(ctx context.Context, q run.Request, in run.Input) (run.Input, error) {
	s, err := r.stateOf(ctx, in.RunID)
	if err != nil {
		return run.Input{}, err
	}
	if sameRequest(q, s.Input, in) {
		return s.Input, nil
	}
	return run.Input{}, fmt.Errorf("%w: run %s was started before, for something else: choose another run_id", run.ErrBadRequest, in.RunID)
}

// sameRequest tells whether two inputs are of one request. What each start makes anew does
// not count, nor does whether the blueprint has changed since.
func sameRequest(q run.Request, first, again run.Input) bool {
	for _, in := range []*run.Input{&first, &again} {
		in.CreatedAt, in.Blueprint, in.BlueprintRef, in.By = first.CreatedAt, nil, nil, ""
		if q.SessionID == "" {
			in.SessionID = ""
		}
	}
	a, errA := json.Marshal(first)
	b, errB := json.Marshal(again)
	return errA == nil && errB == nil && string(a) == string(b)
}

func (r *Runs) remember(in run.Input) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.newest) >= maxNewest {
		clear(r.newest)
	}
	in.Blueprint, in.Prompt, in.Parameters = nil, "", nil
	r.newest[in.SessionID] = in
}
