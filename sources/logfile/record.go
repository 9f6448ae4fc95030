package logfile

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Record is the fields of a line. Texts are untrusted.
type Record struct {
	Form    Form
	Time    string
	Level   string
	Message string
	Rest    []Pair // the other fields, in the line's order
}

// Form is the format of a line.
type Form string

// Forms. Key is key=value pairs, as the text handler of log/slog writes them.
const (
	Plain Form = "plain"
	JSON  Form = "json"
	Key   Form = "key"
)

// Pair is a field. A value other than a string is as the line wrote it.
type Pair struct{ Key, Value string }

// maxPairs bounds the fields of one line.
const maxPairs = 200

// Parse reads a line's fields. A line of no known form is its own message.
func Parse(line []byte) Record {
	if pairs, ok := objectPairs(line); ok {
		return newRecord(JSON, pairs)
	}
	if pairs := keyPairs(line); len(pairs) > 0 {
		return newRecord(Key, pairs)
	}
	return Record{Form: Plain, Level: plainLevel(line), Message: string(line)}
}

func newRecord(form Form, pairs []Pair) Record {
	r := Record{Form: form}
	for _, p := range pairs {
		var field *string
		switch p.Key {
		case "time", "ts", "timestamp", "@timestamp", "at", "t":
			field = &r.Time
		case "level", "lvl", "severity":
			field = &r.Level
		case "msg", "message":
			field = &r.Message
		}
		if field != nil && *field == "" {
			*field = p.Value
		} else {
			r.Rest = append(r.Rest, p)
		}
	}
	return r
}

// objectPairs returns the members of a JSON object; ok is false if the line is not one.
func objectPairs(line []byte) (pairs []Pair, ok bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' || !json.Valid(line) {
		return nil, false
	}
	gjson.ParseBytes(line).ForEach(func(key, value gjson.Result) bool {
		pairs = append(pairs, Pair{unquote(key.Raw), unquote(value.Raw)})
		return len(pairs) < maxPairs
	})
	return pairs, true
}

// unquote returns the content of a JSON string, or another value as it is written.
func unquote(raw string) string {
	if raw[0] != '"' {
		return raw
	}
	if strings.IndexByte(raw, '\\') < 0 && utf8.ValidString(raw) {
		return raw[1 : len(raw)-1]
	}
	var s string
	if json.Unmarshal([]byte(raw), &s) != nil {
		return raw
	}
	return s
}

// keyPairs returns the fields of a line that begins with a key=value pair, otherwise nil. The
// rest after the last pair becomes a pair without a key.
func keyPairs(line []byte) []Pair {
	var pairs []Pair
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
	if len(pairs) > 0 && len(rest) > 0 {
		pairs = append(pairs, Pair{"", string(rest)})
	}
	return pairs
}

// keyLength returns the length of the key before an equals sign, or 0.
func keyLength(b []byte) int {
	for i, c := range b {
		switch {
		case c == '=':
			return i
		case letter(c), c >= '0' && c <= '9', c == '_', c == '-', c == '.', c == '@':
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
		return string(b), nil // the closing quote is missing
	}
	return unquote(string(b[:end+1])), b[end+1:]
}

// Severity is how serious a line is.
type Severity uint8

// Severities in order. Unknown is for lines without a level.
const (
	Unknown Severity = iota
	Debug
	Info
	Warn
	Error
)

func (s Severity) String() string { return [...]string{"", "debug", "info", "warn", "error"}[s] }

// SeverityOf returns the severity that a word names, or a number as Bunyan and Pino write it.
func SeverityOf(level string) Severity {
	switch strings.ToLower(level) {
	case "trace", "debug", "verbose", "fine", "dbg", "10", "20":
		return Debug
	case "info", "information", "notice", "inf", "30":
		return Info
	case "warn", "warning", "wrn", "40":
		return Warn
	case "error", "err", "fatal", "panic", "dpanic", "critical", "crit", "alert", "emergency", "severe", "50",
		"60":
		return Error
	}
	return Unknown
}

// LevelOf returns a line's severity.
func LevelOf(line []byte) Severity { return SeverityOf(Parse(line).Level) }

// maxLevelSearch is how many bytes of a plain line are searched for a level.
const maxLevelSearch = 120

// plainLevel returns the word that names a plain line's level, or "". It is in capitals, in
// brackets, or before a colon.
func plainLevel(line []byte) string {
	line = line[:min(len(line), maxLevelSearch)]
	for start := 0; start < len(line); {
		if !letter(line[start]) {
			start++
			continue
		}
		end := start
		for end < len(line) && letter(line[end]) {
			end++
		}
		word := line[start:end]
		marked := bytes.Equal(bytes.ToUpper(word), word) || end < len(line) &&
			(line[end] == ':' || line[end] == ']')
		if marked && SeverityOf(string(word)) != Unknown {
			return string(word)
		}
		start = end
	}
	return ""
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// Levels holds the severity of the last line of each file, by path.
type Levels map[string]Severity

// Next returns the severity of the next line of a file. An indented line without a level, such
// as a line of a stack, has the severity of the line before it.
func (l Levels) Next(path string, line []byte) Severity {
	s := LevelOf(line)
	if s == Unknown && len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		return l[path]
	}
	l[path] = s
	return s
}
