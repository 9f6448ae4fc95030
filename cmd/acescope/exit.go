package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"acescope/engine"
	"acescope/engine/server"
	"acescope/sources"
)

// Exit codes, the same for every command.
const (
	exitFine        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitDiverged    = 4
	exitUnreachable = 5
	exitInterrupted = 130
)

var errInterrupted = errors.New("interrupted")

// coded is an error with the exit code it asks for.
type coded struct {
	code int
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

func usage(format string, args ...any) error {
	return &coded{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode is the code of an error. Cobra's own errors are about flags and arguments.
func exitCode(err error) int {
	var c *coded
	var missing *sources.MissingError
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &c):
		return c.code
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &missing), sources.NotFound(err):
		return exitNotFound
	case errors.Is(err, engine.ErrUnreachable), errors.Is(err, server.ErrNoAnswer), sources.Away(err),
		errors.Is(err, context.DeadlineExceeded):
		return exitUnreachable
	case isCobraUsage(err), errors.Is(err, engine.ErrProfile):
		return exitUsage
	}
	return exitFailed
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

// oneLine folds an error into one line without control characters.
func oneLine(err error) string {
	return strings.Join(strings.Fields(safe(err.Error())), " ")
}
