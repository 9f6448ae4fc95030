package redact

import (
	"bytes"
	"slices"
	"strings"
)

// Bounds of assigned values, in bytes.
const (
	minPassword = 4
	maxValue    = 4096
	maxSpaces   = 4
)

// assigned returns the range of the value that is assigned to the name that ends at a position:
// name=value, name: value, "name": "value" and <name>value</name>, also as part of a JSON string. A
// value without quotes must contain a digit, unless it is a password directly after the sign, because it
// could be a variable or a type.
func assigned(b []byte, end, atLeast int) (from, to int) {
	if rest := b[end:min(len(b), end+maxValue)]; len(rest) > 0 && rest[0] == '>' {
		n := bytes.IndexByte(rest, '<')
		if n <= atLeast || !bytes.HasPrefix(rest[n:], []byte("</")) || isPlaceholder(rest[1:n]) {
			return 0, 0
		}
		return end + 1, end + n
	}
	i := skipQuote(b, end)
	signed := skipSpaces(b, i)
	if signed >= len(b) || b[signed] != '=' && b[signed] != ':' {
		return 0, 0
	}
	sign := b[signed]
	next := signed + 1
	if next < len(b) && (b[next] == '=' || b[next] == '>') {
		next++
	}
	at := skipSpaces(b, next)
	if open := skipQuote(b, at); open > at {
		from, to = open, quoteEnd(b, open, open-at-1)
	} else {
		from, to = at, plainEnd(b, at)
		direct := sign == '=' && signed == i && at == next && atLeast <= minPassword
		if !direct && !bytes.ContainsAny(b[from:to], "0123456789") {
			return 0, 0
		}
	}
	from += schemeEnd(b[from:to])
	if to-from < atLeast || isPlaceholder(b[from:to]) {
		return 0, 0
	}
	return from, to
}

// skipQuote skips a quotation mark and the backslashes before it, if there is one.
func skipQuote(b []byte, at int) int {
	i := at
	for i < len(b) && i < at+3 && b[i] == '\\' {
		i++
	}
	if i < len(b) && (b[i] == '"' || b[i] == '\'') {
		return i + 1
	}
	return at
}

func skipSpaces(b []byte, at int) int {
	i := at
	for i < len(b) && i < at+maxSpaces && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i
}

// quoteEnd returns the end of a value in quotation marks that are escaped by a number of
// backslashes.
func quoteEnd(b []byte, from, escapes int) int {
	mark, backslashes := b[from-1], 0
	for i := from; i < len(b) && i < from+maxValue; i++ {
		switch {
		case b[i] == '\n':
			return i
		case b[i] == mark && backslashes <= escapes:
			return i - backslashes
		case b[i] == '\\':
			backslashes++
			continue
		}
		backslashes = 0
	}
	return min(len(b), from+maxValue)
}

// plainEnd returns the end of a value without quotation marks, or from if it is an expression.
func plainEnd(b []byte, from int) int {
	rest := b[from:min(len(b), from+maxValue)]
	n := bytes.IndexAny(rest, " \t\r\n\"'\\,;&<>()[]{}|`")
	if n < 0 {
		return from + len(rest)
	}
	if rest[n] == '(' || rest[n] == '[' {
		return from
	}
	return from + n
}

// schemes are the names of authentication schemes before a value.
var schemes = []string{"bearer ", "basic ", "token ", "digest ", "apikey "}

// schemeEnd returns the length of an authentication scheme and the space after it.
func schemeEnd(value []byte) int {
	for _, s := range schemes {
		if len(value) > len(s) && bytes.EqualFold(value[:len(s)], []byte(s)) {
			return len(s)
		}
	}
	return 0
}

// placeholders are values that only describe a secret.
var placeholders = []string{"none", "null", "true", "false", "string", "text", "bytes", "undefined",
	"required",
	"optional", "redacted", "hidden"}

// isPlaceholder reports whether a value is not a secret but a variable, a template, a path or a
// description.
func isPlaceholder(value []byte) bool {
	if len(value) == 0 || strings.IndexByte("$<>{}[]()*%/~.", value[0]) >= 0 ||
		bytes.Contains(value, []byte("{{")) {
		return true
	}
	text := strings.ToLower(string(value[:min(len(value), 64)]))
	return slices.Contains(placeholders, text) || SecretName(text) && !strings.ContainsAny(text, "0123456789")
}

// awsSecretBytes is the length of a secret access key of AWS.
const awsSecretBytes = 40

// awsSecret returns the first range from a position to end that looks like a secret access key of
// AWS: a word of 40 random characters.
func awsSecret(b []byte, at, end int) (from, to int) {
	for i := at + awsSecretBytes - 1; i < end; i += awsSecretBytes {
		if !keyBytes[b[i]] {
			continue
		}
		from, to = i, i+1
		for from > at && i-from < awsSecretBytes && keyBytes[b[from-1]] {
			from--
		}
		for to < len(b) && to-from <= awsSecretBytes+1 && keyBytes[b[to]] {
			to++
		}
		if to-from == awsSecretBytes+1 && from > 0 && b[from-1] == '\\' {
			from++ // the letter belongs to an escape sequence
		}
		bounded := (to == len(b) || strings.IndexByte("=_-.", b[to]) < 0) &&
			(from == 0 || strings.IndexByte("_-.", b[from-1]) < 0)
		if to-from == awsSecretBytes && bounded && isAWSSecret(b[from:to]) {
			return from, to
		}
	}
	return 0, 0
}

// keyBytes is the set of bytes in a secret access key of AWS.
var keyBytes = func() (set [256]bool) {
	for c := range set {
		set[c] = isAlnum(byte(c)) || c == '/' || c == '+'
	}
	return set
}()

// isAWSSecret reports whether a word looks random: its kinds of characters change often, and few
// small letters form words, as they do in names and paths.
func isAWSSecret(word []byte) bool {
	var kinds [4]int
	changes, small, words := 0, 0, 0
	last := -1
	for _, c := range word {
		kind := 3
		switch {
		case isDigit(c):
			kind = 0
		case 'a' <= c && c <= 'z':
			kind = 1
		case 'A' <= c && c <= 'Z':
			kind = 2
		}
		kinds[kind]++
		if kind != last {
			changes++
			small = 0
		}
		if last = kind; kind == 1 {
			if small++; small == 4 {
				words += 4
			} else if small > 4 {
				words++
			}
		}
	}
	return kinds[0] > 0 && kinds[1] > 0 && kinds[2] > 0 && kinds[3] <= 6 && changes >= 14 && words <= 10
}
