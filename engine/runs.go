package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
	"acescope/engine/internal/sleep"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/history"
	"acescope/engine/workflows"
)

// Blueprints is a library of blueprints.
type Blueprints interface {
	List(ctx context.Context) ([]run.BlueprintInfo, error)
	// Load returns a blueprint, and for a program the function that validates parameters and
	// returns them with defaults.
	Load(name string) (run.Blueprint, func(json.RawMessage) (json.RawMessage, error), error)
}

// Runs implements [run.Service] on a server. It is safe for concurrent use.
type Runs struct {
	e       *Engine
	lib     Blueprints
	secrets *redact.Redactor

	mu sync.Mutex
	// latest maps sessions to the last runs that this process started, which lists include with
	// a delay. It holds at most maxLatest sessions.
	latest map[string]run.Input
}

var _ run.Service = (*Runs)(nil)

const maxLatest = 1000

// Runs returns the service for runs on this server, with the blueprints of a library.
func (e *Engine) Runs(lib Blueprints) *Runs {
	return &Runs{e: e, lib: lib, secrets: redact.OfProcess(),
		latest: map[string]run.Input{}}
}

// Blueprints implements [run.Service].
func (r *Runs) Blueprints(ctx context.Context) ([]run.BlueprintInfo, error) { return r.lib.List(ctx) }

// Start implements [run.Service]. A repeated request with the same run ID returns the existing run; a
// different request with that ID is an error.
func (r *Runs) Start(ctx context.Context, q run.Request) (run.Input, error) {
	in, err := r.input(ctx, q)
	if err != nil {
		return run.Input{}, err
	}
	return r.begin(ctx, q, in)
}

// begin starts the workflow of a run.
func (r *Runs) begin(ctx context.Context, q run.Request, in run.Input) (run.Input, error) {
	listed := run.Memo{SessionID: in.SessionID, Type: in.Type, AgentName: in.Name(),
		ParentSessionID: in.ParentSessionID, Mode: in.Mode}
	_, err := r.e.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       run.WorkflowID(in.RunID),
		TaskQueue:                                r.e.TaskQueue,
		TypedSearchAttributes:                    workflows.RunAttributes(in),
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{run.MemoKey: listed, ace.MemoBy: in.By},
	}, run.Workflow, in)
	if isError[*serviceerror.WorkflowExecutionAlreadyStarted](err) {
		return r.existing(ctx, q, in)
	}
	if err != nil {
		return run.Input{}, startError(ctx, r.e, "run "+in.RunID, err)
	}
	r.remember(in)
	return in, nil
}

// existing returns the run that the same request started before.
func (r *Runs) existing(ctx context.Context, q run.Request, in run.Input) (run.Input, error) {
	s, err := r.stateOf(ctx, in.RunID)
	if err != nil {
		return run.Input{}, err
	}
	if sameRequest(q, s.Input, in) {
		return s.Input, nil
	}
	return run.Input{}, fmt.Errorf(
		"%w: run %s was started before by a different request: choose another run_id",
		run.ErrBadRequest, in.RunID)
}

// sameRequest reports whether two inputs come from the same request. It ignores generated values
// and later changes of the blueprint.
func sameRequest(q run.Request, first, again run.Input) bool {
	for _, in := range []*run.Input{&first, &again} {
		in.CreatedAt, in.Blueprint, in.BlueprintRef, in.By, in.Revision = first.CreatedAt, nil, nil, "",
			run.Revision
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
	if len(r.latest) >= maxLatest {
		clear(r.latest)
	}
	in.Blueprint, in.Prompt, in.Parameters = nil, "", nil
	r.latest[in.SessionID] = in
}

// Bounds of a list.
const (
	defaultList = 100
	maxScan     = 20_000 // runs that are read for one list
)

// List implements [run.Service]. Open runs come first, then closed runs, newest first.
func (r *Runs) List(ctx context.Context, f run.Filter) ([]run.Summary, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = defaultList
	}
	out := []run.Summary{}
	err := r.scan(ctx, f, func(s run.Summary) bool {
		out = append(out, s)
		return len(out) < limit
	})
	return out, err
}

// newestOf returns the newest run of a session.
func (r *Runs) newestOf(ctx context.Context, sessionID string) (string, error) {
	r.mu.Lock()
	own, started := r.latest[sessionID]
	r.mu.Unlock()
	newest := run.Summary{RunID: own.RunID, CreatedAt: own.CreatedAt}
	err := r.scan(ctx, run.Filter{SessionID: sessionID}, func(s run.Summary) bool {
		if s.CreatedAt.After(newest.CreatedAt) {
			newest = s
		}
		return true
	})
	if err != nil && !started {
		return "", err
	}
	if newest.RunID == "" {
		return "", run.ErrNotFound.Of(sessionID)
	}
	return newest.RunID, nil
}

// scan passes the runs that match a filter to take until that returns false.
func (r *Runs) scan(ctx context.Context, f run.Filter, take func(run.Summary) bool) error {
	query := []string{"WorkflowType = " + strconv.Quote(run.Workflow)}
	for _, c := range []struct{ attribute, value string }{{ace.AttrTask, f.SessionID},
		{ace.AttrBlueprint, f.AgentName}} {
		if c.value == "" {
			continue
		}
		if !run.ValidName(c.value) {
			return nil // no run has an invalid name
		}
		query = append(query, c.attribute+" = "+strconv.Quote(c.value))
	}
	var token []byte
	for seen := 0; seen < maxScan; {
		page, err := r.e.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: strings.Join(query, " AND "), PageSize: 1000, NextPageToken: token})
		if err != nil {
			return fmt.Errorf("list runs: %w", err)
		}
		for _, info := range page.GetExecutions() {
			s := summaryOf(info)
			if f.Parent != "" && s.ParentSessionID != f.Parent || f.Status != "" && s.Status != f.Status {
				continue
			}
			if !take(s) {
				return nil
			}
		}
		seen += len(page.GetExecutions())
		if token = page.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
	return nil
}

// summaryOf converts a list entry. If the run was closed before it set its outcome, the server's
// status decides.
func summaryOf(info *workflowpb.WorkflowExecutionInfo) run.Summary {
	attributes := info.GetSearchAttributes().GetIndexedFields()
	s := run.Summary{
		RunID:      run.IDOf(info.GetExecution().GetWorkflowId()),
		SessionID:  textIn(attributes, ace.AttrTask),
		AgentName:  textIn(attributes, ace.AttrBlueprint),
		Status:     run.Status(textIn(attributes, ace.AttrPhase)),
		ExitStatus: history.StatusOf(info.GetStatus()),
		RunnerID:   textIn(attributes, ace.AttrRunner),
		CreatedAt:  info.GetStartTime().AsTime(),
	}
	var listed run.Memo
	if json.Unmarshal(history.PayloadJSON(info.GetMemo().GetFields()[run.MemoKey]), &listed) == nil {
		s.Type, s.ParentSessionID = listed.Type, listed.ParentSessionID
	}
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return s
	}
	if info.GetCloseTime() != nil {
		s.EndedAt = info.GetCloseTime().AsTime()
	}
	if s.Status.Over() {
		return s
	}
	if s.Status = run.Failed; s.ExitStatus == ace.Canceled {
		s.Status = run.Stopped
	}
	return s
}

func textIn(fields map[string]*commonpb.Payload, name string) (text string) {
	_ = json.Unmarshal(history.PayloadJSON(fields[name]), &text)
	return text
}

// State implements [run.Service]. It reads the history, so it needs no worker.
func (r *Runs) State(ctx context.Context, id string) (run.State, error) {
	id, err := r.resolve(ctx, id)
	if err != nil {
		return run.State{}, err
	}
	return r.stateOf(ctx, id)
}

// resolve returns the run with an ID, or the newest run of the session with that ID.
func (r *Runs) resolve(ctx context.Context, id string) (string, error) {
	if !run.ValidName(id) {
		return "", run.ErrNotFound.Of(id)
	}
	_, err := r.e.Client.DescribeWorkflowExecution(ctx, run.WorkflowID(id), "")
	switch {
	case err == nil:
		return id, nil
	case isNotFound(err):
		return r.newestOf(ctx, id)
	}
	return "", fmt.Errorf("run %s: %w", id, err)
}

func (r *Runs) stateOf(ctx context.Context, runID string) (s run.State, err error) {
	d := run.Decoder{}
	err = fold(ctx, r.e.Client, run.WorkflowID(runID), d.Fact, s.Apply)
	return s, readError(run.ErrNotFound, runID, err)
}

// Intervals of the attempts to reach a server that is unavailable.
const (
	minAwaitRetry = 50 * time.Millisecond
	maxAwaitRetry = 2 * time.Second
)

// Await implements [run.Service]. It survives restarts of the server, until the context is done.
func (r *Runs) Await(ctx context.Context, runID string) (run.Result, error) {
	if !run.ValidName(runID) {
		return run.Result{}, run.ErrNotFound.Of(runID)
	}
	for pause := minAwaitRetry; ; pause = min(2*pause, maxAwaitRetry) {
		var res run.Result
		err := r.e.Client.GetWorkflow(ctx, run.WorkflowID(runID), "").Get(ctx, &res)
		if err == nil && res.Status.Over() {
			return res, nil
		}
		switch {
		case ctx.Err() != nil:
			return res, fmt.Errorf("run %s: %w", runID, ctx.Err())
		case isNotFound(err):
			return res, run.ErrNotFound.Of(runID)
		case err == nil, isError[*temporal.WorkflowExecutionError](err):
			return r.resultOf(ctx, runID)
		case !isTemporary(err):
			return res, fmt.Errorf("run %s: %w", runID, err)
		}
		_ = sleep.For(ctx, pause)
	}
}

// resultOf returns the result of a run whose workflow did not complete.
func (r *Runs) resultOf(ctx context.Context, runID string) (run.Result, error) {
	s, err := r.stateOf(ctx, runID)
	if err != nil {
		return run.Result{}, err
	}
	if s.Result == nil {
		return run.Result{}, fmt.Errorf("run %s ended without a result (%s)", runID, s.Exit)
	}
	return *s.Result, nil
}

// isTemporary reports whether the server may be available again soon.
func isTemporary(err error) bool {
	return isNotReady(err) || isError[*serviceerror.Unavailable](err) ||
		isError[*serviceerror.DeadlineExceeded](err) ||
		isError[*serviceerror.ResourceExhausted](err) || errors.Is(err, context.DeadlineExceeded) ||
		isError[*serviceerror.Canceled](err) // from a server that stops
}

// isNotReady reports whether an update reached a workflow together with another event.
func isNotReady(err error) bool { return isError[*serviceerror.WorkflowNotReady](err) }

// stopWithin is the time that a run has to acknowledge a stop.
const stopWithin = time.Minute

// maxNote bounds the reason and the author of a stop, in bytes.
const maxNote = 500

// Stop implements [run.Service]. It does not wait for the end.
func (r *Runs) Stop(ctx context.Context, id string, q run.StopRequest) (run.State, error) {
	id, err := r.resolve(ctx, id)
	if err != nil {
		return run.State{}, err
	}
	q.Reason = ace.Cut(r.secrets.String(q.Reason), maxNote)
	q.By = ace.Cut(r.secrets.String(q.By), maxNote)
	updateID := "stop." + rand.Text() // so that all attempts count as one update
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	for {
		s, again, err := r.stopOnce(ctx, id, updateID, q)
		if !again {
			return s, err
		}
		if sleep.For(ctx, updateAgain) != nil {
			return s, err
		}
	}
}

func (r *Runs) stopOnce(ctx context.Context, id, updateID string, q run.StopRequest) (s run.State, again bool,
	err error) {
	if err = r.e.update(ctx, run.WorkflowID(id), run.UpdateStop, updateID, q, &s); err == nil {
		return s, false, nil
	}
	app, isApp := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case isApp && (app.Type() == run.ErrTypeOver || app.Type() == updateAborted), isNotFound(err):
		s, err := r.stateOf(ctx, id)
		if err != nil {
			return s, false, err
		}
		return s, false, fmt.Errorf("run %s: %w: %s", id, run.ErrOver, s.Status)
	case isError[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err), ctx.Err() != nil:
		return s, false, fmt.Errorf("run %s %w; is a worker running?", id, ErrSilent)
	}
	return s, isTemporary(err), fmt.Errorf("run %s: %w", id, err)
}
