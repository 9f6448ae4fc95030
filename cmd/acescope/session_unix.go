//go:build unix

package main

import "syscall"

// ownSession frees a child from this terminal, so that closing it does not end the child.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
