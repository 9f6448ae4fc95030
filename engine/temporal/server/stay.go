package server

import (
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Stay announces that this process executes the runs of a data directory until they have ended, so that other
// processes can leave their runs to it. Several processes may call it. A caller that wants to end calls
// release, and then checks for runs once more.
func Stay(dir string) (release func(), err error) {
	lock := newLockFile(filepath.Join(dir, stayFile))
	if err := lock.RLock(); err != nil {
		return nil, dirError(dir, err)
	}
	_ = writePID(lock.Path())
	return func() { _ = lock.Close() }, nil
}

// Staying returns a process that has called [Stay], or 0.
func Staying(dir string) (pid int) {
	lock := flock.New(filepath.Join(dir, stayFile), flock.SetFlag(os.O_RDWR)) // creates no file
	defer lock.Close()
	if free, err := lock.TryLock(); err != nil || free {
		return 0
	}
	return readPID(lock.Path())
}
