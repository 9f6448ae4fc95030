package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
)

// rebuiltType is the type of the log line that precedes a rebuilt conversation. What the log has
// before it is not part of the turn.
const rebuiltType = "acescope_rebuilt"

type rebuiltLine struct {
	Type           string `json:"type"`
	AgentSessionID string `json:"agent_session_id,omitempty"`
	session.Rebuilt
}

// rebuiltOf decodes the event of such a line.
func rebuiltOf(e agentcli.Event) (l rebuiltLine, ok bool) {
	return l, e.Name == rebuiltType && json.Unmarshal(e.Raw, &l) == nil
}

// rebuild prepares a new conversation of the agent, because the one to resume is gone: its transcript
// was removed, or the session was moved to this machine. It returns the message that starts it, or ""
// if the history has no turns.
func (t *attempt) rebuild() (message string, err error) {
	message, counts, err := t.recordedMessage()
	if err != nil || counts.Turns == 0 {
		return "", err
	}
	t.slog.Warn("the agent's conversation is gone; starting another one with the recorded turns",
		"conversation", t.in.AgentSessionID, "turns", counts.Turns, "omitted", counts.Omitted)
	l := rebuiltLine{Type: rebuiltType, Rebuilt: counts}
	if t.adapter.Features.SessionID {
		l.AgentSessionID = session.UUID("rebuilt", t.in.UUID)
	}
	t.startOver(l)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log.AddOwn(l)
	return message, nil
}

// startOver makes the turn the first one of another conversation.
func (t *attempt) startOver(l rebuiltLine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in.AgentSessionID, t.in.Resume = l.AgentSessionID, false
	t.in.CostSeen, t.in.UsageSeen = 0, ace.Usage{}
	t.uuid, t.continued = t.in.UUID, false
	t.past = past{log: t.past.log, out: t.past.out, rebuilt: &l.Rebuilt}
}

const (
	contextBegin = "Your earlier conversation with this user is not on this machine any more, so this is a new one. " +
		"Between <recorded_conversation> and </recorded_conversation> is the record of the earlier one, the oldest " +
		"turn first; long texts are shortened.%s What it reports as done is done: look before you do it again.\n\n" +
		"<recorded_conversation>\n"
	contextEnd = "</recorded_conversation>\n\nThe next message of the user:\n\n"
)

// recordedMessage returns the turn's message after the recorded conversation.
func (t *attempt) recordedMessage() (string, session.Rebuilt, error) {
	turns, err := t.h.o.Workflows.PastTurns(t.life, t.in.WorkflowID, t.in.RunID)
	if err != nil {
		return "", session.Rebuilt{}, fmt.Errorf("the recorded conversation cannot be read: %w", err)
	}
	text, counts := session.Context(turns)
	omitted := ""
	if counts.Omitted > 0 {
		omitted = fmt.Sprintf(" Older turns left out: %d.", counts.Omitted)
	}
	return fmt.Sprintf(contextBegin, omitted) + text + contextEnd + t.message, counts, nil
}

// TryAgain implements [Workflows].
func (c Client) TryAgain(ctx context.Context, workflowID, runID string, a session.TurnAttempt) error {
	return c.SignalWorkflow(ctx, workflowID, runID, session.SignalAttempt, a)
}

// maxRunsRead bounds the workflow runs of a session that are read for its conversation.
const maxRunsRead = 8

// PastTurns implements [Workflows].
func (c Client) PastTurns(ctx context.Context, workflowID, runID string) ([]session.PastTurn, error) {
	var turns, carried []session.PastTurn
	for n := 0; runID != "" && n < maxRunsRead; n++ {
		run, before, err := c.turnsOf(ctx, workflowID, runID)
		if _, gone := errors.AsType[*serviceerror.NotFound](err); gone && n > 0 {
			break // the server has deleted the earlier run; its successor has a summary
		}
		if err != nil {
			return nil, err
		}
		turns, carried, runID = slices.Concat(run.List, turns), run.CarriedTurns(), before
	}
	return slices.Concat(carried, turns), nil
}

// turnsOf returns the turns of one run of a session, and the run before it or "".
func (c Client) turnsOf(ctx context.Context, workflowID, runID string) (
	turns session.PastTurns, before string, err error,
) {
	events := c.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err == nil {
			err = turns.Add(e)
		}
		if err != nil {
			return turns, "", err
		}
		before = cmp.Or(before, e.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId())
	}
	return turns, before, nil
}
