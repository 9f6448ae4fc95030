package ace

import (
	"fmt"
	"strings"
)

// NotFound is the error that something of a kind, such as a run, does not exist. Each kind that users refer
// to by name has one NotFound, which [errors.Is] finds in the error for a name.
type NotFound struct {
	Kind string // such as "run" or "flow"
	Hint string // what to do, if a name has no better hint; may be ""
}

func (e NotFound) Error() string { return e.Kind + " not found" }

// Of returns the error for a name.
func (e NotFound) Of(name string) error { return e.With(name, e.Hint) }

// Near returns the error for a name with existing names that are similar, if there are any.
func (e NotFound) Near(name string, similar []string) error {
	if len(similar) == 0 {
		return e.Of(name)
	}
	return e.With(name, "near: "+strings.Join(similar, ", "))
}

// With returns the error for a name with a hint of its own.
func (e NotFound) With(name, hint string) error { return &notFoundName{e, name, hint} }

type notFoundName struct {
	NotFound
	name, hint string
}

func (e *notFoundName) Error() string {
	text := fmt.Sprintf("%s %.80q not found", e.Kind, e.name)
	if e.hint == "" {
		return text
	}
	return text + "; " + e.hint
}

func (e *notFoundName) Unwrap() error { return e.NotFound }
