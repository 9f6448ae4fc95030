package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/agents/session/host"
	"acescope/engine/internal/sleep"
	"acescope/engine/temporal/history"
	"acescope/engine/workflows"
)

// Errors of sessions.
var (
	ErrNoSession = ace.NotFound{Kind: "session", Hint: `run "acescope session list"`}
	ErrEnded     = errors.New("the session has ended")
	// ErrSilent means that no worker accepted an update within a minute. It may be repeated: the
	// session accepts a message ID only once.
	ErrSilent = errors.New("does not answer")
	// ErrNotAsking means that the process that asked for a tool call has exited and does not get the
	// decision.
	ErrNotAsking = errors.New(
		"the agent's process that asked for this call has exited, so it does not get the answer; " +
			"the agent asks again when its turn continues")
)

// Sessions are the actions on agent sessions. They are methods of [Engine].
type Sessions struct{ e *Engine }

// StartSession starts an agent session and returns its run ID. It returns ErrExists if the session ID
// is in use. Claude Code's conversation gets an ID that no other conversation has.
func (a Sessions) StartSession(ctx context.Context, in session.Input) (runID string, err error) {
	agent := a.e.Agents.Agent(agentcli.CLI(in.Agent))
	agent.AllowFull = agent.AllowFull || a.e.Mode() == Cluster // the executing machine decides
	if err := host.CheckInput(in, agent); err != nil {
		return "", err
	}
	if in.Agent == string(agentcli.Claude) && in.AgentSessionID == "" {
		in.AgentSessionID = session.UUID("agent", rand.Text())
	}
	in.Revision = session.Revision
	in.By = cmp.Or(in.By, ace.User())
	o := client.StartWorkflowOptions{ID: session.WorkflowID(in.SessionID),
		TypedSearchAttributes: workflows.SessionAttributes(in), Memo: map[string]any{ace.MemoBy: in.By}}
	return a.e.start(ctx, in.SessionID, o, session.Workflow, in)
}

// Send sends a message to a session, which accepts each message ID once. A message without an ID
// gets one.
func (a Sessions) Send(ctx context.Context, sessionID string, m session.Message) (r session.Receipt,
	err error) {
	m.ID = cmp.Or(m.ID, "m-"+rand.Text())
	err = a.update(ctx, sessionID, session.UpdateSend, "send."+m.ID, m, &r)
	return r, err
}

// Receive returns the output of a session after a cursor and acknowledges the output up to another
// one. With Wait, it waits for output or the end of the session.
func (a Sessions) Receive(ctx context.Context, sessionID string, r session.Receive) (got session.Received,
	err error) {
	err = a.update(ctx, sessionID, session.UpdateReceive, "receive."+rand.Text(), r, &got)
	return got, err
}

// Decide allows or denies a tool call that waits for the user. It returns ErrNotAsking if the agent's
// process does not get the decision.
func (a Sessions) Decide(ctx context.Context, sessionID string, d session.Decision) (s session.State,
	err error) {
	err = a.update(ctx, sessionID, session.UpdateDecide, "decide."+rand.Text(), d, &s)
	if err == nil && s.Current != nil {
		err = awaitHeartbeat(ctx, s.Current.Attempt,
			func() (*workflowservice.DescribeWorkflowExecutionResponse, error) {
				return a.e.Client.DescribeWorkflowExecution(ctx, session.WorkflowID(sessionID), "")
			})
	}
	return s, err
}

// heartbeatWait is how long to wait for a heartbeat of a turn, more than the heartbeat timeout of
// turns.
const heartbeatWait = 7 * time.Second

// awaitHeartbeat waits until the process of an attempt at the current turn sends a heartbeat, or the turn has
// ended. Otherwise it returns ErrNotAsking.
func awaitHeartbeat(
	ctx context.Context, attempt int32, describe func() (*workflowservice.DescribeWorkflowExecutionResponse,
		error),
) error {
	var first *host.Heartbeat
	for end := time.Now().Add(heartbeatWait); time.Now().Before(end); {
		d, err := describe()
		if err != nil {
			return err
		}
		turn := func(p *workflowpb.PendingActivityInfo) bool {
			return p.GetActivityType().GetName() == session.ActivityTurn
		}
		i := slices.IndexFunc(d.GetPendingActivities(), turn)
		if i < 0 {
			return nil
		}
		var b host.Heartbeat
		_ = json.Unmarshal(history.JSON(d.GetPendingActivities()[i].GetHeartbeatDetails()), &b)
		switch {
		case b.Attempt > attempt:
			return ErrNotAsking
		case first == nil:
			first = &b
		case b != *first && b.Attempt == attempt:
			return nil
		}
		if err := sleep.For(ctx, updateAgain); err != nil {
			return err
		}
	}
	return ErrNotAsking
}

// Move continues a session on this machine, in dir, or in the session's own directory if dir is "". The agent
// there receives the messages in its queue and the messages of the current turn.
func (a Sessions) Move(ctx context.Context, sessionID, dir string, n session.Note) (s session.State,
	err error) {
	here, err := host.Here(a.e.dir)
	if err != nil {
		return s, err
	}
	m := session.Move{Host: here, WorkingDir: dir, Note: n}
	err = a.update(ctx, sessionID, session.UpdateMove, "move."+rand.Text(), m, &s)
	return s, err
}

// Interrupt ends the current turn but not the session.
func (a Sessions) Interrupt(ctx context.Context, sessionID string, n session.Note) (s session.State,
	err error) {
	err = a.update(ctx, sessionID, session.UpdateInterrupt, "interrupt."+rand.Text(), n, &s)
	return s, err
}

// Stop ends a session and its current turn.
func (a Sessions) Stop(ctx context.Context, sessionID string, n session.Note) (s session.State, err error) {
	err = a.update(ctx, sessionID, session.UpdateStop, "stop."+rand.Text(), n, &s)
	return s, err
}

// Describe returns the state of a session. It reads the history, so it needs no worker.
func (a Sessions) Describe(ctx context.Context, sessionID string) (s session.State, err error) {
	d := session.Decoder{}
	err = fold(ctx, a.e.Client, session.WorkflowID(sessionID), d.Fact, s.Apply)
	return s, readError(ErrNoSession, sessionID, err)
}

// An update is repeated if the session continues as new at the same time.
const (
	updateTries = 20
	updateAgain = 100 * time.Millisecond
)

// updateAborted is the error type of an update that the workflow accepted but did not complete.
const updateAborted = "AcceptedUpdateCompletedWorkflow"

func (a Sessions) update(ctx context.Context, sessionID, name, updateID string, arg, answer any) error {
	for try := 1; ; try++ {
		err := a.e.update(ctx, session.WorkflowID(sessionID), name, updateID, arg, answer)
		again, err := a.updateError(ctx, sessionID, err)
		if !again || try == updateTries {
			return err
		}
		if err := sleep.For(ctx, updateAgain); err != nil {
			return err
		}
	}
}

// updateError describes why an update failed and reports whether to repeat it.
func (a Sessions) updateError(ctx context.Context, sessionID string, err error) (again bool,
	described error) {
	if err == nil {
		return false, nil
	}
	failed := fmt.Errorf("session %s: %w", sessionID, err)
	app, isApp := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case ctx.Err() != nil:
		return false, fmt.Errorf("session %s: %w", sessionID, ctx.Err())
	case isError[*serviceerror.Unavailable](err), isNotReady(err):
		return true, failed
	case isError[*serviceerror.DeadlineExceeded](err),
		isError[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err):
		return false, fmt.Errorf("session %s %w; is a worker running?", sessionID, ErrSilent)
	case isApp && app.Type() != updateAborted:
		return false, errors.New(app.Message())
	case !isApp && !isNotFound(err):
		return false, failed
	}
	d, err := a.e.Client.DescribeWorkflowExecution(ctx, session.WorkflowID(sessionID), "")
	switch {
	case isNotFound(err):
		return false, ErrNoSession.Of(sessionID)
	case err != nil:
		return false, fmt.Errorf("session %s: %w", sessionID, err)
	case d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return true, failed
	}
	return false, fmt.Errorf("%w: %s", ErrEnded, sessionID)
}
