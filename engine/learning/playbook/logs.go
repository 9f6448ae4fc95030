package playbook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"acescope/engine/store/durable"
)

// logs are the logs of the branches in the directory of a store, and their locks.
type logs struct {
	dir   string // of the store
	gates gates

	mu     sync.Mutex
	byPath map[string]branchLog
}

// lock excludes merges of all goroutines and processes until the returned function is called.
func (l *logs) lock(ctx context.Context, name string) (unlock func(), err error) {
	path, err := l.file(name, lockSuffix)
	if err != nil {
		return nil, err
	}
	return l.lockFile(ctx, path)
}

// lockFile locks a file for this process, in the order of the calls, and then among processes.
func (l *logs) lockFile(ctx context.Context, path string) (unlock func(), err error) {
	return l.lockUnless(ctx, path, nil)
}

// lockUnless is like lockFile. It returns nil without a lock if done is closed while it waits.
func (l *logs) lockUnless(ctx context.Context, path string, done <-chan struct{}) (unlock func(),
	err error) {
	gate := l.gates.of(path)
	select {
	case gate <- struct{}{}:
	case <-done:
		return nil, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("lock playbook branch %s: %w", path, ctx.Err())
	}
	lock := flock.New(path, flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		<-gate
		return nil, fmt.Errorf("lock playbook branch %s: %w", path, err)
	}
	return func() {
		_ = lock.Close() // this releases the lock in any case
		<-gate
	}, nil
}

// gates let one goroutine of this process at a time lock a file, in the order in which they ask.
type gates struct {
	mu     sync.Mutex
	byPath map[string]chan struct{}
}

// of returns a channel with room for the one goroutine that may lock the file.
func (g *gates) of(path string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byPath == nil {
		g.byPath = map[string]chan struct{}{}
	}
	if g.byPath[path] == nil {
		g.byPath[path] = make(chan struct{}, 1)
	}
	return g.byPath[path]
}

// file returns the path of a file of a branch. Of the name, lower-case letters, digits, "-", "_"
// and an inner "." are kept; every other byte becomes %XX, so names that differ only in case
// get different files on every file system. A long name is cut and ends with its SHA-256.
func (l *logs) file(branch, suffix string) (string, error) {
	if branch == "" || len(branch) > maxBranchName || !utf8.ValidString(branch) {
		return "", fmt.Errorf("branch name %.80q: it must be UTF-8 text of 1 to %d bytes", branch,
			maxBranchName)
	}
	var b strings.Builder
	for i, c := range []byte(branch) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	name := b.String()
	if len(name) > maxFileName {
		sum := sha256.Sum256([]byte(branch))
		name = name[:maxFileName-2*sha256.Size-1] + "~" + hex.EncodeToString(sum[:])
	}
	return filepath.Join(l.dir, branchesDir, name+suffix), nil
}

// of returns the up-to-date log of a branch. The error is ErrNoBranch if the branch does not exist.
func (l *logs) of(name string) (*branchLog, error) {
	path, err := l.file(name, logSuffix)
	if err != nil {
		return nil, err
	}
	x, err := l.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoBranch.Of(name)
	}
	if err != nil {
		return nil, fmt.Errorf("playbook branch %q: %w", name, err)
	}
	return x, nil
}

// all returns the up-to-date logs of all readable branches, and an error for the others.
func (l *logs) all() ([]*branchLog, error) {
	files, err := os.ReadDir(filepath.Join(l.dir, branchesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("playbook branches: %w", err)
	}
	var logs []*branchLog
	var errs []error
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), logSuffix) {
			continue
		}
		x, err := l.read(filepath.Join(l.dir, branchesDir, f.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		logs = append(logs, x)
	}
	return logs, errors.Join(errs...)
}

// read returns a log, of which it reads only the lines appended since the last call.
func (l *logs) read(path string) (*branchLog, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.byPath[path]
	x.path = path
	err := x.update()
	if err == nil {
		var own string
		if own, err = l.file(x.header.Branch, logSuffix); err == nil && own != path {
			err = fmt.Errorf("%w: %s, line 1: the log belongs to branch %.80q", ErrCorrupt, path,
				x.header.Branch)
		}
	}
	if err != nil {
		delete(l.byPath, path)
		return nil, err
	}
	l.byPath[path] = x
	return &x, nil
}

// forget discards a log after a failed write: another goroutine may have read the line that was
// then truncated.
func (l *logs) forget(x *branchLog) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byPath, x.path)
}

// cached returns the path of a file of a branch in the cache.
func (l *logs) cached(branch, suffix string) string {
	return filepath.Join(l.dir, branchesDir, path.Base(branch)+suffix)
}

// write writes a file of a branch at once.
func (l *logs) write(path string, content []byte, sync bool) error {
	return durable.WriteFile(path, filepath.Join(l.dir, tmpDir), content, sync)
}
