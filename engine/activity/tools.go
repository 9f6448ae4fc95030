package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"acescope/engine/ace"
	"acescope/engine/artifact"
	"acescope/engine/model"
)

// callsPerPace is over how many tool calls the pace of a phase is spread.
const callsPerPace = 5

// toolbox runs the tool calls of one skills session and records each twice: as events
// while it happens, and as invocations for the session's result.
type toolbox struct {
	config    ace.SkillsConfig
	record    func(...ace.ToolEvent) // nil: not recorded as events
	artifacts *artifact.Store
	attempt   int32
	pause     time.Duration

	mu    sync.Mutex
	calls []ace.Invocation
	// witnessed are the places in calls of those that others made, by their ids.
	witnessed map[string]int
}

// Call implements [model.Toolbox].
func (t *toolbox) Call(ctx context.Context, name string, args any, fn func(context.Context) (any, error)) (any, error) {
	n := t.open(name, t.payload(ctx, args))
	if !t.config.Allows(name) {
		t.finish(n, nil, model.ErrDenied, 0)
		return nil, model.ErrDenied
	}
	started := time.Now()
	result, err := fn(ctx)
	t.finish(n, t.payload(ctx, result), err, time.Since(started))
	hold(ctx, t.pause)
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
	n := len(t.calls)
	// The attempt is part of the id: what an attempt that died did, did happen.
	inv := ace.Invocation{ID: fmt.Sprintf("skills-%d.%d", t.attempt, n+1), Name: name, Args: args, At: time.Now().UTC()}
	t.calls = append(t.calls, inv)
	t.emit(ace.ToolEvent{EventID: inv.ID + ".use", CallID: inv.ID, Kind: ace.KindToolUse, Name: name, Args: args, At: inv.At})
	return n
}

func (t *toolbox) finish(n int, result json.RawMessage, err error, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	inv := &t.calls[n]
	inv.Accepted = !errors.Is(err, model.ErrDenied)
	inv.OK = err == nil
	inv.Result = result
	inv.DurationMS = millis(took)
	if err != nil {
		inv.Error = err.Error()
	}
	accepted, ok := inv.Accepted, inv.OK
	t.emit(ace.ToolEvent{EventID: inv.ID + ".result", CallID: inv.ID, Kind: ace.KindToolResult, Name: inv.Name,
		Result: result, Accepted: &accepted, OK: &ok, At: time.Now().UTC(), DurationMS: inv.DurationMS, Error: inv.Error})
}

func (t *toolbox) emit(e ace.ToolEvent) {
	if t.record != nil {
		e.Source = "acescope"
		t.record(e)
	}
}

// payload is a value as JSON, or a reference to it where it is too large for a history.
func (t *toolbox) payload(ctx context.Context, v any) json.RawMessage {
	if v == nil {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		data, _ = json.Marshal(fmt.Sprint(v))
	}
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
