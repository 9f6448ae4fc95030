package engine

import (
	"context"
	"fmt"
	"time"

	"acescope/engine/internal/sleep"
	"acescope/engine/temporal/server"
)

// An embedded server stops silently when the disk is full, so free space is checked before it starts
// and while it runs.
const (
	minFree    = 16 << 20
	spaceEvery = 5 * time.Second
)

// checkSpace returns an error if a directory's file system is nearly full.
func checkSpace(dir string) error {
	free, err := freeBytes(dir)
	if err != nil || free >= minFree {
		return nil // an unknown size is not an error
	}
	return fmt.Errorf("%w: %s has %d MiB free, %d are needed; free some space or choose another directory with --data-dir",
		server.ErrDataDir, dir, free>>20, minFree>>20)
}

// WatchSpace calls fn with an error when the data directory's file system becomes nearly full, and
// with nil when it has space again, until ctx is done.
func (e *Engine) WatchSpace(ctx context.Context, fn func(error)) {
	full := false
	sleep.Every(ctx, spaceEvery, func() {
		err := checkSpace(e.dir)
		if (err != nil) != full {
			full = err != nil
			fn(err)
		}
	})
}

// Free returns the free bytes on the data directory's file system.
func (e *Engine) Free() (uint64, error) { return freeBytes(e.dir) }
