package server

import (
	"path/filepath"

	"github.com/gofrs/flock"
)

// hostLock is the right to run a server on a data directory. The operating system
// frees it when the process ends, however it ends.
type hostLock struct {
	dir  string
	file *flock.Flock
}

func newHostLock(dir string) *hostLock {
	return &hostLock{dir: dir, file: flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(0o600))}
}

// try takes the lock if it is free.
func (l *hostLock) try() (bool, error) {
	ok, err := l.file.TryLock()
	if err != nil {
		return false, dirError(l.dir, err)
	}
	return ok, nil
}

func (l *hostLock) release() { l.file.Close() }
