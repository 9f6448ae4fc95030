//go:build unix && !linux

package process

import (
	"os"
	"syscall"
)

// attributes makes the program the leader of a process group.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// groupLives reports whether the group has processes. (On macOS signaling a group of zombies fails
// with EPERM.)
func groupLives(p *os.Process) bool { return syscall.Kill(-p.Pid, 0) == nil }
