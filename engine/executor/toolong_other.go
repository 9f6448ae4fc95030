//go:build !unix

package executor

import (
	"errors"
	"io/fs"
)

// tooLong tells whether arguments and variables were more than the system takes.
func tooLong(err error) bool { return errors.Is(err, fs.ErrInvalid) }
