package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/flow"
	"acescope/engine/history"
	"acescope/engine/session"
)

// What can be wrong with a session that is spoken to.
var (
	ErrNoSession = errors.New("no such session")
	ErrEnded     = errors.New("the session has ended")
	// ErrSilent means that nobody took what was said within a minute. It can be said again: a
	// message with the same id is taken once.
	ErrSilent = errors.New("does not answer")
)

// StartSession starts an agent session and gives its run id. A session whose id was used
// before is ErrExists.
func (e *Engine) StartSession(ctx context.Context, in session.Input) (runID string, err error) {
	if err := in.Check(); err != nil {
		return "", err
	}
	return e.start(ctx, in.SessionID, client.StartWorkflowOptions{ID: session.WorkflowID(in.SessionID),
		TypedSearchAttributes: flow.SessionAttributes(in)}, session.Workflow, in)
}

// Send gives a session a message. It is taken once however often it is sent, by its id; one
// without gets one.
func (e *Engine) Send(ctx context.Context, sessionID string, m session.Message) (r session.Receipt, err error) {
	if m.ID == "" {
		m.ID = "m-" + rand.Text()
	}
	err = e.update(ctx, sessionID, session.UpdateSend, "send."+m.ID, m, &r)
	return r, err
}

// Receive gives what came out of a session after a cursor, and acknowledges what came up to
// another. With Wait it answers when there is something, or the session has ended.
func (e *Engine) Receive(ctx context.Context, sessionID string, r session.Receive) (got session.Received, err error) {
	err = e.update(ctx, sessionID, session.UpdateReceive, "receive."+rand.Text(), r, &got)
	return got, err
}

// Decide answers a tool call that waits for a person.
func (e *Engine) Decide(ctx context.Context, sessionID string, d session.Decision) (s session.State, err error) {
	err = e.update(ctx, sessionID, session.UpdateDecide, "decide."+rand.Text(), d, &s)
	return s, err
}

// Interrupt ends the turn under way; the session goes on.
func (e *Engine) Interrupt(ctx context.Context, sessionID string, n session.Note) (s session.State, err error) {
	err = e.update(ctx, sessionID, session.UpdateInterrupt, "interrupt."+rand.Text(), n, &s)
	return s, err
}

// Stop ends a session, with the turn under way.
func (e *Engine) Stop(ctx context.Context, sessionID string, n session.Note) (s session.State, err error) {
	err = e.update(ctx, sessionID, session.UpdateStop, "stop."+rand.Text(), n, &s)
	return s, err
}

// Describe is what is known of a session, from its history: nobody needs to serve it.
func (e *Engine) Describe(ctx context.Context, sessionID string) (s session.State, err error) {
	d := history.SessionDecoder{}
	err = fold(ctx, e.Client, session.WorkflowID(sessionID), d.Fact, s.Apply)
	return s, read("session", sessionID, ErrNoSession, err)
}

// An update that meets a session just when it continues as a new run is made again there.
const (
	updateTries = 20
	updateAgain = 100 * time.Millisecond
)

// continued is the type of the failure of an update that was under way then.
const continued = "AcceptedUpdateCompletedWorkflow"

func (e *Engine) update(ctx context.Context, sessionID, name, updateID string, arg, answer any) error {
	id := session.WorkflowID(sessionID)
	for try := 1; ; try++ {
		handle, err := e.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{UpdateID: updateID, WorkflowID: id, UpdateName: name,
			Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted})
		if err == nil {
			err = handle.Get(ctx, answer)
		}
		again, err := e.updateError(ctx, sessionID, err)
		if !again || try == updateTries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(updateAgain):
		}
	}
}

// updateError says in plain words why a session did not take an update, and whether a new
// run of it may.
func (e *Engine) updateError(ctx context.Context, sessionID string, err error) (again bool, plain error) {
	var gone *serviceerror.NotFound
	var app *temporal.ApplicationError
	var slow *serviceerror.DeadlineExceeded
	var away *serviceerror.Unavailable
	var late *client.WorkflowUpdateServiceTimeoutOrCanceledError
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, fmt.Errorf("session %s: %w", sessionID, ctx.Err())
	case errors.As(err, &away), notReady(err):
		return true, fmt.Errorf("session %s: %w", sessionID, err)
	case errors.As(err, &slow), errors.As(err, &late):
		return false, fmt.Errorf("session %s %w; is any worker running?", sessionID, ErrSilent)
	case errors.As(err, &app) && app.Type() == continued, errors.As(err, &gone):
	case errors.As(err, &app):
		return false, errors.New(app.Message())
	default:
		return false, fmt.Errorf("session %s: %w", sessionID, err)
	}
	d, derr := e.Client.DescribeWorkflowExecution(ctx, session.WorkflowID(sessionID), "")
	switch {
	case errors.As(derr, &gone):
		return false, fmt.Errorf("%w: %s", ErrNoSession, sessionID)
	case derr != nil:
		return false, fmt.Errorf("session %s: %w", sessionID, derr)
	case d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return true, fmt.Errorf("session %s: %w", sessionID, err)
	}
	return false, fmt.Errorf("%w: %s", ErrEnded, sessionID)
}
