package widget

import "unicode"

// SplitWords splits into words and the white space between them.
func SplitWords(s string) []string {
	var words []string
	start, space := 0, false
	for i, r := range s {
		if now := unicode.IsSpace(r); i > start && now != space {
			words = append(words, s[start:i])
			start = i
			space = now
		} else if i == start {
			space = now
		}
	}
	if start < len(s) {
		words = append(words, s[start:])
	}
	return words
}
