//go:build unix

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

func terminateHolders(f *os.File) { signalHolders(f, unix.SIGTERM) }
func killHolders(f *os.File)      { signalHolders(f, unix.SIGKILL) }

// signalHolders signals the recorded process with its group, and its children outside of the
// group that hold the lock. A process that does not hold the lock may have reused the recorded
// id, so it is not signaled.
func signalHolders(f *os.File, s unix.Signal) {
	pids, known := holders(f)
	if pid := readPID(f); pid != 0 && (!known || pids[pid]) {
		_ = unix.Kill(-pid, s)
	}
	for pid := range pids {
		_ = unix.Kill(pid, s)
	}
}
