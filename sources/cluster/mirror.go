package cluster

import (
	"context"
	"time"
)

// Times of copying the logs of a run from the shared store.
const (
	mirrorEvery = 2 * time.Second // while they are followed
	mirrorLimit = 10 * time.Second
)

// Mirror copies the logs that other machines wrote about a run from the shared store to this machine. It is
// nil without a shared store.
type Mirror func(ctx context.Context, workflowID, runID string) error

// Once copies the logs. It does nothing without IDs or a shared store.
func (m Mirror) Once(ctx context.Context, workflowID, runID string) error {
	if m == nil || workflowID == "" || runID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorLimit)
	defer cancel()
	return m(ctx, workflowID, runID)
}

// Keep copies the logs at an interval until ctx ends. run is called each time, so the ids may change. An
// error is reported once until a copy succeeds.
func (m Mirror) Keep(ctx context.Context, run func() (workflowID, runID string), report func(string)) {
	if m == nil {
		return
	}
	tick := time.NewTicker(mirrorEvery)
	defer tick.Stop()
	reported := false
	for {
		workflowID, runID := run()
		err := m.Once(ctx, workflowID, runID)
		if err != nil && ctx.Err() == nil && !reported {
			report("logs of other machines: " + PlainError(err))
		}
		reported = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// TranscriptMirror copies the transcripts of other machines from the shared store to this machine. It is nil
// without a shared store.
type TranscriptMirror func(ctx context.Context) error

// Once copies the transcripts. It does nothing without a shared store.
func (m TranscriptMirror) Once(ctx context.Context) error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorLimit)
	defer cancel()
	return m(ctx)
}
