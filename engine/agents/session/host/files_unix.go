//go:build unix

package host

import "syscall"

// openFlags keep the open of a pipe from blocking.
const openFlags = syscall.O_NONBLOCK
