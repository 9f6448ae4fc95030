// Package filelock provides file locks that a started program inherits ([process.Spec.Files]), so
// that a lock lasts as long as the program even if the process that started it dies. The next
// process that acquires the lock ends an orphaned program first. The package imports the standard
// library and golang.org/x/sys only, and every package may import it.
//
// Bounds: [Acquire] waits about twelve seconds at most. On Windows there is no locking, because
// programs do not inherit files there.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"acescope/engine/internal/sleep"
)

// How long to wait for an orphaned program: before SIGTERM, before SIGKILL, and after that.
const (
	orphanGrace   = 2 * time.Second
	orphanTerm    = 5 * time.Second
	orphanKill    = 5 * time.Second
	retryInterval = 20 * time.Millisecond
)

// ErrHeld means that another process holds the lock and does not end.
var ErrHeld = errors.New("the lock is held by another process")

// Lock is an acquired lock.
type Lock struct {
	*os.File
	path string
}

// Acquire locks the file at path, in an existing directory. Programs that hold the lock are
// ended, first with SIGTERM so that they can end their own children. onOrphan, if set, is called
// before each signal.
func Acquire(ctx context.Context, path string, onOrphan func(pid int)) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := acquire(ctx, f, onOrphan); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if isAt(f, path) {
			return &Lock{f, path}, nil
		}
		_ = f.Close() // the previous holder removed the file
	}
}

// isAt reports whether f is the file at path.
func isAt(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

func acquire(ctx context.Context, f *os.File, onOrphan func(pid int)) error {
	for _, step := range []struct {
		wait   time.Duration
		signal func(*os.File)
	}{{orphanGrace, terminateHolders}, {orphanTerm, killHolders}} {
		if err := waitLock(ctx, f, step.wait); !errors.Is(err, ErrHeld) {
			return err
		}
		if onOrphan != nil {
			onOrphan(readPID(f))
		}
		step.signal(f)
	}
	return waitLock(ctx, f, orphanKill)
}

func waitLock(ctx context.Context, f *os.File, wait time.Duration) error {
	until := time.Now().Add(wait)
	for {
		err := tryLock(f)
		if !errors.Is(err, ErrHeld) || time.Now().After(until) {
			return err
		}
		if err := sleep.For(ctx, retryInterval); err != nil {
			return err
		}
	}
}

// WritePID records the process that has the lock, so that it can be ended.
func (l *Lock) WritePID(pid int) error {
	if err := l.Truncate(0); err != nil {
		return err
	}
	_, err := l.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0)
	return err
}

// Release removes the file and releases the lock. Removing it first lets a waiting process
// notice that it locked a removed file.
func (l *Lock) Release() {
	_ = os.Remove(l.path)
	_ = l.Close()
}

// readPID returns the recorded process, or 0.
func readPID(f *os.File) int {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil || pid <= 1 {
		return 0
	}
	return pid
}
