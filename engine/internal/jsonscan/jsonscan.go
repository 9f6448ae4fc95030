// Package jsonscan finds where the values of a JSON text end, without decoding or checking them: a malformed
// or deeply nested value leaves its neighbors readable, and strings are not unescaped, which takes most of a
// decoder's time. It imports the standard library only, and every package may import it.
package jsonscan

import "bytes"

// Space returns the index of the first byte from i on that is not white space.
func Space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// ValueEnd returns where the value at i ends, or -1.
func ValueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return StringEnd(b, i)
	case '{', '[':
		return nestEnd(b, i)
	}
	n := bytes.IndexAny(b[i:], ",}] \t\r\n\":")
	switch n {
	case 0:
		return -1
	case -1:
		return len(b)
	}
	return i + n
}

// nestEnd returns where the object or array at i ends, or -1.
func nestEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = StringEnd(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}

// StringEnd returns the index after the closing quote of the string at i, or -1.
func StringEnd(b []byte, i int) int {
	for from := i + 1; ; {
		at := bytes.IndexByte(b[from:], '"')
		if at < 0 {
			return -1
		}
		at += from
		escapes := 0
		for at-1-escapes > i && b[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at + 1
		}
		from = at + 1
	}
}
