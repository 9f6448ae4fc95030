package stepper

import "acescope/engine/internal/redact"

// Redactor returns a function that replaces secrets in a text: values of an environment, and texts that look
// like secrets.
func Redactor(environ []string) func(string) string {
	return redact.New(redact.Environ(environ)...).String
}
