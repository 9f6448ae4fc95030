package ace

import (
	"fmt"
	"strings"
)

// Kind names a kind of thing that users refer to by name, such as "run" or "flow". As an error it means that
// nothing of the kind has the name.
type Kind string

func (k Kind) Error() string { return string(k) + " not found" }

// Missing returns the error for a name that nothing has. It wraps the kind. The hint says what to do; it is
// "" if there is nothing to add.
func (k Kind) Missing(name, hint string) error { return &MissingError{k, name, hint} }

// Nearest returns the hint for a name that is similar to others, or else the usual hint.
func Nearest(similar []string, usual string) string {
	if len(similar) == 0 {
		return usual
	}
	return "near: " + strings.Join(similar, ", ")
}

// MissingError reports that something was not found.
type MissingError struct {
	Kind Kind
	Name string
	Hint string
}

func (e *MissingError) Error() string {
	text := fmt.Sprintf("%s %.80q not found", string(e.Kind), e.Name)
	if e.Hint == "" {
		return text
	}
	return text + "; " + e.Hint
}

func (e *MissingError) Unwrap() error { return e.Kind }
