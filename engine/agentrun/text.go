package agentrun

import (
	"strings"
	"unicode/utf8"
)

// cut is text of at most n bytes, and an ellipsis where it was longer.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.ToValidUTF8(text[:n], "\ufffd") + "…"
}
