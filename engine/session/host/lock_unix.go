//go:build unix

package host

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func tryLock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errHeld
	}
	return err
}

// terminateHolders asks those who hold the lock to end, killHolders does not ask.
func terminateHolders(f *os.File) { signalHolders(f, unix.SIGTERM) }
func killHolders(f *os.File)      { signalHolders(f, unix.SIGKILL) }

// signalHolders sends a signal to the process that the lock was given to, with its group,
// which it leads, and to its children elsewhere that hold it too. That a process holds the
// lock is what tells it from one that has got its id since.
func signalHolders(f *os.File, s unix.Signal) {
	holders, known := holders(f)
	if pid := holderOf(f); pid != 0 && (!known || holders[pid]) {
		_ = unix.Kill(-pid, s)
	}
	for pid := range holders {
		_ = unix.Kill(pid, s)
	}
}
