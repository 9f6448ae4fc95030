package agentcli

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// value is the text of a JSON value, without space around it; "" is none. The text is known
// to be valid, so it is looked at no closer than needed: lines are short, and most of what
// they hold is passed over. What is kept of it must be copied, by keep, raw or know.
type value string

func (v value) exists() bool   { return v != "" && v != "null" }
func (v value) isText() bool   { return v != "" && v[0] == '"' }
func (v value) isObject() bool { return v != "" && v[0] == '{' }
func (v value) isArray() bool  { return v != "" && v[0] == '[' }
func (v value) isTrue() bool   { return v == "true" }

// text is the text of a string, and of other values their JSON; of null it is none.
// own tells whether it is no part of the line.
func (v value) text() (s string, own bool) {
	switch {
	case !v.exists():
		return "", true
	case !v.isText():
		return string(v), false
	case strings.IndexByte(string(v), '\\') < 0:
		return string(v[1 : len(v)-1]), false
	}
	return gjson.Parse(string(v)).Str, true
}

// view is the text, for comparing only.
func (v value) view() string {
	s, _ := v.text()
	return s
}

// int is a whole number; 0 of what is none. Parts of numbers are left out.
func (v value) int() int64 {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n
	}
	return gjson.Parse(string(v)).Int()
}

func (v value) float() float64 { return gjson.Parse(string(v)).Float() }

// get is the value at a path of keys with points between.
func (v value) get(path string) value {
	for key := range strings.SplitSeq(path, ".") {
		found := value("")
		v.each(func(k string, field value) bool {
			if k == key {
				found = field
			}
			return k != key
		})
		v = found
	}
	return v
}

// count is how many elements an array has.
func (v value) count() (n int) {
	if v.isArray() {
		v.each(func(string, value) bool { n++; return true })
	}
	return n
}

// each goes through the fields of an object, or the elements of an array, whose key is "".
// Other values have none.
func (v value) each(yield func(key string, field value) bool) {
	if !v.isObject() && !v.isArray() {
		return
	}
	s, object := string(v), v.isObject()
	for i := 1; i < len(s); {
		i = past(s, i)
		if i >= len(s) || s[i] == '}' || s[i] == ']' {
			return
		}
		key := ""
		if object {
			end := skip(s, i)
			key = value(s[i:end]).view()
			i = past(s, end)
			if i >= len(s) {
				return
			}
		}
		end := skip(s, i)
		if end == i {
			return // not reached where the text is valid
		}
		if !yield(key, value(s[i:end])) {
			return
		}
		i = end
	}
}

// past is the place of the next value, key or end after space, commas and colons.
func past(s string, i int) int {
	for i < len(s) && (s[i] == ',' || s[i] == ':' || s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

// skip is where the value ends that begins at i.
func skip(s string, i int) int {
	switch s[i] {
	case '"':
		return skipText(s, i)
	case '{', '[':
		return skipNested(s, i)
	}
	for i < len(s) && s[i] != ',' && s[i] != '}' && s[i] != ']' && s[i] > ' ' {
		i++
	}
	return i
}

// skipText is where the string ends that begins at i.
func skipText(s string, i int) int {
	for i++; ; i++ {
		at := strings.IndexByte(s[i:], '"')
		if at < 0 {
			return len(s)
		}
		i += at
		back := i - 1
		for s[back] == '\\' { // the quote that begins the string is before
			back--
		}
		if (i-back)%2 == 1 {
			return i + 1
		}
	}
}

// skipNested is where the object or array ends that begins at i.
func skipNested(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch s[i] {
		case '"':
			i = skipText(s, i)
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
	return len(s)
}
