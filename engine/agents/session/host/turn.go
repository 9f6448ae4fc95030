package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/internal/filelock"
	"acescope/engine/store/artifact"
)

// heartbeatInterval also bounds how late a turn notices its cancellation.
const heartbeatInterval = time.Second

// Heartbeat is the detail of a turn's heartbeats.
type Heartbeat struct {
	AgentSessionID string `json:"agent_session_id,omitempty"`
	UUID           string `json:"uuid,omitempty"`
	Line           int64  `json:"line"` // of the log
	LogPath        string `json:"log_path,omitempty"`
	Attempt        int32  `json:"attempt,omitempty"` // whose process runs
	Count          int64  `json:"count,omitempty"`   // of heartbeats, so that each one differs
}

// runTurn executes run_turn.
func (h *Host) runTurn(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
	return h.turn(ctx, in, activity.GetInfo(ctx).Attempt, func(b Heartbeat) {
		activity.RecordHeartbeat(ctx, b)
	})
}

// Reasons for giving up a turn.
var (
	errAbandoned = errors.New("no attempt waits for the turn")
	errClosed    = errors.New("this process is stopping")
)

// turn runs a turn, or waits for the turn if an earlier attempt started it in this process. If
// ctx ends because of a cancellation, the turn is interrupted and its result returned. If ctx
// ends for another reason, the turn continues for the next attempt.
func (h *Host) turn(ctx context.Context, in session.TurnInput, number int32, heartbeat func(Heartbeat)) (
	session.TurnResult, error,
) {
	h.step("turn")
	heartbeat(Heartbeat{AgentSessionID: in.AgentSessionID, UUID: in.UUID})
	t, err := h.enter(ctx, in, number)
	if err != nil {
		return session.TurnResult{}, err
	}
	tick := time.NewTicker(heartbeatInterval)
	defer tick.Stop()
	ended := ctx.Done()
	for count := int64(1); ; count++ {
		select {
		case <-t.done:
			h.step("done")
			result := t.result
			if number > t.number {
				result.Recovered = true
			}
			return result, t.err
		case <-tick.C:
			b := t.heartbeat()
			b.Count = count
			heartbeat(b)
		case <-ended:
			if cause := context.Cause(ctx); !temporal.IsCanceledError(cause) {
				t.abandonLater()
				return session.TurnResult{}, givenUp(cause)
			}
			t.interrupt()
			ended = nil
		}
	}
}

func givenUp(cause error) error {
	return temporal.NewApplicationError("the turn was given up: "+cause.Error(), TypeHostGone)
}

// enter returns the attempt of a turn: the existing one, or a new one once the previous turn has
// ended.
func (h *Host) enter(ctx context.Context, in session.TurnInput, number int32) (*attempt, error) {
	s := h.slots.of(in.SessionID)
	s.start.Lock()
	defer s.start.Unlock()
	previous := h.slots.newest(s)
	same := previous != nil && previous.in.RunID == in.RunID && previous.in.Turn == in.Turn
	if same && (!previous.ended() || previous.err == nil) {
		previous.keep()
		return previous, nil
	}
	if previous != nil && !previous.ended() {
		previous.giveUp(errAbandoned)
		select {
		case <-previous.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	h.slots.mu.Lock()
	defer h.slots.mu.Unlock()
	if h.life.Err() != nil {
		return nil, temporal.NewApplicationError(errClosed.Error(), TypeHostGone)
	}
	t := h.newAttempt(in, number)
	s.attempt = t
	h.running.Go(func() { h.work(s, t) })
	return t, nil
}

// work executes an attempt. The agent's process then waits for the next turn.
func (h *Host) work(s *slot, t *attempt) {
	defer t.giveUp(nil)
	t.result, t.err = t.execute(s)
	if t.err != nil {
		t.slog.Warn("attempt of the turn failed", "error", t.err)
	} else {
		t.slog.Info("turn ended", "status", t.result.Status, "cost", t.result.Usage.CostUSD,
			"recovered", t.result.Recovered, "continued", t.result.Continued)
	}
	h.slots.idle(s)
	close(t.done)
	t.copyTranscript()
}

// copyTranscript copies the agent's transcript to the shared store, where other machines find it. If that
// fails, the next turn of the session does it.
func (t *attempt) copyTranscript() {
	if t.adapter.CLI == "" || t.h.copies == nil {
		return
	}
	id := cmp.Or(t.result.AgentSessionID, agentSession(t.in))
	environ := t.h.environ(t.adapter, agentcli.Command{})
	if err := t.h.copies.Copy(t.h.life, t.in.WorkflowID, t.adapter.CLI, environ, id); err != nil {
		t.slog.Warn("the transcript was not copied to the shared store", "error", err)
	}
}

// execute looks for the turn in the records of earlier attempts, and otherwise runs it.
func (t *attempt) execute(s *slot) (session.TurnResult, error) {
	if refusal, ok := t.prepare(); !ok {
		return refusal, nil
	}
	a := t.h.slots.warm(s)
	if a != nil && !a.isIn(t.in.WorkingDir) { // moved to another directory, or its own was replaced
		a.close()
		a = nil
	}
	search := a == nil || t.number > 1
	if search {
		if err := t.searchLogs(); err != nil || t.past.result != nil {
			return t.recovered(err)
		}
	}
	var lock *filelock.Lock
	if a == nil {
		// Take the lock before reading the transcript: this ends an orphaned process, which may
		// still write to it.
		var err error
		if lock, err = t.h.lockSession(t.life, t.in.SessionID); err != nil {
			return t.startFailed(err)
		}
		defer lock.Close() // the process inherits it
		t.h.step("locked")
	}
	if search {
		if err := t.searchTranscript(); err != nil || t.past.result != nil {
			return t.recovered(err)
		}
	}
	return t.run(s, a, lock)
}

// prepare finds the agent and the text of the turn, and gives up the calls of earlier attempts. If ok is
// false, refusal is the turn's result.
func (t *attempt) prepare() (refusal session.TurnResult, ok bool) {
	var err error
	if t.adapter, err = agentcli.For(agentcli.CLI(t.in.Agent)); err != nil {
		return t.refuse(TypeRefused, err), false
	}
	if t.message, err = t.h.prompt(t.life, t.in); err != nil {
		refusal = t.refuse(TypeRefused, err)
		refusal.Undelivered = false // another attempt would not find the text either
		return refusal, false
	}
	if t.number > 1 {
		again := session.TurnAttempt{Turn: t.in.Turn, Attempt: t.number}
		if err := t.h.o.Workflows.TryAgain(t.life, t.in.WorkflowID, t.in.RunID, again); err != nil {
			t.slog.Warn("calls of the earlier process still wait for approval", "error", err)
		}
	}
	return refusal, true
}

// run runs the turn in the process of an agent, or in a new one, which inherits the lock.
func (t *attempt) run(s *slot, a *agent, lock *filelock.Lock) (session.TurnResult, error) {
	if t.running.Err() != nil {
		r := t.newResult(session.TurnInterrupted)
		r.Summary = "The turn was interrupted before it started"
		return t.finish(r), nil
	}
	if refusal, ok, err := t.checkHost(); !ok {
		return refusal, err
	}
	text := t.message
	switch {
	case t.past.started:
		text = continueText
		t.mu.Lock()
		t.continued = true
		t.uuid = resumeUUID(t.in, t.number)
		t.mu.Unlock()
	case t.past.rebuilt != nil:
		var err error
		if text, _, err = t.recordedMessage(); err != nil {
			return t.unreadable(err)
		}
	}
	log, err := t.h.logs.Create(t.logName(t.number))
	if err != nil {
		return t.refuse(TypeLogBroken, err), nil
	}
	t.mu.Lock()
	t.log = &agentcall.EventLog{LiveLog: log, Redact: t.h.redact, Fault: t.h.fault}
	t.mu.Unlock()
	r, err := t.converse(s, a, lock, text)
	if err == nil {
		t.completeUsage(&r)
	}
	t.seal(&r)
	return r, err
}

func (t *attempt) logName(number int32) artifact.LogName {
	in := t.in
	return artifact.LogName{WorkflowID: in.WorkflowID, RunID: in.RunID, Activity: session.ActivityTurn,
		Seq: in.Turn, Attempt: number}
}

// recovered returns the result of a turn that an earlier attempt completed.
func (t *attempt) recovered(err error) (session.TurnResult, error) {
	if err != nil {
		return session.TurnResult{}, err
	}
	return t.finish(*t.past.result), nil
}

// completeUsage adds what earlier attempts used, which the process does not report. If the agent
// ended without a result, the usage comes from its transcript.
func (t *attempt) completeUsage(r *session.TurnResult) {
	if t.past.baseline != nil && !t.warm {
		r.Usage = r.Usage.Add(t.past.baseline.Used)
	}
	if t.record.ended || !t.adapter.Features.SessionID {
		return
	}
	m, err := t.findTurn()
	if err != nil {
		t.slog.Warn("the cost of the turn is unknown", "error", err)
		r.Usage.Unpriced = true
		return
	}
	r.Usage = m.Usage
	r.CostSeen = t.in.CostSeen + m.Usage.CostUSD
}

// continueText is the message to an agent whose turn was interrupted by a crash.
const continueText = "The program that runs you was interrupted in the middle of this turn and has started you again. " +
	"Go on where you stopped, and finish what you were asked. What you have done already is done: look before you do it again."

// resumeUUID returns the identity of the message with which an attempt continues a turn. An agent
// ignores a message whose id it already has.
func resumeUUID(in session.TurnInput, number int32) string {
	return session.UUID("again", in.UUID, fmt.Sprint(number))
}

// converse gives the agent the text and waits for the end of the turn. A process that it starts
// inherits the lock.
func (t *attempt) converse(s *slot, a *agent, lock *filelock.Lock, text string) (
	session.TurnResult, error,
) {
	if a != nil {
		t.begin(true)
		if !a.begin(t) {
			return retryable(string(agentcli.ClassKilled), "the agent's process has just ended")
		}
		return t.give(a, text)
	}
	for {
		t.begin(false)
		a, err := t.start(agentCall(t.h.o.Agents[t.adapter.CLI], t.adapter, t.in, text, t.past.resume), lock)
		if err != nil {
			return t.startFailed(err)
		}
		t.h.slots.setAgent(s, a)
		t.h.step("started")
		r, err := t.give(a, text)
		if err != nil || r.Failed == nil {
			return r, err
		}
		switch class := agentcli.Class(r.Failed.Type); {
		case class == agentcli.ClassSessionInUse && t.past.resume == "":
			// The conversation exists although its transcript was not found: resume it.
			t.past.resume = agentSession(t.in)
			t.past.baseline = nil
		case class == agentcli.ClassUnknownSession && t.past.resume != "" && t.past.rebuilt == nil:
			a.close()
			message, err := t.rebuild()
			if err != nil {
				return t.unreadable(err)
			}
			if message == "" {
				return r, nil
			}
			text = message
		default:
			return r, nil
		}
	}
}

// unreadable returns the result of a turn whose recorded conversation cannot be read.
func (t *attempt) unreadable(err error) (session.TurnResult, error) {
	if t.number < maxCrashes {
		return retryable(TypeUnreadable, err.Error())
	}
	return t.refuse(TypeUnreadable, err), nil
}

// give sends the text to a streaming agent and waits for the end of the turn.
func (t *attempt) give(a *agent, text string) (session.TurnResult, error) {
	t.mu.Lock()
	t.agent = a
	t.mu.Unlock()
	ctx, cancel := context.WithCancel(t.life)
	defer cancel()
	defer context.AfterFunc(t.running, cancel)()
	if !t.warm {
		a.tools.await(a.gone, ctx.Done())
	}
	if a.streams {
		t.h.step("send")
		line, err := agentcli.UserTurn(t.uuid, text)
		if err := a.send(ctx, line, err); err != nil && a.alive() {
			a.p.Stop() // its exit says more than the write error
		}
	}
	t.h.step("sent")
	return t.settle(t.await(a))
}

// retryable returns the error of an attempt that the activity retries.
func retryable(kind, message string) (session.TurnResult, error) {
	return session.TurnResult{}, temporal.NewApplicationError(message, kind)
}

// startFailed returns the result if no process was started.
func (t *attempt) startFailed(err error) (session.TurnResult, error) {
	if _, ok := errors.AsType[*agentcli.CallError](err); ok {
		return t.refuse(TypeRefused, err), nil
	}
	if errors.Is(err, filelock.ErrHeld) {
		return retryable(TypeSessionInUse, "another process of the agent uses the session and does not end")
	}
	if t.life.Err() != nil {
		return retryable(TypeHostGone, context.Cause(t.life).Error())
	}
	return t.refuse(string(agentcli.ClassMissing), err), nil
}

// newResult returns the result of a turn that did not reach the agent.
func (t *attempt) newResult(status session.TurnStatus) session.TurnResult {
	return session.TurnResult{
		Turn: t.in.Turn, Status: status, AgentSessionID: t.in.AgentSessionID,
		CostSeen: t.in.CostSeen, UsageSeen: t.in.UsageSeen,
	}
}

// refuse returns the failed result of a turn for which no process was started. Its messages can be
// sent again.
func (t *attempt) refuse(kind string, err error) session.TurnResult {
	r := t.newResult(session.TurnFailed)
	r.Summary = err.Error()
	r.Failed = newFailure(kind, err.Error())
	r.Undelivered = true
	return t.finish(r)
}

// await waits for the end of the turn and reports whether it was interrupted. An agent that does
// not end its turn when asked is stopped.
func (t *attempt) await(a *agent) (end agentEnd, interrupted bool) {
	select {
	case end := <-t.agentEnd:
		return end, t.running.Err() != nil // an interrupt may have stopped it while it was given the turn
	case <-t.life.Done():
		a.p.Stop()
		return <-t.agentEnd, false
	case <-t.running.Done():
		if a.streams && a.request(agentcli.Interrupt("acescope-interrupt-"+t.uuid)) == nil {
			select {
			case end := <-t.agentEnd:
				return end, true
			case <-t.life.Done():
			case <-time.After(interruptTimeout):
			}
		}
		t.slog.Warn("the agent does not end its turn; ending its process", "pid", a.p.Pid())
		a.p.Stop()
		return <-t.agentEnd, true
	}
}

// prompt returns the text of the turn's messages.
func (h *Host) prompt(ctx context.Context, in session.TurnInput) (string, error) {
	var texts []string
	for _, m := range in.Messages {
		text := m.Text
		if m.Ref != nil {
			data, err := h.o.Artifacts.Get(ctx, *m.Ref, maxMessage)
			if err != nil {
				return "", fmt.Errorf("message %s: %w", m.ID, err)
			}
			text = string(data)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n\n"), nil
}

// maxMessage bounds a message that is an artifact, in bytes.
const maxMessage = 8 << 20
