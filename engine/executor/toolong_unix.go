//go:build unix

package executor

import (
	"errors"
	"syscall"
)

// tooLong tells whether arguments and variables were more than the system takes.
func tooLong(err error) bool { return errors.Is(err, syscall.E2BIG) }
