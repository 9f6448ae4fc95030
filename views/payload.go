package views

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"acescope/tui/text"
)

// Bounds of what is shown of one payload, and of how many are kept ready.
const (
	maxPayload   = 64 << 10
	maxValidated = 256 << 10
	maxPayloads  = 32
)

// shown is a payload ready to be drawn: what it is, its size in bytes, and its lines, of
// which rest bytes are left out.
type shown struct {
	kind  string
	size  int
	lines []tokens
	rest  int
}

// payloads keeps payloads that were made ready.
type payloads struct{ ready map[payloadKey]*shown }

// payloadKey is one payload in memory; payloads are never changed in place.
type payloadKey struct {
	first *byte
	size  int
}

// of makes a JSON payload, or the bytes of an artifact, ready to be drawn.
func (p *payloads) of(raw []byte) *shown {
	if len(raw) == 0 {
		return &shown{kind: "nothing"}
	}
	key := payloadKey{&raw[0], len(raw)}
	if s := p.ready[key]; s != nil {
		return s
	}
	if p.ready == nil || len(p.ready) >= maxPayloads {
		p.ready = map[payloadKey]*shown{}
	}
	s := show(raw)
	p.ready[key] = s
	return s
}

func show(raw []byte) *shown {
	if kind, size := sealedIn(raw); kind != "" {
		return &shown{kind: kind + ", not readable here without its codec", size: size}
	}
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '"' {
		var s string
		if json.Unmarshal(trimmed, &s) == nil {
			return showString(s)
		}
	}
	// Of a very large one the beginning decides: reading all of it would be felt.
	if len(raw) > maxValidated && (raw[0] == '{' || raw[0] == '[') || json.Valid(raw) {
		return showJSON("JSON", raw)
	}
	if binary(raw) {
		return showBinary("binary", raw)
	}
	return showText("text, not JSON", string(raw))
}

func showString(s string) *shown {
	inner := strings.TrimSpace(s)
	if len(inner) > 1 && (inner[0] == '{' || inner[0] == '[') && json.Valid([]byte(inner)) {
		return showJSON("JSON in a string", []byte(inner))
	}
	if binary([]byte(s)) {
		return showBinary("binary in a string", []byte(s))
	}
	if len(s) >= 64 && !strings.ContainsAny(s, " \n") {
		if data, err := base64.StdEncoding.DecodeString(s); err == nil && binary(data) {
			return showBinary("base64", data)
		}
	}
	return showText("text", s)
}

func showJSON(kind string, raw []byte) *shown {
	out, used := indent(raw, maxPayload)
	return &shown{kind: kind, size: len(raw), lines: highlight(string(out)), rest: len(raw) - used}
}

func showText(kind, s string) *shown {
	kept := s
	if len(kept) > maxPayload {
		kept = strings.ToValidUTF8(kept[:maxPayload], "")
	}
	out := &shown{kind: kind, size: len(s), rest: max(len(s)-maxPayload, 0)}
	for _, l := range text.Lines(kept) {
		out.lines = append(out.lines, tokens{{tokenText, l}})
	}
	return out
}

func showBinary(kind string, data []byte) *shown {
	head := data[:min(len(data), 64)]
	out := &shown{kind: kind, size: len(data), rest: len(data) - len(head)}
	for len(head) > 0 {
		n := min(len(head), 16)
		out.lines = append(out.lines, tokens{{tokenPlain, hex.EncodeToString(head[:n])}})
		head = head[n:]
	}
	return out
}

// binary tells whether data is no text: it holds a NUL, or more than a twentieth of it is
// not printable. The beginning decides.
func binary(data []byte) bool {
	data = data[:min(len(data), 4096)]
	odd := 0
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == 0:
			return true
		case r == utf8.RuneError && n == 1 && i < len(data)-utf8.UTFMax, r < 0x20 && r != '\n' && r != '\r' && r != '\t' && r != 0x1b:
			odd++
		}
		i += n
	}
	return odd*20 > len(data)
}

// sealedIn recognises one of Temporal's payloads inside a payload, as codecs leave them: its
// encoding and how many bytes it holds.
func sealedIn(raw []byte) (string, int) {
	if len(raw) > 4<<20 || !bytes.Contains(raw[:min(len(raw), 4096)], []byte(`"metadata"`)) {
		return "", 0
	}
	var p struct {
		Metadata struct{ Encoding []byte }
		Data     []byte
	}
	if json.Unmarshal(raw, &p) != nil || len(p.Metadata.Encoding) == 0 {
		return "", 0
	}
	return text.Safe(string(p.Metadata.Encoding), " "), len(p.Data)
}

// indent lays JSON out, one value a line, until there are limit bytes of it; used is how
// much of raw that is.
func indent(raw []byte, limit int) (out []byte, used int) {
	depth, quoted := 0, false
	newline := func() {
		out = append(out, '\n')
		for range min(depth, 40) {
			out = append(out, ' ', ' ')
		}
	}
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if len(out) >= limit {
			return []byte(strings.ToValidUTF8(string(out), "")), i
		}
		switch {
		case quoted:
			out = append(out, c)
			if c == '\\' && i+1 < len(raw) {
				i++
				out = append(out, raw[i])
			}
			quoted = c != '"'
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
		case c == '{' || c == '[':
			out = append(out, c)
			if end := next(raw, i+1); end < len(raw) && raw[end] == c+2 {
				out = append(out, c+2)
				i = end
				continue
			}
			depth++
			newline()
		case c == '}' || c == ']':
			depth--
			newline()
			out = append(out, c)
		case c == ',':
			out = append(out, c)
			newline()
		case c == ':':
			out = append(out, ':', ' ')
		default:
			quoted = c == '"'
			out = append(out, c)
		}
	}
	return out, len(raw)
}

// next is where the white space from i on ends.
func next(raw []byte, i int) int {
	for i < len(raw) && strings.IndexByte(" \n\t\r", raw[i]) >= 0 {
		i++
	}
	return i
}

// sizeText is a number of bytes for people: "812 bytes", "64.0 KB", "2.1 MB".
func sizeText(n int64) string {
	switch {
	case n < 10_000:
		return text.Count(n) + " bytes"
	case n < 1_000_000:
		return oneDigit(float64(n)/1000) + " KB"
	}
	return oneDigit(float64(n)/1e6) + " MB"
}
