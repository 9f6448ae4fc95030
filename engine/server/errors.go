package server

import (
	"errors"
	"fmt"
)

// What can be wrong in a way that the user can mend. Every error that [Join] returns
// for one of these reasons wraps it and reads as one line.
var (
	// ErrDataDir means that the data directory cannot be used: it is a file, cannot
	// be written, is full, cannot be locked, or is open to other users.
	ErrDataDir = errors.New("data directory unusable")
	// ErrPortTaken means that [Options.Port] is in use by another program.
	ErrPortTaken = errors.New("port taken")
	// ErrVersion means that another version wrote the data or hosts them, and that
	// this version would damage or misread them.
	ErrVersion = errors.New("other version")
	// ErrNoAnswer means that a process holds the data directory, but its server did
	// not answer in time.
	ErrNoAnswer = errors.New("host does not answer")
	// ErrStart means that the Temporal server failed to start for a reason of its own;
	// the message names the log.
	ErrStart = errors.New("server failed to start")
)

// problem is an error that reads as its text and matches its kind.
type problem struct {
	kind  error
	text  string
	cause error
}

func (p *problem) Error() string { return p.text }

func (p *problem) Unwrap() []error {
	if p.cause == nil {
		return []error{p.kind}
	}
	return []error{p.kind, p.cause}
}

// failf makes a problem of a kind; cause may be nil, and is not added to the text.
func failf(kind, cause error, format string, args ...any) error {
	return &problem{kind: kind, text: fmt.Sprintf(format, args...), cause: cause}
}
