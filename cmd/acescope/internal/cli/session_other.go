//go:build !unix

package cli

import "syscall"

func ownSession() *syscall.SysProcAttr { return nil }
