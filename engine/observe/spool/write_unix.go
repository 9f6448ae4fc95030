//go:build unix

package spool

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// write puts a line at the end of the file by one write, under a lock that keeps the
// reader from removing the file meanwhile. It never waits for anybody.
func write(path string, line []byte) error {
	fd, err := open(path)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	// Where the file system has no locks, the reader's is refused too, and it removes nothing.
	if err := again(func() error { return syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB) }); errors.Is(err, syscall.EWOULDBLOCK) {
		return errGone
	}
	var info syscall.Stat_t
	if err := again(func() error { return syscall.Fstat(fd, &info) }); err != nil {
		return err
	}
	switch {
	case info.Nlink == 0:
		return errGone
	case info.Mode&syscall.S_IFMT != syscall.S_IFREG:
		return os.ErrInvalid
	case info.Size+int64(len(line)) > MaxBytes:
		return ErrFull
	}
	var n int
	err = again(func() (err error) { n, err = syscall.Write(fd, line); return err })
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	return err
}

func open(path string) (fd int, err error) {
	const how = syscall.O_WRONLY | syscall.O_APPEND | syscall.O_CREAT | syscall.O_CLOEXEC | syscall.O_NOFOLLOW |
		syscall.O_NONBLOCK // no pipe may make it wait
	err = again(func() (err error) { fd, err = syscall.Open(path, how, 0o600); return err })
	return fd, err
}

// again calls fn until no signal interrupts it.
func again(fn func() error) error {
	for {
		if err := fn(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// Lock takes the lock that keeps writers out of a file, without waiting; false where a
// writer has it, or it cannot be had.
func Lock(f *os.File) bool {
	return again(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }) == nil
}
