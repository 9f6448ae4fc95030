//go:build unix

package cli

import "syscall"

// OwnSession frees a child from this terminal, so that closing it does not end the child.
func OwnSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
