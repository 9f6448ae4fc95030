package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"acescope/engine/ace"
	"acescope/engine/internal/filelock"
)

// ErrTaken means that another process is this runner.
var ErrTaken = errors.New("another process is this runner")

const runLockExt = ".lock"

// directory is the directory of a runner below the data directory. One process at a time locks it.
type directory struct {
	path      string
	lock      *flock.Flock
	lastToken string // of the previous process that registered, or ""
}

func (o *Options) directory() *directory {
	path := filepath.Join(o.DataDir, "runners", ace.FileName(o.ID))
	return &directory{path: path, lock: flock.New(filepath.Join(path, "lock"), flock.SetPermissions(0o600))}
}

func (d *directory) tmp() string       { return filepath.Join(d.path, "tmp") }
func (d *directory) tokenFile() string { return filepath.Join(d.path, "token") }
func (d *directory) release()          { _ = d.lock.Close() }

// acquire locks the directory. If wait is set, it waits until the directory is free. It ends the programs and
// removes the files of an earlier process.
func (d *directory) acquire(ctx context.Context, wait bool, onKill func(pid int)) error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return fmt.Errorf("runner's directory: %w", err)
	}
	lock := d.lock.TryLock
	if wait {
		lock = func() (bool, error) { return d.lock.TryLockContext(ctx, time.Second) }
	}
	locked, err := lock()
	switch {
	case err != nil:
		return fmt.Errorf("runner's directory: %w", err)
	case !locked:
		return fmt.Errorf("%w, on this machine: stop it first, or choose another --id", ErrTaken)
	}
	if token, err := os.ReadFile(d.tokenFile()); err == nil {
		d.lastToken = string(token)
	}
	d.killPrograms(ctx, onKill)
	if err := os.RemoveAll(d.tmp()); err != nil {
		return fmt.Errorf("runner's directory: %w", err)
	}
	if err := os.Mkdir(d.tmp(), 0o700); err != nil {
		return fmt.Errorf("runner's directory: %w", err)
	}
	return nil
}

// saveToken stores the token with which this process is registered.
func (d *directory) saveToken(token string) error {
	if err := os.WriteFile(d.tokenFile(), []byte(token), 0o600); err != nil {
		return fmt.Errorf("runner's directory: %w", err)
	}
	return nil
}

// killPrograms ends the programs that still hold the locks of their runs.
func (d *directory) killPrograms(ctx context.Context, onKill func(pid int)) {
	paths, err := filepath.Glob(filepath.Join(d.path, "*"+runLockExt))
	if err != nil {
		return // only for an invalid pattern
	}
	var all sync.WaitGroup
	for _, path := range paths {
		all.Go(func() {
			if l, err := filelock.Acquire(ctx, path, onKill); err == nil {
				l.Release()
			}
		})
	}
	all.Wait()
}

// lockRun takes the lock of a run, which its program inherits.
func (d *directory) lockRun(ctx context.Context, runID string, claim int64) (*filelock.Lock, error) {
	name := fmt.Sprintf("%s-%d%s", ace.FileName(runID), claim, runLockExt)
	return filelock.Acquire(ctx, filepath.Join(d.path, name), nil)
}
