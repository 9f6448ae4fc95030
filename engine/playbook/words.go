package playbook

import (
	"strings"
	"unicode"
)

// class is what a character does in a text.
type class uint8

const (
	otherClass class = iota
	wordClass
	spaceClass
)

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_':
		return wordClass
	case unicode.IsSpace(r):
		return spaceClass
	}
	return otherClass
}

// words splits a text into words, runs of white space, and single other characters;
// together they are the text.
func words(s string) []string {
	var out []string
	from, last := 0, otherClass
	for i, r := range s {
		c := classOf(r)
		if i > from && (c != last || c == otherClass) {
			out = append(out, s[from:i])
			from = i
		}
		last = c
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}

// terms is what a text says, for comparing it with others: its words in lower case and
// its mathematical signs, in order.
func terms(s string) []string {
	var out []string
	for _, w := range words(strings.ToLower(s)) {
		r := []rune(w)[0]
		if classOf(r) == wordClass || strings.ContainsRune("+-*/^=<>%", r) {
			out = append(out, w)
		}
	}
	return out
}
