//go:build unix

package process

import (
	"errors"
	"syscall"
)

// Alive tells whether there is a process of the id, which may be another than it was.
func Alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
