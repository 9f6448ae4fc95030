package widget

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"acescope/engine/ace"
	"acescope/theme"
	"acescope/tui/text"
)

// Bounds of the shown part of one payload, and of the number of payloads kept ready.
const (
	MaxPayload   = 64 << 10
	maxValidated = 256 << 10
	maxPayloads  = 32
)

// Shown is a payload ready to be drawn.
type Shown struct {
	Kind  string
	Size  int      // in bytes
	Lines []string // safe
	Rest  int      // bytes that the lines leave out

	json bool
}

// Spans splits a line of the payload into colored spans if it is JSON. Otherwise it returns one span.
func (p *Shown) Spans(line string, s theme.Styles) []Span {
	if p.json {
		return jsonSpans(line, s)
	}
	return []Span{{s.Text, line}}
}

// Payloads keeps payloads that were made ready.
type Payloads struct{ ready map[payloadKey]*Shown }

// payloadKey is one payload in memory; payloads are never changed in place.
type payloadKey struct {
	first *byte
	size  int
}

// Of makes a JSON payload, or the bytes of an artifact, ready to be drawn.
func (p *Payloads) Of(raw []byte) *Shown {
	if len(raw) == 0 {
		return &Shown{Kind: "nothing"}
	}
	key := payloadKey{&raw[0], len(raw)}
	if s := p.ready[key]; s != nil {
		return s
	}
	if p.ready == nil || len(p.ready) >= maxPayloads {
		p.ready = map[payloadKey]*Shown{}
	}
	s := Show(raw)
	p.ready[key] = s
	return s
}

func Show(raw []byte) *Shown {
	if kind, size := EncodedIn(raw); kind != "" {
		return &Shown{Kind: kind + ", not readable here without its codec", Size: size}
	}
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '"' {
		var s string
		if json.Unmarshal(trimmed, &s) == nil {
			return showString(s)
		}
	}
	// For a very large payload, the beginning decides: parsing all of it would delay the key.
	if len(raw) > maxValidated && (raw[0] == '{' || raw[0] == '[') || json.Valid(raw) {
		return showJSON("JSON", raw)
	}
	if Binary(raw) {
		return showBinary("binary", raw)
	}
	return showText("text, not JSON", string(raw))
}

func showString(s string) *Shown {
	inner := strings.TrimSpace(s)
	if len(inner) > 1 && (inner[0] == '{' || inner[0] == '[') && json.Valid([]byte(inner)) {
		return showJSON("JSON in a string", []byte(inner))
	}
	if Binary([]byte(s)) {
		return showBinary("binary in a string", []byte(s))
	}
	if len(s) >= 64 && !strings.ContainsAny(s, " \n") {
		if data, err := base64.StdEncoding.DecodeString(s); err == nil && Binary(data) {
			return showBinary("base64", data)
		}
	}
	return showText("text", s)
}

func showJSON(kind string, raw []byte) *Shown {
	out, used := Indent(raw, MaxPayload)
	return &Shown{Kind: kind, Size: len(raw), Lines: text.Lines(string(out)), Rest: len(raw) - used,
		json: true}
}

func showText(kind, s string) *Shown {
	kept := s
	if len(kept) > MaxPayload {
		kept = strings.ToValidUTF8(kept[:MaxPayload], "")
	}
	return &Shown{Kind: kind, Size: len(s), Lines: text.Lines(kept), Rest: max(len(s)-MaxPayload, 0)}
}

func showBinary(kind string, data []byte) *Shown {
	head := data[:min(len(data), 64)]
	out := &Shown{Kind: kind, Size: len(data), Rest: len(data) - len(head)}
	for line := range slices.Chunk(head, 16) {
		out.Lines = append(out.Lines, hex.EncodeToString(line))
	}
	return out
}

// Binary reports whether data is not text: its first bytes contain a NUL, or more than a twentieth of them
// are not printable.
func Binary(data []byte) bool {
	data = data[:min(len(data), 4096)]
	odd := 0
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == 0:
			return true
		case r == utf8.RuneError && n == 1 && i < len(data)-utf8.UTFMax,
			r < 0x20 && !strings.ContainsRune("\n\r\t\x1b", r):
			odd++
		}
		i += n
	}
	return odd*20 > len(data)
}

// EncodedIn recognizes a Temporal payload inside a payload, as a codec leaves it. It returns its
// encoding and its size in bytes.
func EncodedIn(raw []byte) (string, int) {
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

// jsonLayout matches the pieces that stay together when JSON is formatted: a string, an empty object or list,
// a bracket, a comma, a colon, white space, anything else.
var jsonLayout = regexp.MustCompile(`"(?s:[^"\\]|\\.)*"?|\{\s*\}|\[\s*\]|[{}\[\],:]|\s+|[^\s"{}\[\],:]+`)

// Indent formats JSON, one value per line, up to limit bytes; used is the number of bytes of
// raw that it formatted. raw may be invalid.
func Indent(raw []byte, limit int) (out []byte, used int) {
	depth := 0
	newline := func() {
		out = append(out, '\n')
		out = append(out, text.Spaces(2*min(max(depth, 0), 40))...)
	}
	for used < len(raw) && len(out) < limit {
		rest := raw[used:min(used+limit+1, len(raw))]
		token := rest[:jsonLayout.FindIndex(rest)[1]]
		used += len(token)
		switch c := token[0]; {
		case len(token) == 1 && (c == '{' || c == '['):
			out = append(out, c)
			depth++
			newline()
		case c == '{' || c == '[':
			out = append(out, c, c+2)
		case c == '}' || c == ']':
			depth--
			newline()
			out = append(out, c)
		case c == ',':
			out = append(out, c)
			newline()
		case c == ':':
			out = append(out, ": "...)
		case c != ' ' && c != '\n' && c != '\t' && c != '\r':
			out = append(out, token...)
		}
	}
	if over := len(out) - limit; over > 0 {
		return []byte(strings.ToValidUTF8(string(out[:limit]), "")), used - over
	}
	return out, used
}

// SizeText formats a number of bytes: "812 bytes", "64.0 KB", "2.1 MB".
func SizeText(n int64) string {
	switch {
	case n < 10_000:
		return ace.Count(n, "byte")
	case n < 1_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// jsonToken matches a string with the colon of a name, a number, a constant, punctuation, or any other
// character.
var jsonToken = regexp.MustCompile(
	`("(?:[^"\\]|\\.)*"?)(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)\b|([\s,:\[\]{}]+)|.`)

// jsonSpans colors a line of JSON.
func jsonSpans(line string, s theme.Styles) (out []Span) {
	for _, m := range jsonToken.FindAllStringSubmatch(line, -1) {
		switch {
		case m[2] != "":
			out = append(out, Span{s.Accent, m[1]}, Span{s.Muted, m[2]})
		case m[1] != "":
			out = append(out, Span{s.Added, m[0]})
		case m[3] != "":
			out = append(out, Span{s.Timeout, m[0]})
		case m[4] != "":
			out = append(out, Span{s.Updated, m[0]})
		case m[5] != "":
			out = append(out, Span{s.Muted, m[0]})
		default:
			out = append(out, Span{s.Text, m[0]})
		}
	}
	return out
}
