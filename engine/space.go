package engine

import (
	"context"
	"fmt"
	"time"

	"acescope/engine/server"
)

// A server whose disk is full stops without a word, so the room is looked at before
// and while it runs.
const (
	minFree    = 16 << 20
	spaceEvery = 2 * time.Second
)

// checkSpace says in a line that a directory's file system is nearly full.
func checkSpace(dir string) error {
	free, err := freeBytes(dir)
	if err != nil || free >= minFree {
		return nil // what cannot be asked is no reason to refuse
	}
	return fmt.Errorf("%w: %s has %d MiB free, %d are needed; make room or choose another with --data-dir",
		server.ErrDataDir, dir, free>>20, minFree>>20)
}

// WatchSpace calls fn when the data directory's file system has become nearly full, and
// with nil when it has room again, until ctx ends.
func (e *Engine) WatchSpace(ctx context.Context, fn func(error)) {
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	full := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := checkSpace(e.dir)
		if (err != nil) != full {
			full = err != nil
			fn(err)
		}
	}
}

// Free is how many bytes are left on the data directory's file system.
func (e *Engine) Free() (uint64, error) { return freeBytes(e.dir) }
