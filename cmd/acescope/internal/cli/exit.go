package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"acescope/engine"
	"acescope/engine/temporal/server"
	"acescope/sources/cluster"
	"acescope/sources/runs"
)

// Exit codes, the same for every command.
const (
	ExitFine        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitDiverged    = 4
	ExitUnreachable = 5
	ExitInterrupted = 130
)

var ErrInterrupted = errors.New("interrupted")

// ExitError is an error with the exit code it asks for.
type ExitError struct {
	Code int
	Err  error
}

func (c *ExitError) Error() string { return c.Err.Error() }
func (c *ExitError) Unwrap() error { return c.Err }

func UsageError(format string, args ...any) error {
	return &ExitError{ExitUsage, fmt.Errorf(format, args...)}
}

// ExitCode is the code of an error. Cobra's own errors are about flags and arguments.
func ExitCode(err error) int {
	var c *ExitError
	var missing *runs.MissingError
	switch {
	case err == nil:
		return ExitFine
	case errors.As(err, &c):
		return c.Code
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.As(err, &missing), cluster.NotFound(err):
		return ExitNotFound
	case errors.Is(err, engine.ErrUnreachable), errors.Is(err, server.ErrNoAnswer), cluster.Away(err),
		errors.Is(err, context.DeadlineExceeded):
		return ExitUnreachable
	case isCobraUsage(err), errors.Is(err, engine.ErrProfile):
		return ExitUsage
	}
	return ExitFailed
}

func isCobraUsage(err error) bool {
	text := err.Error()
	for _, start := range []string{"unknown command", "unknown flag", "unknown shorthand flag", "flag needs an argument",
		"invalid argument", "accepts ", "requires at least", "required flag", "if any flags in the group"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// OneLine folds an error into one line without control characters.
func OneLine(err error) string {
	return strings.Join(strings.Fields(SafeText(err.Error())), " ")
}
