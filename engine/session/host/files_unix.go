//go:build unix

package host

import "syscall"

// openFlags have opening never wait.
const openFlags = syscall.O_NONBLOCK
