// Package filelock holds locks that go into a program that is started with them
// ([process.Spec.Files]) and so last as long as it does, even when the one who started it
// dies. Who comes after ends the program that was left behind, and then has the lock. It
// imports the standard library and golang.org/x/sys only; everybody may import it.
//
// Bounds: [Take] waits some twelve seconds at most. On Windows nothing is locked: there
// files do not go into programs.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// How long a program that was left behind is waited for: until it is asked to end, until it
// is killed, and after that.
const (
	orphanEnds = 2 * time.Second
	orphanTerm = 5 * time.Second
	orphanKill = 5 * time.Second
	lockLook   = 20 * time.Millisecond
)

// ErrHeld means that the lock is another's, who does not end.
var ErrHeld = errors.New("the lock is held by another process")

// Lock is a lock that was taken.
type Lock struct {
	*os.File
	path string
}

// Take takes the lock of a path, whose directory must be there. Programs that hold it are
// ended: first by SIGTERM, since only then they end their own children. left, where it is
// set, is told of each such step.
func Take(ctx context.Context, path string, left func(pid int)) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := take(ctx, f, left); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if same(f, path) {
			return &Lock{f, path}, nil
		}
		_ = f.Close() // it was removed by the one who had it
	}
}

func same(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

func take(ctx context.Context, f *os.File, left func(pid int)) (err error) {
	for _, step := range []struct {
		wait time.Duration
		then func(*os.File)
	}{{orphanEnds, terminateHolders}, {orphanTerm, killHolders}, {orphanKill, nil}} {
		if err = await(ctx, f, step.wait); err == nil || !errors.Is(err, ErrHeld) {
			return err
		}
		if step.then != nil {
			if left != nil {
				left(holderOf(f))
			}
			step.then(f)
		}
	}
	return err
}

func await(ctx context.Context, f *os.File, wait time.Duration) error {
	for until := time.Now().Add(wait); ; {
		err := tryLock(f)
		if err == nil || !errors.Is(err, ErrHeld) || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockLook):
		}
	}
}

// Sign writes down which process has the lock, so that it is known whom to end.
func (l *Lock) Sign(pid int) error {
	if err := l.Truncate(0); err != nil {
		return err
	}
	_, err := l.WriteAt([]byte(strconv.Itoa(pid)+"\n"), 0)
	return err
}

// Release gives the lock back and removes its file.
func (l *Lock) Release() {
	_ = os.Remove(l.path) // while it is held: who waits for it notices
	_ = l.Close()
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
