package operation

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// beating tells the server that a handler lives, and with it what the handler has
// reached.
type beating struct {
	ctx  context.Context
	stop func()

	mu      sync.Mutex
	reached any
}

// startBeating beats four times in the time that the server waits for a beat, which also
// bounds how late a handler learns of a cancellation.
func startBeating(ctx context.Context, timeout time.Duration) *beating {
	ctx, stop := context.WithCancel(ctx)
	b := &beating{ctx: ctx, stop: stop}
	if activity.HasHeartbeatDetails(ctx) {
		var before any
		if activity.GetHeartbeatDetails(ctx, &before) == nil {
			b.reached = before // so that the next beat does not take it away
		}
	}
	if timeout <= 0 {
		return b
	}
	go func() {
		tick := time.NewTicker(max(timeout/4, 10*time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				b.send()
			}
		}
	}()
	return b
}

func (b *beating) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reached == nil {
		activity.RecordHeartbeat(b.ctx)
		return
	}
	activity.RecordHeartbeat(b.ctx, b.reached)
}

// Checkpoint tells the server how far a handler has come, so that the next attempt need
// not begin anew. The server hears of it with a delay, so that the last one may be lost.
func Checkpoint(ctx context.Context, reached any) {
	b := CallOf(ctx).beat
	if b == nil {
		return
	}
	b.mu.Lock()
	b.reached = reached
	b.mu.Unlock()
	b.send()
}

// LastCheckpoint reads what an earlier attempt reached; false where none told.
func LastCheckpoint(ctx context.Context, into any) (bool, error) {
	if CallOf(ctx).beat == nil || !activity.HasHeartbeatDetails(ctx) {
		return false, nil
	}
	if err := activity.GetHeartbeatDetails(ctx, into); err != nil {
		return false, permanent(TypeBadParameters, "operation %s: the checkpoint does not fit %T: %v", CallOf(ctx).OperationID, into, err)
	}
	return true, nil
}
