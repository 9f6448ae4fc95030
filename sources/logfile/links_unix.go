//go:build unix

package logfile

import (
	"os"
	"syscall"
)

// unlinked tells whether an open file has no name any more.
func unlinked(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

// openFile opens for reading; a pipe that took a file's name does not hold it up.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
