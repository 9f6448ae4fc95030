package agentcli

import (
	"math"
	"strconv"
	"strings"
)

// value is the text of a JSON value, without space around it; "" is none. What is kept of it
// must be copied, by keep, raw or know.
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
	return unescape(string(v[1 : len(v)-1])), true
}

// view is the text, for comparing only.
func (v value) view() string {
	s, _ := v.text()
	return s
}

// int is a whole number, which may be written as a text; 0 of what is none. Parts of numbers
// are left out.
func (v value) int() int64 {
	if !v.exists() {
		return 0
	}
	n, err := strconv.ParseInt(v.view(), 10, 64)
	if err != nil {
		return int64(v.float())
	}
	return n
}

// float is a number, which may be written as a text; 0 of what is none.
func (v value) float() float64 {
	if !v.exists() {
		return 0
	}
	n, err := strconv.ParseFloat(v.view(), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

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

// each goes through the fields of an object, or the elements of an array, whose key is "",
// until yield says false. Other values have none.
func (v value) each(yield func(key string, field value) bool) {
	if v.isObject() || v.isArray() {
		walk(string(v), 0, 1, yield)
	}
}

// whole is each, of text that may be none: false tells that it is no JSON, and then nothing
// counts that yield was given. It is read once for both.
func (v value) whole(yield func(key string, field value) bool) bool {
	if v.isObject() || v.isArray() {
		return walk(string(v), 0, 1, yield) == len(v)
	}
	return skip(string(v), 0, 0) == len(v)
}
