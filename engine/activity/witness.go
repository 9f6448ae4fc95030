package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"acescope/engine/ace"
	"acescope/engine/model"
)

// maxWitnessed bounds the calls of a session that are taken note of. What comes after is in
// the agent's log.
const maxWitnessed = 5000

// Begun implements [model.Witness].
func (t *toolbox) Begun(ctx context.Context, id, name string, args json.RawMessage) {
	args = t.fitting(ctx, args)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun(id, name, args)
}

func (t *toolbox) begun(id, name string, args json.RawMessage) int {
	if t.witnessed == nil {
		t.witnessed = map[string]int{}
	}
	if n, there := t.witnessed[id]; there || len(t.calls) >= maxWitnessed {
		if there {
			return n
		}
		return -1
	}
	n := len(t.calls)
	inv := ace.Invocation{ID: fmt.Sprintf("skills-%d.%d", t.attempt, n+1), Name: name, Args: args, At: time.Now().UTC()}
	t.calls = append(t.calls, inv)
	t.witnessed[id] = n
	t.emit(ace.ToolEvent{EventID: inv.ID + ".use", CallID: inv.ID, Kind: ace.KindToolUse, Name: name, Args: args, At: inv.At})
	return n
}

// Ended implements [model.Witness].
func (t *toolbox) Ended(ctx context.Context, id string, end model.CallEnd) {
	result := t.fitting(ctx, end.Result)
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.begun(id, "unknown", nil)
	if n < 0 {
		return
	}
	inv := &t.calls[n]
	now := time.Now().UTC()
	if !end.Began.IsZero() && end.Began.Before(now) {
		inv.At = end.Began
	}
	took := end.Took
	if took == 0 && end.Began.IsZero() {
		took = now.Sub(inv.At)
	}
	inv.Accepted, inv.OK, inv.Result, inv.Error, inv.DurationMS = end.Accepted, end.OK, result, end.Error, millis(took)
	accepted, ok := inv.Accepted, inv.OK
	t.emit(ace.ToolEvent{EventID: inv.ID + ".result", CallID: inv.ID, Kind: ace.KindToolResult, Name: inv.Name,
		Result: result, Accepted: &accepted, OK: &ok, At: now, DurationMS: inv.DurationMS, Error: inv.Error})
}

// fitting is JSON that goes into a history, or a reference to it.
func (t *toolbox) fitting(ctx context.Context, v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	return t.payload(ctx, v)
}
