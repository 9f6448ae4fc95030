// Package redact removes secrets from text before it is stored or shown: known secret values,
// and text with the shape of a key, a token, a private key or a URL with a password. It imports
// engine/internal/jsonscan only, and every package may import it.
//
// A secret is replaced by [redacted:kind]. In JSON only strings are changed, so the text stays
// valid; a secret is found regardless of escaping, also in JSON within a JSON string.
//
// Order: a text is scanned once from the left; overlapping secrets are replaced together. No
// state is kept between calls, so redact whole lines, and redact text that spans lines (a private
// key) as a whole, or with a [Stream].
// Bounds: time is linear in the text; a pattern is matched only at its fixed texts, the anchors.
// Nothing is allocated unless an anchor is found.
// Loss: values below [MinLength] bytes are ignored, because they would match ordinary words. A
// secret that is a number in JSON, or that is neither known nor has a known shape, is not found. A
// value that is assigned to a name such as password or api_key is a secret unless it looks like a
// variable, a type or a description.
package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"

	"acescope/engine/internal/jsonscan"
)

// MinLength is the minimum length of a known secret in bytes.
const MinLength = 8

// minPart is the minimum length of the part of a known secret at the start or end of a truncated
// text, in bytes.
const minPart = 6

// Secret is a value to redact.
type Secret struct {
	Kind  string // shown in its place, such as the name of the variable
	Value string
}

// Environ returns the secrets among environment variables (NAME=value), by their names, without
// values below [MinLength] bytes and paths of files.
func Environ(environ []string) []Secret {
	var list []Secret
	for _, v := range environ {
		name, value, ok := strings.Cut(v, "=")
		if ok && len(value) >= MinLength && SecretName(name) && !isPath(name, value) {
			list = append(list, Secret{Kind: name, Value: value})
		}
	}
	return list
}

var secretSuffixes = []string{"KEY", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE",
	"CREDENTIAL", "CREDENTIALS", "COOKIE"}

// SecretName reports whether a variable of that name contains a secret.
func SecretName(name string) bool {
	words := strings.FieldsFunc(strings.ToUpper(name), func(c rune) bool {
		return c == '_' || c == '-' || c == '.'
	})
	for i, w := range words {
		switch w {
		case "PASS", "PAT", "DSN":
			return true
		case "PWD":
			return i > 0 // PWD alone is the working directory
		}
		if slices.ContainsFunc(secretSuffixes, func(s string) bool { return strings.HasSuffix(w, s) }) {
			return true
		}
	}
	return false
}

// isPath reports whether a value is the path of a file with a secret.
func isPath(name, value string) bool {
	if !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "~/") {
		return false
	}
	upper := strings.ToUpper(name)
	return strings.Contains(upper, "CREDENTIALS") || strings.HasSuffix(upper, "FILE") ||
		strings.HasSuffix(upper, "PATH") ||
		strings.HasSuffix(upper, "DIR")
}

// Redactor redacts secrets. It is safe for concurrent use.
type Redactor struct {
	finder finder
	known  []knownSecret // with their escaped forms
}

type knownSecret struct {
	text []byte
	kind string
}

// New returns a redactor for all shapes and for known secrets.
func New(secrets ...Secret) *Redactor {
	r := &Redactor{}
	anchors := slices.Clone(shapeAnchors())
	seen := map[string]bool{}
	for _, s := range secrets {
		kind := markKind(s.Kind)
		for _, form := range forms(s.Value) {
			if len(form) < MinLength || seen[form] || strings.TrimSpace(form) == "" {
				continue
			}
			seen[form] = true
			r.known = append(r.known, knownSecret{[]byte(form), kind})
			match := func(_ []byte, at int) (int, int) { return at, at + len(form) }
			anchors = append(anchors, anchor{text: form, kind: kind, match: match, known: true})
		}
	}
	r.finder.build(anchors)
	return r
}

var ofProcess struct {
	sync.Mutex
	environ  []string
	redactor *Redactor
}

// OfProcess returns the redactor for the secrets in the environment of the process. Callers share
// it: building one costs a millisecond and 200 KB.
func OfProcess() *Redactor {
	o := &ofProcess
	o.Lock()
	defer o.Unlock()
	if environ := os.Environ(); o.redactor == nil || !slices.Equal(o.environ, environ) {
		o.environ = environ
		o.redactor = New(Environ(environ)...)
	}
	return o.redactor
}

// forms returns the forms in which a value occurs in texts: as it is, trimmed, and escaped for a
// JSON string once and twice.
func forms(value string) []string {
	list := []string{value}
	if t := strings.TrimSpace(value); t != value {
		list = append(list, t)
	}
	for _, v := range slices.Clone(list) {
		plain, html := escape(v, false), escape(v, true)
		list = append(list, plain, html, escape(plain, false), escape(html, false))
	}
	return list
}

// escape returns the content of a JSON string, optionally with escaped HTML as json.Marshal
// writes it.
func escape(s string, html bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if e.Encode(s) != nil {
		return s
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

// markKind returns the kind without characters that are not allowed in a mark.
func markKind(kind string) string {
	kind = strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c &&
			c <= 'Z' {
			return c
		}
		return -1
	}, kind)
	return cmp.Or(kind[:min(len(kind), 40)], "secret")
}

// String returns the text without secrets.
func (r *Redactor) String(s string) string {
	b := []byte(s)
	if out := r.Bytes(b); len(out) == 0 || len(b) == 0 || &out[0] != &b[0] {
		return string(out)
	}
	return s
}

// Bytes returns the text without secrets. It returns b itself if b contains no secrets.
func (r *Redactor) Bytes(b []byte) []byte {
	out, from := []byte(nil), 0
	for {
		hit, ok := r.finder.find(b, from)
		if !ok {
			break
		}
		out = append(append(out, b[from:hit.from]...), mark(hit.kind)...)
		from = hit.to
	}
	if out == nil {
		return b
	}
	return append(out, b[from:]...)
}

// Truncated is like Bytes for a text that was truncated at its start or end. It also redacts a
// part of at least minPart bytes of a known secret there.
func (r *Redactor) Truncated(b []byte) []byte {
	b = r.Bytes(b)
	if n, kind := r.longestPart(func(secret []byte,
		n int) bool {
		return bytes.HasSuffix(b, secret[:n])
	}); n > 0 {
		b = append(bytes.Clone(b[:len(b)-n]), mark(kind)...)
	}
	if n, kind := r.longestPart(func(secret []byte, n int) bool {
		return bytes.HasPrefix(b, secret[len(secret)-n:])
	}); n > 0 {
		b = append([]byte(mark(kind)), b[n:]...)
	}
	return b
}

// longestPart returns the length of the longest part of a known secret that matches.
func (r *Redactor) longestPart(matches func(secret []byte, n int) bool) (longest int, kind string) {
	for _, secret := range r.known {
		for n := len(secret.text) - 1; n >= minPart && n > longest; n-- {
			if matches(secret.text, n) {
				longest, kind = n, secret.kind
			}
		}
	}
	return longest, kind
}

func mark(kind string) string { return "[redacted:" + kind + "]" }

// Line returns a line of JSON without secrets; valid JSON stays valid. A line that is not JSON is
// treated as by Bytes.
func (r *Redactor) Line(line []byte) []byte { return r.line(line, nil) }

// Fields is like Line for JSON that acescope writes from its own types: it keeps the names of fields
// and the values of the fixed ones, which must not come from outside. A known secret may be an ordinary
// word that occurs in them.
func (r *Redactor) Fields(line []byte, fixed ...string) []byte { return r.line(line, fixed) }

func (r *Redactor) line(line []byte, fixed []string) []byte {
	if !r.suspect(line) {
		return line
	}
	if !json.Valid(line) {
		return r.Bytes(line)
	}
	return r.json(line, fixed)
}

// suspect reports whether a line may contain a secret, in any escaped form.
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

// json redacts the strings of valid JSON, except the names of fields and the values of fixed ones if
// there are fixed ones.
func (r *Redactor) json(line []byte, fixed []string) []byte {
	out, from := []byte(nil), 0
	key := "" // of the next value
	for at := bytes.IndexByte(line, '"'); at >= 0; {
		end := jsonscan.StringEnd(line, at) - 1
		text := line[at+1 : end]
		next := jsonscan.Space(line, end+1)
		isKey := next < len(line) && line[next] == ':'
		clean := text
		if fixed == nil || !isKey && !slices.Contains(fixed, key) {
			clean = r.content(text)
		}
		if kind := secretOf(key, text); !isKey && kind != "" && bytes.Equal(clean, text) {
			clean = []byte(mark(kind))
		}
		if !bytes.Equal(clean, text) {
			out = append(append(out, line[from:at+1]...), clean...)
			from = end
		}
		key = ""
		if isKey && next+1 < len(line) {
			if v := jsonscan.Space(line, next+1); v < len(line) && line[v] == '"' {
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

// content redacts the content of a JSON string.
func (r *Redactor) content(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return r.Bytes(text)
	}
	var plain string
	if json.Unmarshal(slices.Concat([]byte{'"'}, text, []byte{'"'}), &plain) != nil {
		return r.Bytes(text)
	}
	if clean := r.String(plain); clean != plain {
		return []byte(escape(clean, false))
	}
	return text
}
