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

	"acescope/engine/artifact"
	"acescope/engine/process/filelock"
)

// Where a runner keeps things, below the data directory.
const (
	runnersDir = "runners"
	placeLock  = "lock"
	placeTmp   = "tmp"
	placeToken = "token"
	runLockExt = ".lock"
)

// ErrTaken means that another process is this runner.
var ErrTaken = errors.New("another process is this runner")

// lockEvery is how often is looked whether the one who is the runner has gone.
const lockEvery = 500 * time.Millisecond

// place is the directory of a runner, which one process has at a time.
type place struct {
	dir  string
	lock *flock.Flock
	last string // the token under which the last process registered, "" where that is not known
}

func (o *Options) place() *place {
	dir := filepath.Join(o.DataDir, runnersDir, artifact.Escape(o.ID))
	return &place{dir: dir, lock: flock.New(filepath.Join(dir, placeLock), flock.SetPermissions(0o600))}
}

// hold takes the directory; with wait it waits for it. Programs that an earlier process left
// behind are ended, and its files removed.
func (p *place) hold(ctx context.Context, wait bool, left func(pid int)) error {
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("runner's directory: %w", err)
	}
	got, err := false, error(nil)
	if wait {
		got, err = p.lock.TryLockContext(ctx, lockEvery)
	} else {
		got, err = p.lock.TryLock()
	}
	switch {
	case err != nil:
		return fmt.Errorf("runner's directory: %w", err)
	case !got:
		return fmt.Errorf("%w, on this machine: end it first, or give another --id", ErrTaken)
	}
	if last, err := os.ReadFile(p.token()); err == nil {
		p.last = string(last)
	}
	p.sweep(ctx, left)
	if err := os.RemoveAll(p.tmp()); err != nil {
		return fmt.Errorf("runner's directory: %w", err)
	}
	if err := os.Mkdir(p.tmp(), 0o700); err != nil {
		return fmt.Errorf("runner's directory: %w", err)
	}
	return nil
}

func (p *place) tmp() string { return filepath.Join(p.dir, placeTmp) }

func (p *place) token() string { return filepath.Join(p.dir, placeToken) }

// sign notes the token under which this process is registered.
func (p *place) sign(token string) error {
	if err := os.WriteFile(p.token(), []byte(token), 0o600); err != nil {
		return fmt.Errorf("runner's directory: %w", err)
	}
	return nil
}

func (p *place) release() { _ = p.lock.Close() }

// sweep ends the programs whose locks are still held.
func (p *place) sweep(ctx context.Context, left func(pid int)) {
	paths, err := filepath.Glob(filepath.Join(p.dir, "*"+runLockExt))
	if err != nil {
		return // the pattern is fine
	}
	var all sync.WaitGroup
	for _, path := range paths {
		all.Go(func() {
			if l, err := filelock.Take(ctx, path, left); err == nil {
				l.Release()
			}
		})
	}
	all.Wait()
}

// lockRun takes the lock of a run, which goes into its program.
func (p *place) lockRun(ctx context.Context, runID string, claim int64) (*filelock.Lock, error) {
	name := fmt.Sprintf("%s-%d%s", artifact.Escape(runID), claim, runLockExt)
	return filelock.Take(ctx, filepath.Join(p.dir, name), nil)
}
