package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/internal/sleep"
)

// maxRequests bounds the tool calls of a session that wait for an answer. By default a server
// accepts ten incomplete updates of a workflow, and the user's decision is one of them.
const maxRequests = 5

// mayUse asks the session whether the agent may use one of the agent's own tools.
func (a *agent) mayUse(ctx context.Context, q agentcli.Control, t *attempt) ([]byte, error) {
	if t == nil {
		return agentcli.Deny(q.ID, "the turn has ended", false)
	}
	id := q.Tool.ToolUseID
	if id == "" {
		id = t.newCallID()
	}
	args, err := session.NormalizeArgs(q.Tool.Input)
	if err != nil {
		return agentcli.Deny(q.ID, err.Error(), false)
	}
	request := session.ToolRequest{ID: id, Name: q.Tool.Name, Args: args}
	answer, err := t.requestTool(ctx, request, session.NewCall(t.in.WorkingDir, q.Tool.Name, args))
	switch {
	case err != nil:
		return agentcli.Deny(q.ID, "the session cannot be asked: "+err.Error(), true)
	case answer.Action == session.Allow:
		return agentcli.Allow(q.ID, args)
	}
	return agentcli.Deny(q.ID, denial(answer), false)
}

// rulesID identifies the request for hooks, and their callback.
const rulesID = "acescope-rules"

// requestHooks makes an agent report every tool call if rules of the session deny or ask. It is
// called before the first message.
func (a *agent) requestHooks(in session.TurnInput) {
	if !a.streams || in.Policy == nil || !in.Policy.Restricts() {
		return
	}
	if err := a.request(agentcli.HookTools(rulesID)); err != nil {
		a.p.Stop() // its exit says more than the write error
	}
}

// restrict answers the agent before a tool call, also of a tool that it may use without asking: a
// rule of the session may deny the call or make the agent ask. For a served tool it decides nothing, because
// callTool requests the decision.
func (a *agent) restrict(ctx context.Context, q agentcli.Control, t *attempt) ([]byte, error) {
	if t == nil || t.in.Policy == nil {
		return agentcli.HookDecision(q.ID, string(session.Deny), "the turn has ended")
	}
	args, err := session.NormalizeArgs(q.Hook.Input)
	if err != nil {
		return agentcli.HookDecision(q.ID, string(session.Deny), err.Error())
	}
	call := session.NewCall(t.in.WorkingDir, q.Hook.Name, args)
	decision, restricted := t.in.Policy.Restrict(call)
	own := a.tools != nil && strings.HasPrefix(q.Hook.Name, session.ToolPrefix)
	switch {
	case !restricted || own:
		return agentcli.HookDecision(q.ID, "", "")
	case decision.Action == session.Ask:
		return agentcli.HookDecision(q.ID, string(session.Ask), decision.By)
	}
	request := session.ToolRequest{ID: cmp.Or(q.Hook.ToolUseID, t.newCallID()), Name: q.Hook.Name, Args: args}
	if _, err := t.requestTool(ctx, request, call); err != nil { // the request records the denial
		a.h.log.Warn("a denied tool call was not recorded", "session", a.sessionID, "call", request.ID,
			"error", err)
	}
	return agentcli.HookDecision(q.ID, string(session.Deny),
		denial(session.ToolAnswer{By: decision.By, Reason: decision.Reason}))
}

// denial returns the text that tells the agent about a denied call.
func denial(a session.ToolAnswer) string {
	text := "this call was denied by " + a.By
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	return text
}

// newCallID returns an id for a call without an id from the agent.
func (t *attempt) newCallID() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	return session.UUID("call", t.uuid, fmt.Sprint(t.number), fmt.Sprint(t.calls))
}

// requestTool asks the session's workflow whether a call may be made, with the decision of the rules on the
// whole call. Secrets are redacted in the request.
func (t *attempt) requestTool(ctx context.Context, q session.ToolRequest, c session.Call) (
	session.ToolAnswer, error,
) {
	select {
	case t.requests <- struct{}{}:
		defer func() { <-t.requests }()
	case <-ctx.Done():
		return session.ToolAnswer{}, ctx.Err()
	}
	q.Turn, q.Attempt = t.in.Turn, t.number
	if t.in.Policy != nil {
		q.PolicyDecision = new(t.in.Policy.Decide(c))
	}
	q.Args = t.h.redact.Line(q.Args)
	if len(q.Args) > ace.InlineBytes {
		ref, err := t.h.o.Artifacts.PutBytes(ctx, q.Args, "application/json")
		if err != nil {
			return session.ToolAnswer{}, err
		}
		q.Args, q.ArgsRef = ace.Preview(q.Args), &ref
	}
	t.slog.Info("tool requested", "tool", q.Name, "call", q.ID, "served", q.Served)
	t.h.step("ask")
	answer, err := t.h.o.Workflows.RequestTool(ctx, t.in.WorkflowID, t.in.RunID, q)
	if err != nil {
		if ctx.Err() == nil {
			t.slog.Warn("tool request failed", "call", q.ID, "error", err)
		}
		return answer, err
	}
	t.h.step("answered")
	t.slog.Info("tool request answered", "call", q.ID, "action", answer.Action, "by", answer.By)
	return answer, nil
}

// Client implements [Workflows] with a Temporal client.
type Client struct{ client.Client }

// requestRetry is the delay before a tool request is repeated.
const requestRetry = 500 * time.Millisecond

// RequestTool implements [Workflows]. It retries while the server is unreachable. The update id
// is the call id, so the request is made once.
func (c Client) RequestTool(ctx context.Context, workflowID, runID string,
	r session.ToolRequest) (session.ToolAnswer, error) {
	for {
		var answer session.ToolAnswer
		handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			UpdateID: r.ID, WorkflowID: workflowID, RunID: runID, UpdateName: session.UpdateTool,
			Args:         []any{r},
			WaitForStage: client.WorkflowUpdateStageAccepted,
		})
		if err == nil {
			err = handle.Get(ctx, &answer)
		}
		if err == nil || isPermanent(err) || ctx.Err() != nil {
			return answer, err
		}
		if err := sleep.For(ctx, requestRetry); err != nil {
			return answer, err
		}
	}
}

// isPermanent reports whether a retry would return the same error.
func isPermanent(err error) bool {
	var notFound *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument
	var denied *serviceerror.PermissionDenied
	var app *temporal.ApplicationError
	return errors.As(err, &notFound) || errors.As(err, &invalid) || errors.As(err, &denied) ||
		errors.As(err, &app)
}
