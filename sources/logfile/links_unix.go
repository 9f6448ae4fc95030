//go:build unix

package logfile

import (
	"os"
	"syscall"
)

// unlinked reports whether an open file has no name left.
func unlinked(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

// openFile opens a file for reading. It does not block on a pipe.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
