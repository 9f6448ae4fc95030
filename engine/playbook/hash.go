package playbook

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Canonical is the form that is hashed and stored: JSON after RFC 8785 (no white space,
// object keys in alphabetical order, UTF-8 with only `"`, `\` and control characters
// escaped), without a line feed at the end:
//
//	{"bullets":[{"content":"…","harmful":0,"helpful":2,"id":"calc-00001","neutral":0,"section":"…"}],"next_id":2}
//
// Bullets of one section stand together, sections in the order of their first bullet.
// Counters and next_id are part of it; a next_id below 1 is written as 1.
func (p *Playbook) Canonical() []byte {
	bullets := grouped(p.Bullets)
	size := 64
	for i := range bullets {
		size += 96 + len(bullets[i].Content) + len(bullets[i].Section)
	}
	out := append(make([]byte, 0, size), `{"bullets":[`...)
	for i := range bullets {
		b := &bullets[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(append(out, `{"content":`...), b.Content)
		out = strconv.AppendInt(append(out, `,"harmful":`...), int64(b.Harmful), 10)
		out = strconv.AppendInt(append(out, `,"helpful":`...), int64(b.Helpful), 10)
		out = appendString(append(out, `,"id":`...), b.ID)
		out = strconv.AppendInt(append(out, `,"neutral":`...), int64(b.Neutral), 10)
		out = appendString(append(out, `,"section":`...), b.Section)
		out = append(out, '}')
	}
	out = strconv.AppendInt(append(out, `],"next_id":`...), int64(max(p.NextID, 1)), 10)
	return append(out, '}')
}

// Hash is the SHA-256 of [Playbook.Canonical] in lower-case hexadecimal: the name of
// this version.
func (p *Playbook) Hash() string { return digest(p.Canonical()) }

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// appendString writes a string as RFC 8785 §3.2.2.2 says. Bytes that are not UTF-8
// become U+FFFD.
func appendString(out []byte, s string) []byte {
	s = strings.ToValidUTF8(s, "�")
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, s[from:i]...)
		from = i + 1
		if short := strings.IndexByte("\"\\\b\f\n\r\t", c); short >= 0 {
			out = append(out, '\\', `"\bfnrt`[short])
			continue
		}
		out = append(out, '\\', 'u', '0', '0', '0'+c>>4, "0123456789abcdef"[c&15])
	}
	return append(append(out, s[from:]...), '"')
}

func validHash(hash string) bool { return len(hash) == 2*sha256.Size && isHex(hash) }

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
