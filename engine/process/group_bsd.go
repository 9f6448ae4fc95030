//go:build unix && !linux

package process

import (
	"os"
	"syscall"
)

// attributes has the program lead a process group.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// groupLives tells whether there is anybody left of the group. (On macOS a group of which
// only ended processes are left cannot be signalled: EPERM.)
func groupLives(p *os.Process) bool { return syscall.Kill(-p.Pid, 0) == nil }
