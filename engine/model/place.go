package model

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"
)

// Place says on whose behalf a provider is called: which attempt of which activity of which
// run. A provider that leaves logs names them by it.
type Place struct {
	WorkflowID, RunID    string
	Activity, ActivityID string
	Attempt              int32

	calls atomic.Int32
}

// Next counts the calls that a provider makes there, from 0. A retry that makes the same
// calls counts the same.
func (p *Place) Next() int { return int(p.calls.Add(1) - 1) }

type placeKey struct{}

// WithPlace is a context that knows its place.
func WithPlace(ctx context.Context, p *Place) context.Context {
	return context.WithValue(ctx, placeKey{}, p)
}

// PlaceOf is the place of a context, nil where it has none.
func PlaceOf(ctx context.Context) *Place {
	p, _ := ctx.Value(placeKey{}).(*Place)
	return p
}

// Witness is a [Toolbox] that also takes note of calls that somebody else makes, such as an
// agent with tools of its own. Payloads are JSON, without secrets.
type Witness interface {
	// Begun notes a call, by the id that its maker gave it.
	Begun(ctx context.Context, id, name string, args json.RawMessage)
	// Ended notes what came of it. A call that was not begun is begun with it.
	Ended(ctx context.Context, id string, end CallEnd)
}

// CallEnd is what came of a tool call.
type CallEnd struct {
	Result   json.RawMessage
	Accepted bool // false where a permission rule refused it
	OK       bool
	Error    string
	Began    time.Time     // zero for when it was begun here
	Took     time.Duration // 0 where its maker does not tell it
}
