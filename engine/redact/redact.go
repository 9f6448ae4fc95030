package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// MinLength is the length in bytes from which a value counts as a secret.
const MinLength = 8

// minCut is how much of a known secret must stand where a text was cut off to be taken for
// a part of it, in bytes.
const minCut = 6

// Secret is a value that must not be seen.
type Secret struct {
	Kind  string // what stands in its place, such as the name of the variable
	Value string
}

// Redactor strikes out secrets. It may be used by many at once.
type Redactor struct {
	finder finder
	known  [][]byte // values and their escaped forms
	kinds  []string // of known
}

// New makes a redactor of the shapes and of values that are known.
func New(secrets ...Secret) *Redactor {
	r := &Redactor{}
	anchors := shapes()
	seen := map[string]bool{}
	for _, s := range secrets {
		for _, form := range forms(s.Value) {
			if len(form) < MinLength || seen[form] || strings.TrimSpace(form) == "" {
				continue
			}
			seen[form] = true
			r.known = append(r.known, []byte(form))
			r.kinds = append(r.kinds, word(s.Kind))
			anchors = append(anchors, anchor{text: form, kind: word(s.Kind), match: whole(len(form)), known: true})
		}
	}
	r.finder.build(anchors)
	return r
}

// forms are the ways in which a value stands in texts: as it is, trimmed, and as a string of
// JSON, once and twice.
func forms(value string) []string {
	list := []string{value}
	if t := strings.TrimSpace(value); t != value {
		list = append(list, t)
	}
	for _, v := range slices.Clone(list) {
		once, html := escape(v), escapeHTML(v)
		list = append(list, once, html, escape(once), escape(html))
	}
	return list
}

// escape is the inside of a JSON string.
func escape(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return s
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// escapeHTML is the inside of a JSON string as Go writes it unasked.
func escapeHTML(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

// word is a kind that can stand in a mark.
func word(kind string) string {
	kind = strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return -1
	}, kind)
	return cmp.Or(kind[:min(len(kind), 40)], "secret")
}

// String is a text without secrets.
func (r *Redactor) String(s string) string {
	b := []byte(s)
	if out := r.Bytes(b); len(out) == 0 || len(b) == 0 || &out[0] != &b[0] {
		return string(out)
	}
	return s
}

// Bytes is a text without secrets: the same bytes where there are none, else new ones.
func (r *Redactor) Bytes(b []byte) []byte {
	out, from := []byte(nil), 0
	for at := 0; ; {
		hit, ok := r.finder.find(b, at)
		if !ok {
			break
		}
		out = append(append(out, b[from:hit.from]...), mark(hit.kind)...)
		from, at = hit.to, hit.to
	}
	if out == nil {
		return b
	}
	return append(out, b[from:]...)
}

// Cut is like Bytes, for a text that was cut off at its begin or its end: a known secret of
// which only a part is left, of minCut bytes or more, is struck out too.
func (r *Redactor) Cut(b []byte) []byte {
	b = r.Bytes(b)
	if n, kind := r.partly(func(secret []byte, n int) bool { return bytes.HasSuffix(b, secret[:n]) }); n > 0 {
		b = append(bytes.Clone(b[:len(b)-n]), mark(kind)...)
	}
	if n, kind := r.partly(func(secret []byte, n int) bool { return bytes.HasPrefix(b, secret[len(secret)-n:]) }); n > 0 {
		b = append([]byte(mark(kind)), b[n:]...)
	}
	return b
}

// partly is the greatest part of a known secret that is there.
func (r *Redactor) partly(there func(secret []byte, n int) bool) (best int, kind string) {
	for i, secret := range r.known {
		for n := len(secret) - 1; n >= minCut && n > best; n-- {
			if there(secret, n) {
				best, kind = n, r.kinds[i]
			}
		}
	}
	return best, kind
}

func mark(kind string) string { return "[redacted:" + kind + "]" }

// Line is a line of JSON without secrets, as valid as it was; where it is no JSON, the same
// as Bytes.
func (r *Redactor) Line(line []byte) []byte {
	if !r.suspect(line) {
		return line
	}
	if !json.Valid(line) {
		return r.Bytes(line)
	}
	return r.json(line)
}

// suspect tells whether a line may hold a secret: where it does not, it does not however it
// is escaped.
func (r *Redactor) suspect(line []byte) bool {
	if _, ok := r.finder.find(line, 0); ok {
		return true
	}
	for rest := line; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 || at+1 >= len(rest) {
			return false
		}
		if rest[at+1] == 'u' || rest[at+1] == '/' {
			return true
		}
		rest = rest[at+2:]
	}
}

// json goes through the strings of valid JSON.
func (r *Redactor) json(line []byte) []byte {
	out, from := []byte(nil), 0
	key := "" // what the next value is called
	for at := bytes.IndexByte(line, '"'); at >= 0; {
		end := at + 1 + stringEnd(line[at+1:])
		text := line[at+1 : end]
		next := skipSpace(line, end+1)
		isKey := next < len(line) && line[next] == ':'
		clean := r.text(text)
		if !isKey && credential(key) && secretValue(text) {
			clean = []byte(mark("credential"))
		}
		if !bytes.Equal(clean, text) {
			out = append(append(out, line[from:at+1]...), clean...)
			from = end
		}
		key = ""
		if isKey && next+1 < len(line) {
			if v := skipSpace(line, next+1); v < len(line) && line[v] == '"' {
				key = string(text[:min(len(text), 40)])
			}
		}
		skip := bytes.IndexByte(line[end+1:], '"')
		if skip < 0 {
			break
		}
		at = end + 1 + skip
	}
	if out == nil {
		return line
	}
	return append(out, line[from:]...)
}

// text is the inside of a JSON string without secrets.
func (r *Redactor) text(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return r.Bytes(text)
	}
	var plain string
	quoted := append(append(append(make([]byte, 0, len(text)+2), '"'), text...), '"')
	if json.Unmarshal(quoted, &plain) != nil {
		return r.Bytes(text)
	}
	if clean := r.String(plain); clean != plain {
		return []byte(escape(clean))
	}
	return text
}

// stringEnd is where the string ends whose inside begins the text.
func stringEnd(text []byte) int {
	for i := 0; ; {
		at := bytes.IndexByte(text[i:], '"')
		if at < 0 {
			return len(text)
		}
		i += at
		back := 0
		for back < i && text[i-1-back] == '\\' {
			back++
		}
		if back%2 == 0 {
			return i
		}
		i++
	}
}

func skipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\t' || b[at] == '\n' || b[at] == '\r') {
		at++
	}
	return at
}
