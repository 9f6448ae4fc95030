//go:build unix

package server

import "syscall"

// ownProcess reports whether pid is a live process that this user may signal.
func ownProcess(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }
