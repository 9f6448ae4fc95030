package stepper

import "acescope/engine/internal/redact"

// Redacted replaces secrets in a text: values of the environment, and texts that look like secrets.
func Redacted(text string) string { return redact.OfProcess().String(text) }
