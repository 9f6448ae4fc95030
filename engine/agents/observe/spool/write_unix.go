//go:build unix

package spool

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// write appends lines to a file of at most limit bytes, with one write and under a lock that keeps
// the reader from removing the file. It never blocks.
func write(path string, lines []byte, limit int64) error {
	const flags = syscall.O_WRONLY | syscall.O_APPEND | syscall.O_CREAT | syscall.O_CLOEXEC |
		syscall.O_NOFOLLOW | syscall.O_NONBLOCK // do not block on a pipe
	var fd int
	err := retry(func() (err error) { fd, err = syscall.Open(path, flags, 0o600); return err })
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	// Without file locks the reader's lock fails too, and the reader removes nothing.
	err = retry(func() error { return syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB) })
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errRemoved
	}
	var info syscall.Stat_t
	if err := retry(func() error { return syscall.Fstat(fd, &info) }); err != nil {
		return err
	}
	switch {
	case info.Nlink == 0:
		return errRemoved
	case info.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return os.ErrInvalid
	case info.Size+int64(len(lines)) > limit:
		return ErrFull
	}
	var n int
	err = retry(func() (err error) { n, err = syscall.Write(fd, lines); return err })
	if err == nil && n < len(lines) {
		err = io.ErrShortWrite
	}
	return err
}

// isOwn reports whether the user of this process owns a file.
func isOwn(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid()
}

// openToOthers reports whether other users may write to a directory.
func openToOthers(info os.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// retry calls fn until it is not interrupted by a signal.
func retry(fn func() error) error {
	for {
		if err := fn(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// Lock locks a file against writers without waiting. It returns false if a writer has the file
// open or the lock is not available.
func Lock(f *os.File) bool {
	return retry(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }) == nil
}
