package host

import (
	"context"
	"fmt"
	"path/filepath"

	"acescope/engine/artifact"
	"acescope/engine/process/filelock"
)

// lockSession takes the lock of a session. An agent's process that was left behind by a host
// that died holds it still, and is ended first. The file goes into the new process, and is
// to be closed here then: removed it is when the session is closed, and not before, or who
// comes next would have another file's lock.
func (h *Host) lockSession(ctx context.Context, id string) (*filelock.Lock, error) {
	lock, err := filelock.Take(ctx, filepath.Join(h.o.DataDir, sessionsDir, artifact.Escape(id)+lockExt), func(pid int) {
		h.log.Warn("a process of the session is left, and is ended", "session", id, "pid", pid)
	})
	if err != nil {
		return nil, fmt.Errorf("lock of session %s: %w", id, err)
	}
	return lock, nil
}

// lockExt ends the names of sessions' locks, so that none is [hostLock].
const lockExt = ".agent.lock"
