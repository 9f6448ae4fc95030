package host

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/process"
	"acescope/engine/session"
)

// run is one turn, as one attempt makes it. It goes on by itself: a later attempt in this
// process waits for the same run.
type run struct {
	h       *Host
	in      session.TurnInput
	attempt int32
	began   time.Time
	slog    *slog.Logger

	done   chan struct{} // closed when result and err are there
	result session.TurnResult
	err    error

	stop     chan struct{} // closed to interrupt the turn
	stopOnce sync.Once
	give     context.Context // done when the turn is given up
	giveUp   context.CancelCauseFunc
	asking   chan struct{} // holds as many as are asked about

	mu        sync.Mutex
	left      *time.Timer // ends a turn that nobody waits for
	uuid      string
	log       turnLog
	logFailed error
	record    *record
	agent     *agent
	past      past
	warm      bool
	continued bool
	version   string        // of the agent, where this turn asked for it
	ended     chan struct{} // closed when the agent has ended the turn, or itself
	exit      agentcli.Exit
	stderr    string
	line      int64
	calls     int
}

// turnLog is the log of a turn, an [artifact.LiveLog].
type turnLog interface {
	Path() string
	Line(line []byte) error
	Seal(ctx context.Context) (ace.Ref, error)
}

// abandonAfter is how long a turn goes on that nobody waits for: the attempt that began it
// was given up, and the next has not come.
const abandonAfter = time.Minute

func (h *Host) newRun(in session.TurnInput, attempt int32) *run {
	r := &run{h: h, in: in, attempt: attempt, began: time.Now(), done: make(chan struct{}), stop: make(chan struct{}), ended: make(chan struct{}),
		asking: make(chan struct{}, maxAsking), uuid: in.UUID, slog: h.log.With("workflow", in.WorkflowID, "run", in.RunID, "session", in.SessionID, "turn", in.Turn, "attempt", attempt)}
	r.give, r.giveUp = context.WithCancelCause(h.life)
	return r
}

// of tells whether this is the run of a turn.
func (r *run) of(in session.TurnInput) bool { return r.in.RunID == in.RunID && r.in.Turn == in.Turn }

func (r *run) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// interrupt asks for the turn to end.
func (r *run) interrupt() { r.stopOnce.Do(func() { close(r.stop) }) }

// leave has the turn end unless somebody waits for it again soon; stay is that somebody.
func (r *run) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = time.AfterFunc(abandonAfter, func() { r.giveUp(errNobody) })
}

func (r *run) stay() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left != nil {
		r.left.Stop()
	}
}

// take logs an event and adds it to what is known of the turn. It tells whether the turn
// has ended.
func (r *run) take(e agentcli.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Kind == agentcli.KindResult {
		r.h.at("unwritten")
	}
	if e.Part == 0 {
		r.write(e)
	}
	ended := r.record.add(e)
	switch {
	case ended:
		r.h.at("result")
	case e.Kind == agentcli.KindInit:
		r.h.at("event")
	}
	return ended
}

// write puts a line into the log, without secrets. What is no JSON stands in JSON.
func (r *run) write(e agentcli.Event) {
	r.line++
	if r.log == nil {
		return
	}
	line := e.Raw
	if e.Kind == agentcli.KindGarbage || len(line) == 0 || !json.Valid(line) {
		wrapped, err := json.Marshal(map[string]any{"type": "acescope_garbage", "name": e.Name, "text": ace.Cut(e.Text, maxText), "size": e.Size})
		if err != nil || len(line) == 0 && e.Kind != agentcli.KindGarbage {
			return
		}
		line = wrapped
	}
	if err := r.log.Line(r.h.redact.Line(line)); err != nil && r.logFailed == nil {
		r.logFailed = err
		r.slog.Error("the turn's log is not complete, so the turn is stopped", "error", err)
		r.interrupt()
	}
}

// begin has the turn's process count from where it does, and notes that in the log: the
// process itself does not tell.
func (r *run) begin() {
	if r.past.start == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.judge.Meter.Cost = r.past.start.Counted
	if line, err := r.past.start.line(); err == nil {
		r.write(agentcli.Event{Raw: line})
	}
}

// concluded tells whether the agent said how the turn ended.
func (r *run) concluded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record.ended
}

// answered is called when the agent has ended the turn and stays.
func (r *run) answered() {
	r.exit = agentcli.Exit{Alive: true}
	close(r.ended)
}

// died is called when the agent's process has ended, in the turn.
func (r *run) died(exit process.Exit, stderr string) {
	r.exit = agentcli.Exit{Code: exit.Code, Signal: exit.Signal, ByUs: exit.Class == process.Killed || exit.Class == process.Cancelled,
		TimedOut: exit.Class == process.TimedOut, StartErr: exit.Err}
	r.stderr = stderr
	close(r.ended)
}

// settle makes the result of a turn that has ended.
func (r *run) settle(interrupted bool) (session.TurnResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.record.judge.Outcome(r.exit, r.h.redact.String(r.stderr))
	t := r.record.result(r.in, o)
	t.Warm, t.Continued = r.warm, r.continued
	switch {
	case r.logFailed != nil:
		t.Status, t.Failed = session.TurnFailed, &ace.Failure{Kind: ace.Failed, Type: TypeLogBroken, Message: r.logFailed.Error()}
	case o.OK:
		t.Status = session.TurnCompleted
	case r.give.Err() != nil:
		return t, temporal.NewApplicationError("the turn was given up: "+context.Cause(r.give).Error(), TypeHostGone)
	case interrupted:
		t.Status, t.Summary = session.TurnInterrupted, "The turn was interrupted"
	case o.Class == agentcli.ClassInterrupted:
		t.Status = session.TurnInterrupted
	case o.Result == nil && o.Class.Infrastructure() && r.attempt < maxCrashes:
		return t, temporal.NewApplicationError(r.h.redact.String(o.Sentence), string(o.Class))
	default:
		t.Status, t.Failed = session.TurnFailed, &ace.Failure{Kind: ace.Failed, Type: string(o.Class), Message: o.Sentence}
	}
	return r.finish(t), nil
}

// maxCrashes is at which attempt an agent that ends without a result fails its turn.
const maxCrashes = 4

// finish adds what every result has, and strikes out secrets.
func (r *run) finish(t session.TurnResult) session.TurnResult {
	t.Version = r.version
	t.Attempt, t.DurationMS = r.attempt, float64(time.Since(r.began).Microseconds())/1000
	data, err := json.Marshal(t)
	if err != nil {
		return t
	}
	var clean session.TurnResult
	if err := json.Unmarshal(r.h.redact.Line(data), &clean); err != nil {
		return session.TurnResult{Turn: t.Turn, Status: session.TurnFailed, AgentSessionID: t.AgentSessionID, CostSeen: t.CostSeen, UsageSeen: t.UsageSeen,
			Usage: t.Usage, Failed: &ace.Failure{Kind: ace.Failed, Type: "BadResult", Message: fmt.Sprintf("the result could not be made: %v", err)}}
	}
	// What identifies is not text.
	clean.AgentSessionID, clean.Log, clean.LogPath = t.AgentSessionID, t.Log, t.LogPath
	return clean
}

// seal ends the log. Where it cannot be made an artifact, its path alone is told.
func (r *run) seal(t *session.TurnResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.log == nil {
		return
	}
	t.LogPath = r.log.Path()
	ref, err := r.log.Seal(context.WithoutCancel(r.give))
	r.log = nil
	if err != nil {
		r.slog.Error("the turn's log was not sealed", "error", err)
		return
	}
	t.Log = &ref
}
