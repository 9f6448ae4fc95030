package logfile

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Record is what a line tells by its form. Texts are untrusted.
type Record struct {
	Form    Form
	Time    string
	Level   string
	Message string
	Rest    []Pair // the other fields, in the line's order
}

// Form is how a line is written.
type Form string

// Forms. Key is key=value pairs, as log/slog's text handler writes them.
const (
	Plain Form = "plain"
	JSON  Form = "json"
	Key   Form = "key"
)

// Pair is a field. A value that is no text is as the line wrote it.
type Pair struct{ Key, Value string }

// maxPairs bounds the fields of one line that are told apart.
const maxPairs = 200

// Parse reads a line's fields. A line of no known form is its own message.
func Parse(line []byte) Record {
	if pairs, ok := objectPairs(line); ok {
		return recordOf(JSON, pairs)
	}
	if pairs, ok := keyPairs(line); ok {
		return recordOf(Key, pairs)
	}
	return Record{Form: Plain, Level: plainLevel(line), Message: string(line)}
}

func recordOf(form Form, pairs []Pair) Record {
	r := Record{Form: form}
	for _, p := range pairs {
		var into *string
		switch p.Key {
		case "time", "ts", "timestamp", "@timestamp", "at", "t":
			into = &r.Time
		case "level", "lvl", "severity":
			into = &r.Level
		case "msg", "message":
			into = &r.Message
		}
		if into != nil && *into == "" {
			*into = p.Value
		} else {
			r.Rest = append(r.Rest, p)
		}
	}
	return r
}

// objectPairs is the members of a JSON object; ok is false where the line is none.
func objectPairs(line []byte) (pairs []Pair, ok bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' || !json.Valid(line) {
		return nil, false
	}
	// From here on the text is known to be valid.
	for i := skipSpace(line, 1); line[i] != '}' && len(pairs) < maxPairs; {
		end := skipValue(line, i)
		key := unquote(line[i:end])
		i = skipSpace(line, skipSpace(line, end)+1) // the colon
		end = skipValue(line, i)
		pairs = append(pairs, Pair{key, unquote(line[i:end])})
		if i = skipSpace(line, end); line[i] == ',' {
			i = skipSpace(line, i+1)
		}
	}
	return pairs, true
}

func skipSpace(b []byte, i int) int {
	for b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n' {
		i++
	}
	return i
}

// skipValue is where the value that begins at i ends.
func skipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for ; ; i++ {
			switch b[i] {
			case '"':
				i = skipString(b, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for !bytes.ContainsRune([]byte(",}] \t\r\n"), rune(b[i])) {
		i++
	}
	return i
}

func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// unquote is a string's content, or another value as it is written.
func unquote(v []byte) string {
	if v[0] != '"' {
		return string(v)
	}
	if bytes.IndexByte(v, '\\') < 0 && utf8.Valid(v) {
		return string(v[1 : len(v)-1])
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return string(v)
	}
	return s
}

// keyPairs is the fields of a line of key=value pairs; ok is false where the line does not
// begin with one. What follows the last pair is a pair without a key.
func keyPairs(line []byte) (pairs []Pair, ok bool) {
	rest := bytes.TrimSpace(line)
	for len(rest) > 0 && len(pairs) < maxPairs {
		n := keyLength(rest)
		if n == 0 {
			break
		}
		value, after := keyValue(rest[n+1:])
		pairs = append(pairs, Pair{string(rest[:n]), value})
		rest = bytes.TrimLeft(after, " \t")
	}
	if len(pairs) == 0 {
		return nil, false
	}
	if len(rest) > 0 {
		pairs = append(pairs, Pair{"", string(rest)})
	}
	return pairs, true
}

// keyLength is how long the key is before an equals sign, 0 for none.
func keyLength(b []byte) int {
	for i, c := range b {
		switch {
		case c == '=':
			return i
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.', c == '@':
		default:
			return 0
		}
	}
	return 0
}

func keyValue(b []byte) (value string, after []byte) {
	if len(b) == 0 || b[0] != '"' {
		end := bytes.IndexAny(b, " \t")
		if end < 0 {
			end = len(b)
		}
		return string(b[:end]), b[end:]
	}
	end := 1
	for end < len(b) && b[end] != '"' {
		if b[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(b) {
		return string(b), nil // a quote that does not end
	}
	return unquote(b[:end+1]), b[end+1:]
}
