package host

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/internal/process"
)

// attempt is one attempt of a turn. It runs independently of the activity that started it: a
// later activity attempt in this process waits for the same one.
type attempt struct {
	h      *Host
	in     session.TurnInput
	number int32
	began  time.Time
	slog   *slog.Logger

	done   chan struct{} // closed when result and err are set
	result session.TurnResult
	err    error

	lifetime
	agentEnd chan agentEnd // how the agent has ended the turn, or its process
	requests chan struct{} // semaphore of tool requests

	adapter agentcli.Adapter
	message string // the text of the turn's messages

	mu        sync.Mutex
	uuid      string              // of the turn's message
	log       *agentcall.EventLog // nil unless it is open
	record    *record
	agent     *agent
	past      past
	warm      bool
	continued bool
	version   string // of the agent, if this turn checked it
	calls     int
}

// lifetime ends an attempt: the turn can be given up, interrupted, or abandoned.
type lifetime struct {
	life      context.Context // ends when the turn is given up
	giveUp    context.CancelCauseFunc
	running   context.Context // ends when the turn is interrupted
	interrupt context.CancelFunc

	mu           sync.Mutex
	abandonTimer *time.Timer
}

// agentEnd is how an agent has ended a turn. exit is zero if its process is still alive.
type agentEnd struct {
	exit   process.Exit
	stderr string
}

// abandonAfter is how long a turn continues after its activity attempt was given up and before
// the next one arrives.
const abandonAfter = time.Minute

func (h *Host) newAttempt(in session.TurnInput, number int32) *attempt {
	t := &attempt{
		h: h, in: in, number: number, began: time.Now(), uuid: in.UUID,
		done: make(chan struct{}), agentEnd: make(chan agentEnd, 1),
		requests: make(chan struct{}, maxRequests),
		slog: h.log.With("workflow", in.WorkflowID, "run", in.RunID, "session", in.SessionID,
			"turn", in.Turn, "attempt", number),
	}
	t.life, t.giveUp = context.WithCancelCause(h.life)
	t.running, t.interrupt = context.WithCancel(context.Background())
	return t
}

func (t *attempt) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// abandonLater gives the turn up after abandonAfter, unless keep is called before.
func (l *lifetime) abandonLater() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.abandonTimer = time.AfterFunc(abandonAfter, func() { l.giveUp(errAbandoned) })
}

func (l *lifetime) keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.abandonTimer != nil {
		l.abandonTimer.Stop()
	}
}

func (t *attempt) heartbeat() Heartbeat {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := Heartbeat{AgentSessionID: t.in.AgentSessionID, UUID: t.uuid, Attempt: t.number}
	if t.log != nil {
		b.LogPath, b.Line = t.log.Path(), t.log.Lines
	}
	if t.agent != nil {
		t.agent.mu.Lock()
		b.AgentSessionID = t.agent.conversation
		t.agent.mu.Unlock()
	}
	return b
}

// add logs an event, adds it to the record and reports whether the turn has ended.
func (t *attempt) add(e agentcli.Event) (ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Kind == agentcli.KindResult {
		t.h.step("unwritten")
	}
	if t.log != nil && e.Part == 0 {
		e.Raw = t.h.redact.Line(e.Raw)
		t.log.Add(e)
		if t.log.Err != nil {
			t.interrupt()
		}
	}
	ended = t.record.add(e)
	switch {
	case ended:
		t.h.step("result")
	case e.Kind == agentcli.KindInit:
		t.h.step("event")
	}
	return ended
}

// begin starts the record of a process. It sets and logs the cost from which the process counts,
// which the process itself does not report.
func (t *attempt) begin(warm bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.warm = warm
	t.record = newRecord(t.in, t.uuid, !warm)
	t.record.outList = t.past.out
	if warm || t.past.baseline == nil {
		return
	}
	t.record.judge.Meter.Cost = t.past.baseline.Counted
	t.log.AddOwn(baselineLine{baselineType, *t.past.baseline})
}

// maxCrashes is the attempt from which an agent that ends without a result fails its turn.
const maxCrashes = 4

// settle returns the result of a turn that has ended.
func (t *attempt) settle(end agentEnd, interrupted bool) (session.TurnResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.record.judge.Outcome(end.exit, t.h.redact.String(end.stderr))
	r := t.record.result(t.in, o)
	r.Warm, r.Continued = t.warm, t.continued
	switch {
	case t.log.Err != nil:
		t.slog.Error("the turn's log is incomplete", "error", t.log.Err)
		r.Status = session.TurnFailed
		r.Failed = newFailure(TypeLogBroken, t.log.Err.Error())
	case o.OK:
		r.Status = session.TurnCompleted
	case t.life.Err() != nil:
		return r, givenUp(context.Cause(t.life))
	case interrupted:
		r.Status, r.Summary = session.TurnInterrupted, "The turn was interrupted"
	case o.Class != agentcli.ClassInterrupted && o.Result == nil && o.Class.Infrastructure() &&
		t.number < maxCrashes:
		return r, temporal.NewApplicationError(t.h.redact.String(o.Sentence), string(o.Class))
	default:
		t.setStatus(&r, o)
	}
	return t.finish(r), nil
}

func newFailure(kind, message string) *ace.Failure {
	return &ace.Failure{Kind: ace.Failed, Type: kind, Message: message}
}

// setStatus sets the status of a result from the agent's own outcome.
func (t *attempt) setStatus(r *session.TurnResult, o agentcli.Outcome) {
	switch {
	case o.OK:
		r.Status = session.TurnCompleted
	case o.Class == agentcli.ClassInterrupted:
		r.Status = session.TurnInterrupted
	default:
		r.Status = session.TurnFailed
		r.Failed = newFailure(string(o.Class), o.Sentence)
		r.Undelivered = o.Class.Undelivered() && !slices.ContainsFunc(r.Messages, func(o session.Out) bool {
			return o.Kind == session.OutToolUse
		})
	}
}

// finish completes a result and redacts it, except for its ids.
func (t *attempt) finish(r session.TurnResult) session.TurnResult {
	r.Version, r.Rebuilt = t.version, t.past.rebuilt
	r.Attempt = t.number
	r.DurationMS = float64(time.Since(t.began).Microseconds()) / 1000
	data, err := json.Marshal(r)
	if err != nil {
		return r
	}
	var clean session.TurnResult
	if err := json.Unmarshal(t.h.redact.Line(data), &clean); err != nil {
		return session.TurnResult{
			Turn: r.Turn, Status: session.TurnFailed, AgentSessionID: r.AgentSessionID,
			CostSeen: r.CostSeen, UsageSeen: r.UsageSeen, Usage: r.Usage, Rebuilt: r.Rebuilt,
			Failed: newFailure("BadResult", fmt.Sprintf("the result cannot be encoded: %v", err)),
		}
	}
	clean.AgentSessionID, clean.Log, clean.LogPath = r.AgentSessionID, r.Log, r.LogPath
	return clean
}

// seal ends the log. If the log cannot become an artifact, the result has only its path.
func (t *attempt) seal(r *session.TurnResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.log == nil {
		return
	}
	r.LogPath = t.log.Path()
	ref, err := t.log.Seal(context.WithoutCancel(t.life))
	t.log = nil
	if err != nil {
		t.slog.Error("the turn's log was not stored as an artifact", "error", err)
		return
	}
	r.Log = &ref
}
