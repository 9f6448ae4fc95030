//go:build unix

package cli

import "syscall"

// OwnSession detaches a child process from this terminal, so that it survives when the terminal is closed.
func OwnSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
