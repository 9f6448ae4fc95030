//go:build unix && !linux

package server

import (
	"fmt"
	"syscall"
)

// fileID identifies a file among those that were and will be at its path, by its inode.
func fileID(path string) (string, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Sprint(st.Ino), nil
}
