//go:build !unix

package cli

import "syscall"

// OwnSession returns nil: only Unix has sessions.
func OwnSession() *syscall.SysProcAttr { return nil }
