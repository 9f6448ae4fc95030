package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/session"
)

// maxAsking is how many tool calls of a session are asked about at a time. A server takes
// ten unanswered updates of a workflow by default, and a person's answer is one of them.
const maxAsking = 5

// mayUse asks the session whether the agent may use a tool of its own.
func (a *agent) mayUse(ctx context.Context, q agentcli.ControlRequest, r *run) ([]byte, error) {
	if r == nil {
		return agentcli.Deny(q.ID, "the turn has ended", false)
	}
	id := q.Tool.ToolUseID
	if id == "" {
		id = r.callID()
	}
	answer, err := a.h.ask(ctx, r, session.ToolRequest{ID: id, Name: q.Tool.Name, Args: q.Tool.Input})
	switch {
	case err != nil:
		return agentcli.Deny(q.ID, "the session cannot be asked: "+err.Error(), true)
	case answer.Action == session.Allow:
		return agentcli.Allow(q.ID, q.Tool.Input)
	}
	return agentcli.Deny(q.ID, denial(answer), false)
}

// denial is what an agent is told whose call was denied.
func denial(a session.ToolAnswer) string {
	if a.Reason != "" {
		return a.Reason
	}
	return "this call was denied by " + a.By
}

// callID is an identity for a call that the agent gave none.
func (r *run) callID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	return session.UUID("call", r.uuid, fmt.Sprint(r.attempt), fmt.Sprint(r.calls))
}

// ask asks the session's workflow. Secrets do not go there.
func (h *Host) ask(ctx context.Context, r *run, q session.ToolRequest) (session.ToolAnswer, error) {
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	case <-ctx.Done():
		return session.ToolAnswer{}, ctx.Err()
	}
	q.Turn, q.Attempt = r.in.Turn, r.attempt
	q.Args = h.redact.Line(valid(q.Args))
	if len(q.Args) > ace.InlineBytes {
		ref, err := h.o.Artifacts.PutBytes(ctx, q.Args, "application/json")
		if err != nil {
			return session.ToolAnswer{}, err
		}
		q.Args, q.ArgsRef = ace.Preview(q.Args), &ref
	}
	r.slog.Info("a tool is asked for", "tool", q.Name, "call", q.ID, "served", q.Served)
	h.at("ask")
	answer, err := h.o.Workflows.RequestTool(ctx, r.in.WorkflowID, r.in.RunID, q)
	if err != nil {
		if ctx.Err() == nil {
			r.slog.Warn("the session could not be asked for a tool", "call", q.ID, "error", err)
		}
		return answer, err
	}
	h.at("answered")
	r.slog.Info("a tool was answered for", "call", q.ID, "action", answer.Action, "by", answer.By)
	return answer, nil
}

// Client asks workflows through a Temporal client.
type Client struct{ client.Client }

// askAgain is how long is waited before a server that did not answer is asked again.
const askAgain = 500 * time.Millisecond

// RequestTool implements [Workflows]. It asks again for as long as the server is away: the
// update bears the call's id, so it is made once.
func (c Client) RequestTool(ctx context.Context, workflowID, runID string, r session.ToolRequest) (session.ToolAnswer, error) {
	for {
		var answer session.ToolAnswer
		handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{UpdateID: r.ID, WorkflowID: workflowID, RunID: runID,
			UpdateName: session.UpdateTool, Args: []any{r}, WaitForStage: client.WorkflowUpdateStageAccepted})
		if err == nil {
			err = handle.Get(ctx, &answer)
		}
		if err == nil || final(err) || ctx.Err() != nil {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(askAgain):
		}
	}
}

// final tells whether asking again gives the same error.
func final(err error) bool {
	var gone *serviceerror.NotFound
	var bad *serviceerror.InvalidArgument
	var denied *serviceerror.PermissionDenied
	var app *temporal.ApplicationError
	return errors.As(err, &gone) || errors.As(err, &bad) || errors.As(err, &denied) || errors.As(err, &app)
}
