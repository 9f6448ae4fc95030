package cluster

import (
	"context"
	"time"
)

// How the logs of a run on other machines are brought here.
const (
	mirrorEvery = 2 * time.Second // while they are followed
	mirrorLimit = 10 * time.Second
)

// Mirror brings the logs of a run on other machines up to date on this one, as far as they are in the shared
// store. It is nil without a shared store.
type Mirror func(ctx context.Context, workflowID, runID string) error

// Once brings the logs up to date.
func (m Mirror) Once(ctx context.Context, workflowID, runID string) error {
	if m == nil || workflowID == "" || runID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorLimit)
	defer cancel()
	return m(ctx, workflowID, runID)
}

// Keep keeps the logs up to date until ctx ends. It reports an error once. The ids may change.
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

// TranscriptMirror brings the transcripts of sessions on other machines up to date on this one, as far as
// they are in the shared store. It is nil without a shared store.
type TranscriptMirror func(ctx context.Context) error

// Once brings the transcripts up to date.
func (m TranscriptMirror) Once(ctx context.Context) error {
	if m == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorLimit)
	defer cancel()
	return m(ctx)
}
