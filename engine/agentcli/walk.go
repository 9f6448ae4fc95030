package agentcli

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// maxDepth bounds how deep JSON is nested that is read.
const maxDepth = 10_000

// walk goes through an object or an array that begins at i, and checks it on the way. It
// gives where that ends, or -1: where it is no JSON, and where yield, which may be nil, said
// false. depth is how deep it stands, from 1.
func walk(s string, i, depth int, yield func(key string, field value) bool) int {
	if depth > maxDepth {
		return -1
	}
	object, closer := s[i] == '{', s[i]+2
	if i = space(s, i+1); i < len(s) && s[i] == closer {
		return i + 1
	}
	for {
		key := ""
		if object {
			end, plain := skipText(s, i)
			if end < 0 {
				return -1
			}
			switch {
			case yield == nil:
			case plain:
				key = s[i+1 : end-1]
			default:
				key = value(s[i:end]).view()
			}
			if i = space(s, end); i == len(s) || s[i] != ':' {
				return -1
			}
			i = space(s, i+1)
		}
		end := skip(s, i, depth)
		if end < 0 || yield != nil && !yield(key, value(s[i:end])) {
			return -1
		}
		i = space(s, end)
		switch {
		case i == len(s):
			return -1
		case s[i] == closer:
			return i + 1
		case s[i] != ',':
			return -1
		}
		i = space(s, i+1)
	}
}

// skip is where the value ends that begins at i, within depth others; -1 where there is none.
func skip(s string, i, depth int) int {
	if i == len(s) {
		return -1
	}
	switch s[i] {
	case '"':
		end, _ := skipText(s, i)
		return end
	case '{', '[':
		return walk(s, i, depth+1, nil)
	case 't':
		return skipWord(s, i, "true")
	case 'f':
		return skipWord(s, i, "false")
	case 'n':
		return skipWord(s, i, "null")
	}
	return skipNumber(s, i)
}

// space is the first place from i that holds no space.
func space(s string, i int) int {
	for i < len(s) && s[i] <= ' ' && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

func skipWord(s string, i int, word string) int {
	if strings.HasPrefix(s[i:], word) {
		return i + len(word)
	}
	return -1
}

func skipNumber(s string, i int) int {
	if s[i] == '-' {
		i++
	}
	whole := i
	if i = digits(s, i); i == whole || s[whole] == '0' && i > whole+1 {
		return -1
	}
	if i < len(s) && s[i] == '.' {
		part := i + 1
		if i = digits(s, part); i == part {
			return -1
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		power := i
		if i = digits(s, i); i == power {
			return -1
		}
	}
	return i
}

func digits(s string, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

// skipText is where the string ends that begins at i, or -1, and whether it is as it is
// written: nothing in it is escaped. It looks at eight bytes at a time as far as they go.
func skipText(s string, i int) (end int, plain bool) {
	if i == len(s) || s[i] != '"' {
		return -1, false
	}
	plain = true
	for i++; i < len(s); {
		for i+8 <= len(s) {
			marks := marked(load(s, i))
			if marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		if i == len(s) {
			break
		}
		switch c := s[i]; {
		case c == '"':
			return i + 1, plain
		case c < ' ':
			return -1, false
		case c != '\\':
			i++
		default:
			if i, plain = skipEscaped(s, i+1), false; i < 0 {
				return -1, false
			}
		}
	}
	return -1, false
}

// load is the eight bytes at i, the first the lowest.
func load(s string, i int) uint64 {
	return binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s), len(s))[i:])
}

// marked has a bit in the lowest byte, and perhaps in higher ones, that is a quote, a
// backslash or a control character; 0 where there is none.
func marked(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, back := w^ones*'"', w^ones*'\\'
	return ((quote-ones)&^quote | (back-ones)&^back | (w-ones*' ')&^w) & tops
}

// skipEscaped is where what stands behind a backslash ends, or -1.
func skipEscaped(s string, i int) int {
	if i == len(s) {
		return -1
	}
	switch {
	case escapes[s[i]] != 0:
		return i + 1
	case s[i] != 'u' || i+5 > len(s):
		return -1
	}
	for _, c := range []byte(s[i+1 : i+5]) {
		if !(c >= '0' && c <= '9' || c|' ' >= 'a' && c|' ' <= 'f') {
			return -1
		}
	}
	return i + 5
}

// unescape is the text of what stands between the quotes of a string. Half a pair of
// surrogates is a replacement character.
func unescape(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:at])
		c := s[at+1]
		s = s[at+2:]
		if c != 'u' {
			b.WriteByte(escapes[c])
			continue
		}
		r := hex(s)
		s = s[4:]
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if strings.HasPrefix(s, `\u`) {
				low = hex(s[2:])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				s = s[6:]
			}
		}
		b.WriteRune(r)
	}
}

// escapes are what letters behind a backslash stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex is the number that the first four digits are.
func hex(s string) rune {
	n, err := strconv.ParseUint(s[:4], 16, 16)
	if err != nil {
		return utf8.RuneError // not reached: skipEscaped has looked at them
	}
	return rune(n)
}
