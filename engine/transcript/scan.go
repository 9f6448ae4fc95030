package transcript

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"
)

// The lines are taken apart here and not by gjson, which undoes the escapes of every text
// that it walks over: most of a transcript is text that nobody asks for. Strings are
// jumped over, so that the speed is near that of finding quotes.

// members calls fn for the members of an object until it says no, keys without quotes. It
// tells whether it came to the object's end, or fn ended it.
func members(raw []byte, fn func(key, value []byte) bool) bool {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return false
	}
	i = space(raw, i+1)
	for i < len(raw) && raw[i] == '"' {
		end := stringEnd(raw, i)
		if end < 0 {
			return false
		}
		key := raw[i+1 : end-1]
		if i = space(raw, end); i >= len(raw) || raw[i] != ':' {
			return false
		}
		if i = space(raw, i+1); i >= len(raw) {
			return false
		}
		if end = valueEnd(raw, i); end < 0 {
			return false
		}
		if !fn(key, raw[i:end]) {
			return true
		}
		if i = space(raw, end); i < len(raw) && raw[i] == ',' {
			i = space(raw, i+1)
		}
	}
	return i < len(raw) && raw[i] == '}'
}

// elements calls fn for the elements of a list; the same as members otherwise.
func elements(raw []byte, fn func(value []byte) bool) bool {
	i := space(raw, 0)
	if i >= len(raw) || raw[i] != '[' {
		return false
	}
	i = space(raw, i+1)
	for i < len(raw) && raw[i] != ']' {
		end := valueEnd(raw, i)
		if end < 0 {
			return false
		}
		if !fn(raw[i:end]) {
			return true
		}
		if i = space(raw, end); i < len(raw) && raw[i] == ',' {
			i = space(raw, i+1)
		}
	}
	return i < len(raw)
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// valueEnd is where the value at i ends, -1 where it does not.
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		return nestEnd(b, i)
	}
	start := i
	for i < len(b) && !delimiter[b[i]] {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

var delimiter = [256]bool{',': true, '}': true, ']': true, ' ': true, '\t': true, '\r': true, '\n': true, '"': true, ':': true}

func nestEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i); i < 0 {
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

// stringEnd is the place after the quote that ends the string at i, -1 for none.
func stringEnd(b []byte, i int) int {
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

// bare is what stands between the quotes of a string, with its escapes; nil for another value.
func bare(v []byte) []byte {
	if len(v) < 2 || v[0] != '"' {
		return nil
	}
	return v[1 : len(v)-1]
}

func isTrue(v []byte) bool { return string(v) == "true" }

// count is a number of things; 0 for what is none, or is out of all bounds.
func count(v []byte) int64 {
	if len(v) == 0 || len(v) > 15 {
		return 0
	}
	var n int64
	for _, c := range v {
		if c < '0' || c > '9' {
			return fraction(v)
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// fraction is for numbers that are written otherwise than in digits alone.
func fraction(v []byte) int64 {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !(f >= 0 && f < 1e15) {
		return 0
	}
	return int64(f)
}

// text is a string's content up to about limit bytes of what is written, whole characters.
func text(v []byte, limit int) string {
	in := bare(v)
	if in == nil {
		return ""
	}
	cut := len(in) > limit
	if cut {
		in = in[:whole(in, limit)]
	}
	if bytes.IndexByte(in, '\\') < 0 {
		return string(in)
	}
	quoted := make([]byte, 0, len(in)+2)
	quoted = append(append(append(quoted, '"'), in...), '"')
	return gjson.ParseBytes(quoted).String()
}

// whole is the longest beginning of at most limit bytes that ends between two characters:
// neither inside of an escape nor of a UTF-8 sequence.
func whole(in []byte, limit int) int {
	end := 0
	for end < limit {
		next := end + 1
		switch c := in[end]; {
		case c == '\\' && end+1 < len(in) && in[end+1] == 'u':
			next = end + 6
		case c == '\\':
			next = end + 2
		case c >= 0xc0:
			for next < len(in) && in[next]&0xc0 == 0x80 {
				next++
			}
		}
		if next > limit {
			break
		}
		end = next
	}
	return end
}
