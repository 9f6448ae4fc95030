package model

import (
	"errors"
	"fmt"
	"time"
)

// ErrorKind is what went wrong when a model was asked.
type ErrorKind string

// Error kinds. The first five are worth another try, and so are [NoRunner] and [NoBlueprint];
// of [Network] and [ServerError] the server may never have heard.
const (
	RateLimited ErrorKind = "RateLimited"
	Overloaded  ErrorKind = "Overloaded"
	ServerError ErrorKind = "ServerError"
	Network     ErrorKind = "Network"
	NoKey       ErrorKind = "NoKey" // of this worker; another may have one
	Auth        ErrorKind = "Auth"
	NoModel     ErrorKind = "NoModel"
	BadRequest  ErrorKind = "BadRequest"
	TooLong     ErrorKind = "ContextTooLong"
	Refused     ErrorKind = "Refused"
	BadAnswer   ErrorKind = "BadAnswer" // it answered, but not in the form asked for
	// Of a step that a program serves: no runner took it or its runner died; this worker does
	// not find its blueprint, another may; it did not end well.
	NoRunner      ErrorKind = "NoRunner"
	NoBlueprint   ErrorKind = "NoBlueprint"
	ProgramFailed ErrorKind = "ProgramFailed"
)

// Error is why a model's answer is not there.
type Error struct {
	Kind ErrorKind
	// Message is one sentence for a person. It holds no secret.
	Message string
	// RetryAfter is how long the server asks to wait, 0 where it does not say.
	RetryAfter time.Duration
	// Raw is what the model said, where that is what is wrong.
	Raw string
	Err error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap gives what the error came from, if that is of use.
func (e *Error) Unwrap() error { return e.Err }

// Permanent tells whether no retry will mend it.
func (e *Error) Permanent() bool {
	switch e.Kind {
	case RateLimited, Overloaded, ServerError, Network, NoKey, NoRunner, NoBlueprint:
		return false
	}
	return true
}

// Is makes a permanent error an [ErrPermanent].
func (e *Error) Is(target error) bool { return target == ErrPermanent && e.Permanent() }

// Errorf makes an [Error].
func Errorf(kind ErrorKind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// KindOf is the kind of an error, "" where it is no [Error].
func KindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}
