package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// hostLock is the exclusive right to run a server on a data directory. It consists of a lock on the directory
// itself, which does not depend on files that may be removed, and a lock on host.lock, for file systems
// without locks on directories and for earlier versions. The operating system releases both when the process
// ends. host.lock contains the pid of the host, and its modification time is the last time of the host's
// clock.
type hostLock struct {
	path string
	dir  *flock.Flock
	file *flock.Flock
}

func newHostLock(dir string) *hostLock {
	path := filepath.Join(dir, lockFile)
	return &hostLock{
		path: path,
		dir:  flock.New(dir, flock.SetFlag(os.O_RDONLY)),
		file: newLockFile(path),
	}
}

func newLockFile(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
}

// tryLock takes both locks, or neither. A file system that cannot lock directories has host.lock only.
func (l *hostLock) tryLock() (bool, error) {
	ok, err := l.dir.TryLock()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !ok {
		return false, err
	}
	ok, err = l.file.TryLock()
	if err != nil || !ok {
		l.unlock()
		return false, err
	}
	return true, nil
}

// claim records this process in host.lock, and returns the last host's time, zero if it is unknown.
func (l *hostLock) claim() (last time.Time, err error) {
	info, err := l.file.Stat()
	if err != nil {
		return last, err
	}
	if info.Size() > 0 { // earlier versions wrote an empty file
		last = info.ModTime()
	}
	err = writePID(l.path)
	if last.After(time.Now()) {
		l.writeTime(last)
	}
	return last, err
}

func (l *hostLock) unlock() {
	_ = l.file.Close()
	_ = l.dir.Close()
}

// keep makes host.lock the locked file again if it was removed or replaced. It returns false if another
// process has locked the file that is there now.
func (l *hostLock) keep() (bool, error) {
	mine, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(l.path)
	if err == nil && os.SameFile(mine, now) {
		return true, nil
	}
	file := newLockFile(l.path)
	if ok, err := file.TryLock(); err != nil || !ok {
		_ = file.Close()
		return false, err
	}
	_ = l.file.Close()
	l.file = file
	return true, writePID(l.path)
}

// writePID records this process in a lock file.
func writePID(path string) error {
	err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	if errors.Is(err, fs.ErrPermission) { // Windows locks the content
		return nil
	}
	return err
}

// holder returns the pid in host.lock if the process is alive, otherwise 0.
func holder(dir string) int { return readPID(filepath.Join(dir, lockFile)) }

// readPID returns the pid in a lock file if the process is alive, otherwise 0.
func readPID(path string) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || !ownProcess(pid) {
		return 0
	}
	return pid
}

// writeTime stores the server's time for the next host.
func (l *hostLock) writeTime(t time.Time) { _ = os.Chtimes(l.path, t, t) }
