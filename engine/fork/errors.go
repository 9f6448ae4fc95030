package fork

import "fmt"

// refusal is an error that says by itself what is wrong; kind is for programs.
type refusal struct {
	kind error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

func refused(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}
