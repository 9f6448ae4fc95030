package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/batch"
	"acescope/engine/internal/redact"
	"acescope/engine/internal/sleep"
	"acescope/engine/learning/model"
	"acescope/engine/store/artifact"
)

// callsPerPace is the number of tool calls that together take the pace of a phase.
const callsPerPace = 5

// maxObserved bounds the tool calls that an agent makes itself. Later calls are only in the
// agent's log.
const maxObserved = 5000

// toolbox runs the tool calls of one skills session and observes the calls that an agent makes
// itself. It records each call as events and as an invocation for the session's result.
type toolbox struct {
	config    ace.SkillsConfig
	record    func(...ace.ToolEvent) // nil: no events
	artifacts *artifact.Store
	secrets   *redact.Redactor
	pass      int // see ace.SkillsInput
	attempt   int32
	pause     time.Duration

	mu    sync.Mutex
	calls []ace.Invocation
	// observed maps the IDs of an agent's own calls to indexes in calls.
	observed map[string]int
}

// Call implements [model.Toolbox].
func (t *toolbox) Call(ctx context.Context, name string, args any,
	fn func(context.Context) (any, error)) (any, error) {
	n := t.open(name, t.payload(ctx, args))
	if !t.config.Allows(name) {
		t.end(n, model.CallEnd{Error: model.ErrDenied.Error()})
		return nil, model.ErrDenied
	}
	started := time.Now()
	result, err := fn(ctx)
	end := model.CallEnd{Accepted: !errors.Is(err, model.ErrDenied), OK: err == nil,
		Took: time.Since(started)}
	if err != nil {
		end.Error = err.Error()
	}
	end.Result = t.payload(ctx, result)
	t.end(n, end)
	_ = sleep.For(ctx, t.pause)
	return result, err
}

func (t *toolbox) list() []ace.Invocation {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]ace.Invocation{}, t.calls...)
}

func (t *toolbox) open(name string, args json.RawMessage) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.append(name, args)
}

// append adds a call. Its ID includes the attempt, because events report the calls of failed attempts too.
func (t *toolbox) append(name string, args json.RawMessage) int {
	n := len(t.calls)
	id := fmt.Sprintf("skills-%d.%d", t.attempt, n+1)
	if t.pass > 0 {
		id = fmt.Sprintf("skills-p%d-%d.%d", t.pass, t.attempt, n+1)
	}
	inv := ace.Invocation{ID: id, Name: name, Args: args, At: time.Now().UTC()}
	t.calls = append(t.calls, inv)
	t.emit(ace.ToolEvent{EventID: id + ".use", CallID: id, Kind: ace.KindToolUse, Name: name, Args: args,
		At: inv.At})
	return n
}

func (t *toolbox) end(n int, end model.CallEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setEnd(n, end)
}

// setEnd sets the end of a call. The caller holds the lock.
func (t *toolbox) setEnd(n int, end model.CallEnd) {
	inv := &t.calls[n]
	now := time.Now().UTC()
	if !end.Began.IsZero() && end.Began.Before(now) {
		inv.At = end.Began
	}
	if end.Took == 0 && end.Began.IsZero() {
		end.Took = now.Sub(inv.At)
	}
	inv.Accepted = end.Accepted
	inv.OK = end.OK
	inv.Result = end.Result
	inv.Error = t.secrets.String(end.Error)
	inv.DurationMS = millis(end.Took)
	t.emit(ace.ToolEvent{EventID: inv.ID + ".result", CallID: inv.ID, Kind: ace.KindToolResult,
		Name:   inv.Name,
		Result: inv.Result, Accepted: &inv.Accepted, OK: &inv.OK, At: now, DurationMS: inv.DurationMS,
		Error: inv.Error})
}

func (t *toolbox) emit(e ace.ToolEvent) {
	if t.record != nil {
		e.Source = "acescope"
		t.record(e)
	}
}

// payload returns a value as JSON, or a reference if the JSON is too large for a history.
func (t *toolbox) payload(ctx context.Context, v any) json.RawMessage {
	if v == nil {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		data, _ = json.Marshal(fmt.Sprint(v))
	}
	data = t.secrets.Line(data)
	if len(data) <= ace.InlineBytes {
		return data
	}
	ref, err := t.artifacts.PutBytes(ctx, data, "application/json")
	if err != nil {
		return ace.Preview(data)
	}
	data, _ = json.Marshal(ref)
	return data
}

// rawPayload is [toolbox.payload] for JSON, which may be empty.
func (t *toolbox) rawPayload(ctx context.Context, v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	return t.payload(ctx, v)
}

// Begun implements [model.CallRecorder].
func (t *toolbox) Begun(ctx context.Context, id, name string, args json.RawMessage) {
	args = t.rawPayload(ctx, args)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observe(id, name, args)
}

// observe returns the index of an agent's call, which it adds if it is new, or -1 if there are too
// many.
func (t *toolbox) observe(id, name string, args json.RawMessage) int {
	if n, ok := t.observed[id]; ok {
		return n
	}
	if len(t.calls) >= maxObserved {
		return -1
	}
	if t.observed == nil {
		t.observed = map[string]int{}
	}
	n := t.append(name, args)
	t.observed[id] = n
	return n
}

// Ended implements [model.CallRecorder].
func (t *toolbox) Ended(ctx context.Context, id string, end model.CallEnd) {
	end.Result = t.rawPayload(ctx, end.Result)
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.observe(id, "unknown", nil); n >= 0 {
		t.setEnd(n, end)
	}
}

// Bounds of one signal, and of the events that wait while the server does not answer.
const (
	flushTimeout    = 5 * time.Second
	maxWaitingBytes = 16 << 20
)

// newEventQueue returns a queue that signals tool events in batches to their run. A session that
// ends before its first batch is due signals nothing, because its result contains all calls.
func newEventQueue(task ace.TaskContext, to Signaler) *batch.Queue[ace.ToolEvent] {
	rule := batch.Rule[ace.ToolEvent]{Bytes: batch.EventBytes, MaxWaiting: maxWaitingBytes}
	return batch.New(rule, func(events []ace.ToolEvent) {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		// A failed batch is dropped: the session's result contains its calls.
		_ = to.SignalWorkflow(ctx, task.WorkflowID, task.RunID, ace.SignalToolEvent, events)
	})
}
