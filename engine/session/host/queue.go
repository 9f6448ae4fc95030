package host

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// sessionsDir is where locks are, below the data directory.
const sessionsDir = "sessions"

// hostLock is the file whose lock the one holds who serves the sessions of the directory.
const hostLock = "host.lock"

// Queue is the task queue of the sessions of one data directory on one machine.
func Queue(hostname, dataDir string) string {
	return fmt.Sprintf("session.%x", sha256.Sum256([]byte(hostname+"\x00"+filepath.Clean(dataDir))))[:32]
}

// Queue is the task queue that this host serves.
func (h *Host) Queue() string { return h.queue }

// lockEvery is how often is looked whether the one who serves has gone.
const lockEvery = 200 * time.Millisecond

// Hold waits until this process is the one that serves the sessions of the data directory.
// The lock ends with the process, or with release.
func (h *Host) Hold(ctx context.Context) (release func(), err error) {
	lock := flock.New(filepath.Join(h.o.DataDir, sessionsDir, hostLock), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}
