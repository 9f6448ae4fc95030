package ace

import (
	"strings"
	"unicode/utf8"
)

// Cut is text of at most n bytes, valid UTF-8 with an ellipsis after it where it was longer.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return strings.ToValidUTF8(text[:n], "\ufffd") + "…"
}
