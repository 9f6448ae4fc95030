package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"acescope/engine/artifact"
)

// How long an agent's process that another has left behind is waited for: until it is asked
// to end, until it is killed, and after that.
const (
	orphanEnds = 2 * time.Second
	orphanTerm = 5 * time.Second
	orphanKill = 5 * time.Second
	lockLook   = 20 * time.Millisecond
)

// errHeld means that the lock is another's.
var errHeld = errors.New("the session's lock is held")

// lockSession takes the lock of a session. An agent's process that was left behind by a host
// that died holds it still: it is ended first, gently, since only then it ends its own
// children. The file goes into the new process, and is to be closed here then.
func (h *Host) lockSession(ctx context.Context, id string) (*os.File, error) {
	path := filepath.Join(h.o.DataDir, sessionsDir, artifact.Escape(id)+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of session %s: %w", id, err)
	}
	for _, step := range []struct {
		wait time.Duration
		then func(*os.File)
	}{{orphanEnds, terminateHolders}, {orphanTerm, killHolders}, {orphanKill, nil}} {
		if err = awaitLock(ctx, f, step.wait); err == nil {
			return f, nil
		}
		if !errors.Is(err, errHeld) {
			break
		}
		if step.then != nil {
			h.log.Warn("a process of the session is left, and is ended", "session", id, "pid", holderOf(f))
			step.then(f)
		}
	}
	_ = f.Close()
	return nil, fmt.Errorf("lock of session %s: %w", id, err)
}

func awaitLock(ctx context.Context, f *os.File, wait time.Duration) error {
	for until := time.Now().Add(wait); ; {
		err := tryLock(f)
		if err == nil || !errors.Is(err, errHeld) || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockLook):
		}
	}
}

// sign writes down whose the lock is.
func sign(f *os.File, pid int) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0)
	return err
}

// holderOf is the process that the lock was given to, 0 where it is not told.
func holderOf(f *os.File) int {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}
