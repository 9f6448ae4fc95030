package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/artifact"
	"acescope/engine/process/filelock"
	"acescope/engine/session"
)

// beatEvery is how often a turn tells that it lives, which bounds how late it is noticed
// that it is to stop.
const beatEvery = time.Second

// Beat is what a turn's heartbeats tell.
type Beat struct {
	AgentSessionID string `json:"agent_session_id,omitempty"`
	UUID           string `json:"uuid,omitempty"`
	Line           int64  `json:"line"` // of the log
	LogPath        string `json:"log_path,omitempty"`
}

// runTurn gives the agent a turn.
func (h *Host) runTurn(ctx context.Context, in session.TurnInput) (session.TurnResult, error) {
	return h.turn(ctx, in, activity.GetInfo(ctx).Attempt, func(b Beat) { activity.RecordHeartbeat(ctx, b) })
}

// Why a turn is given up.
var (
	errNobody  = errors.New("nobody waits for the turn")
	errStopped = errors.New("this process stops")
)

// turn makes a turn, or waits for the one that an earlier attempt has begun here. When ctx
// is done because the turn is to be cancelled, the turn is interrupted and its result given;
// when it is done for another reason, the turn goes on for the attempt that follows.
func (h *Host) turn(ctx context.Context, in session.TurnInput, attempt int32, beat func(Beat)) (session.TurnResult, error) {
	h.at("turn")
	beat(Beat{AgentSessionID: in.AgentSessionID, UUID: in.UUID})
	r, err := h.enter(ctx, in, attempt)
	if err != nil {
		return session.TurnResult{}, err
	}
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	gone := ctx.Done()
	for {
		select {
		case <-r.done:
			h.at("done")
			result := r.result
			if attempt > r.attempt {
				result.Recovered = true
			}
			return result, r.err
		case <-tick.C:
			beat(r.beat())
		case <-gone:
			if !temporal.IsCanceledError(context.Cause(ctx)) {
				r.leave()
				return session.TurnResult{}, temporal.NewApplicationError("the turn was given up: "+context.Cause(ctx).Error(), TypeHostGone)
			}
			r.interrupt()
			gone = nil
		}
	}
}

func (r *run) beat() Beat {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := Beat{AgentSessionID: r.in.AgentSessionID, UUID: r.uuid, Line: r.line}
	if r.log != nil {
		b.LogPath = r.log.Path()
	}
	if r.agent != nil {
		r.agent.mu.Lock()
		b.AgentSessionID = r.agent.session
		r.agent.mu.Unlock()
	}
	return b
}

// enter is the run of a turn: one that is there, or a new one, once the turn before has
// ended.
func (h *Host) enter(ctx context.Context, in session.TurnInput, attempt int32) (*run, error) {
	s := h.slot(in.SessionID)
	s.in.Lock()
	defer s.in.Unlock()
	s.mu.Lock()
	before := s.run
	s.mu.Unlock()
	if before != nil && before.of(in) && (!before.over() || before.err == nil) {
		before.stay()
		return before, nil
	}
	if before != nil && !before.over() {
		before.giveUp(errNobody)
		select {
		case <-before.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	h.mu.Lock()
	over := h.over
	h.mu.Unlock()
	if over {
		return nil, temporal.NewApplicationError(errStopped.Error(), TypeHostGone)
	}
	r := h.newRun(in, attempt)
	s.mu.Lock()
	s.run = r
	s.mu.Unlock()
	go h.work(s, r)
	return r, nil
}

// work makes the turn.
func (h *Host) work(s *slot, r *run) {
	defer r.giveUp(nil)
	r.result, r.err = h.attempt(s, r)
	if r.err != nil {
		r.slog.Warn("the turn's attempt failed", "error", r.err)
	} else {
		r.slog.Info("the turn has ended", "status", r.result.Status, "cost", r.result.Usage.CostUSD, "recovered", r.result.Recovered, "continued", r.result.Continued)
	}
	s.mu.Lock()
	s.used = time.Now()
	a := s.agent
	s.mu.Unlock()
	if a != nil {
		h.rest(s, a)
	}
	close(r.done)
	h.trim()
}

// rest lets a process wait for the next turn, not for ever.
func (h *Host) rest(s *slot, a *agent) {
	if !a.alive() {
		s.drop(a)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(h.o.MaxIdle, func() { h.retire(s, a, "it was idle") })
}

func (h *Host) attempt(s *slot, r *run) (session.TurnResult, error) {
	adapter, err := agentcli.For(agentcli.CLI(r.in.Agent))
	if err != nil {
		return r.refusal(TypeRefused, err), nil
	}
	text, err := h.instruction(r.in)
	if err != nil {
		return r.refusal(TypeRefused, err), nil
	}
	if refusal, fine, err := r.vet(); !fine {
		return refusal, err
	}
	a := s.warm()
	var lock *filelock.Lock
	if a == nil || r.attempt > 1 {
		if err := h.inLogs(r, adapter); err != nil || r.past.result != nil {
			return r.found(err)
		}
	}
	if a == nil {
		// First a process that is left is ended: what it still does is looked for after that.
		if lock, err = h.lockSession(r.give, r.in.SessionID); err != nil {
			return r.notStarted(err)
		}
		defer lock.Close() // the process has it, too
		h.at("locked")
	}
	if a == nil || r.attempt > 1 {
		if err := h.inMemory(r, adapter); err != nil || r.past.result != nil {
			return r.found(err)
		}
	}
	select {
	case <-r.stop:
		return r.finish(session.TurnResult{Turn: r.in.Turn, Status: session.TurnInterrupted, AgentSessionID: r.in.AgentSessionID,
			Summary: "The turn was interrupted before it began", CostSeen: r.in.CostSeen, UsageSeen: r.in.UsageSeen}), nil
	default:
	}
	if r.past.begun {
		text = continueText
		r.mu.Lock()
		r.continued, r.uuid = true, againUUID(r.in, r.attempt)
		r.mu.Unlock()
	}
	name := artifact.LogName{WorkflowID: r.in.WorkflowID, RunID: r.in.RunID, Activity: session.ActivityTurn, Seq: r.in.Turn, Attempt: r.attempt}
	log, err := h.openLog(name)
	if err != nil {
		return r.refusal(TypeLogBroken, err), nil
	}
	r.mu.Lock()
	r.log = log
	r.mu.Unlock()
	t, err := h.talk(s, r, adapter, a, lock, text)
	if err == nil {
		h.spent(r, adapter, &t)
	}
	r.seal(&t)
	return t, err
}

// found is what was found done.
func (r *run) found(err error) (session.TurnResult, error) {
	if err != nil {
		return session.TurnResult{}, err
	}
	return r.finish(*r.past.result), nil
}

// spent makes a turn's usage whole. No result tells what earlier attempts used, and of an
// agent that ended without a result only its own memory tells.
func (h *Host) spent(r *run, adapter agentcli.Adapter, t *session.TurnResult) {
	if r.past.start != nil && !r.warm {
		t.Usage = t.Usage.Add(r.past.start.Used)
	}
	if r.concluded() || !adapter.Features().SessionID {
		return
	}
	m, err := h.memory(adapter).turn(r.give, r.in, r.uuids())
	if err != nil {
		r.slog.Warn("what the turn cost is not known", "error", err)
		t.Usage.Unpriced = true
		return
	}
	t.Usage, t.CostSeen = m.Usage, r.in.CostSeen+m.Usage.CostUSD
}

// continueText is what an agent is told whose turn was broken off by a crash.
const continueText = "The program that runs you was interrupted in the middle of this turn and has started you again. " +
	"Go on where you stopped, and finish what you were asked. What you have done already is done: look before you do it again."

// againUUID is the identity of the message by which an attempt goes on with a turn: one that
// the conversation knows already would be swallowed.
func againUUID(in session.TurnInput, attempt int32) string {
	return session.UUID("again", in.UUID, fmt.Sprint(attempt))
}

// warm is the process that waits for the next turn, nil where there is none.
func (s *slot) warm() *agent {
	s.mu.Lock()
	a := s.agent
	s.mu.Unlock()
	if a == nil || !a.alive() {
		return nil
	}
	return a
}

// talk gives the agent the text and waits for the turn's end. A process that it starts gets
// the lock.
func (h *Host) talk(s *slot, r *run, adapter agentcli.Adapter, a *agent, lock *filelock.Lock, text string) (session.TurnResult, error) {
	if r.warm = a != nil; r.warm {
		r.record = newRecord(r.in, r.uuid, false)
		if !a.begin(r) {
			return session.TurnResult{}, temporal.NewApplicationError("the agent's process has just ended", string(agentcli.ClassKilled))
		}
		return h.give(r, a, text)
	}
	for {
		r.record = newRecord(r.in, r.uuid, true)
		r.begin()
		a, err := h.start(r, adapter, h.call(adapter, r.in, text, r.past.resume), lock)
		if err != nil {
			return r.notStarted(err)
		}
		s.mu.Lock()
		s.agent = a
		s.mu.Unlock()
		h.at("started")
		t, err := h.give(r, a, text)
		// A transcript that was not found: it is gone on with.
		if err == nil && t.Failed != nil && t.Failed.Type == string(agentcli.ClassSessionInUse) && r.past.resume == "" {
			r.past.resume, r.past.start = agentSession(r.in), nil
			r.ended = make(chan struct{})
			continue
		}
		return t, err
	}
}

// give sends the text, where it goes over standard input, and waits for the end.
func (h *Host) give(r *run, a *agent, text string) (session.TurnResult, error) {
	r.mu.Lock()
	r.agent = a
	r.mu.Unlock()
	if !r.warm {
		a.tools.await(a.gone, r.stop)
	}
	if a.streams {
		h.at("send")
		if err := a.send(agentcli.UserTurn(r.uuid, text)); err != nil && a.alive() {
			a.p.Stop() // how it ended tells more
		}
	}
	h.at("sent")
	return r.settle(r.await(a))
}

// notStarted is the result where there is no process.
func (r *run) notStarted(err error) (session.TurnResult, error) {
	var call *agentcli.CallError
	switch {
	case errors.As(err, &call):
		return r.refusal(TypeRefused, err), nil
	case errors.Is(err, filelock.ErrHeld):
		return session.TurnResult{}, temporal.NewApplicationError("another process of the agent has the session and does not end", TypeSessionInUse)
	case r.give.Err() != nil:
		return session.TurnResult{}, temporal.NewApplicationError(context.Cause(r.give).Error(), TypeHostGone)
	}
	return r.refusal(string(agentcli.ClassMissing), err), nil
}

// refusal is the result of a turn that the agent was not given.
func (r *run) refusal(kind string, err error) session.TurnResult {
	return r.finish(session.TurnResult{Turn: r.in.Turn, Status: session.TurnFailed, AgentSessionID: r.in.AgentSessionID, Summary: err.Error(),
		CostSeen: r.in.CostSeen, UsageSeen: r.in.UsageSeen, Failed: &ace.Failure{Kind: ace.Failed, Type: kind, Message: err.Error()}})
}

// await waits for the turn's end. It tells whether the turn was interrupted. An agent that
// does not end its turn when it is asked to is ended.
func (r *run) await(a *agent) (interrupted bool) {
	select {
	case <-r.ended:
		return false
	case <-r.give.Done():
		a.p.Stop()
		<-r.ended
		return false
	case <-r.stop:
		if a.streams && a.send(agentcli.Interrupt("acescope-interrupt-"+r.uuid)) == nil {
			select {
			case <-r.ended:
				return true
			case <-r.give.Done():
			case <-time.After(interruptWithin):
			}
		}
		r.slog.Warn("the agent does not end its turn and is ended", "pid", a.p.Pid())
		a.p.Stop()
	}
	<-r.ended
	return true
}

// instruction is the text of a turn's messages.
func (h *Host) instruction(in session.TurnInput) (string, error) {
	var texts []string
	for _, m := range in.Messages {
		text := m.Text
		if m.Ref != nil {
			data, err := h.o.Artifacts.Get(*m.Ref, maxMessage)
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
