package blueprint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonKind is the type of a JSON value, with the name that schemas use.
type jsonKind string

const (
	nullKind   jsonKind = "null"
	boolKind   jsonKind = "boolean"
	numberKind jsonKind = "number"
	stringKind jsonKind = "string"
	listKind   jsonKind = "array"
	objectKind jsonKind = "object"
)

// words returns the kind with an article.
func (k jsonKind) words() string {
	switch k {
	case nullKind:
		return "null"
	case boolKind:
		return "true or false"
	case listKind:
		return "a list"
	case objectKind:
		return "an object"
	}
	return "a " + string(k)
}

// node is a JSON value with its offset.
type node struct {
	at      int // offset
	kind    jsonKind
	value   any // bool, json.Number or string
	items   []*node
	members []member // in the order of the document
}

// member is a field of an object. at is the offset of its name.
type member struct {
	name  string
	at    int
	value *node
}

// field returns the value of a field, or nil.
func (n *node) field(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// step returns the value of a token of a JSON pointer, or nil.
func (n *node) step(token string) *node {
	if n == nil || n.kind != listKind {
		return n.field(token)
	}
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(n.items) || strconv.Itoa(i) != token {
		return nil
	}
	return n.items[i]
}

// plain returns the value in the form of encoding/json, with numbers as written.
func (n *node) plain() any {
	switch n.kind {
	case listKind:
		out := make([]any, 0, len(n.items))
		for _, item := range n.items {
			out = append(out, item.plain())
		}
		return out
	case objectKind:
		out := make(map[string]any, len(n.members))
		for _, m := range n.members {
			out[m.name] = m.value.plain()
		}
		return out
	}
	return n.value
}

// parser parses JSON more strictly than encoding/json: names of an object are unique, strings
// are valid, and numbers and depth are bounded.
type parser struct {
	doc *document
	dec *json.Decoder
}

// parse parses the document as one JSON value. It returns nil after a problem.
func (d *document) parse() *node {
	if !utf8.Valid(d.data) {
		d.problem(invalidAt(d.data), "", "is not UTF-8")
		return nil
	}
	p := &parser{d, json.NewDecoder(bytes.NewReader(d.data))}
	p.dec.UseNumber()
	n, err := p.value("$", 0)
	switch at := p.start(); {
	case err == nil && at < len(d.data):
		d.problem(at, "", "the JSON value is followed by other text")
	case err == nil:
		return n
	case errors.Is(err, errReported):
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		d.problem(len(d.data), "", "the JSON ends before it is complete")
	default:
		d.syntaxProblem(at, err)
	}
	return nil
}

// syntaxProblem adds a syntax error. Unmarshal reports its place more exactly than a decoder.
func (d *document) syntaxProblem(offset int, err error) {
	var whole any
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(d.data, &whole)); ok {
		offset = int(syntax.Offset) - 1
		err = syntax
	}
	d.problem(min(max(offset, 0), len(d.data)), "", "is not JSON: %v", err)
}

// errReported ends the parsing after a problem was added.
var errReported = errors.New("reported")

// start returns the offset of the next token.
func (p *parser) start() int {
	at := int(p.dec.InputOffset())
	for at < len(p.doc.data) && strings.IndexByte(" \t\r\n,:", p.doc.data[at]) >= 0 {
		at++
	}
	return at
}

func (p *parser) value(path string, depth int) (*node, error) {
	n := &node{at: p.start()}
	if depth > maxDepth {
		p.doc.problem(n.at, "", "is nested more than %d deep", maxDepth)
		return nil, errReported
	}
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	n.value = token
	switch v := token.(type) {
	case nil:
		n.kind = nullKind
	case bool:
		n.kind = boolKind
	case string:
		n.kind = stringKind
		return n, p.checkString(n.at, path, v)
	case json.Number:
		n.kind = numberKind
		if !isBounded(v) {
			p.doc.problem(n.at, path, "the number is too long, or its exponent is above %d", maxNumber)
			return nil, errReported
		}
	case json.Delim:
		n.value = nil
		if v == '[' {
			return n, p.list(n, path, depth)
		}
		return n, p.object(n, path, depth)
	}
	return n, nil
}

func (p *parser) list(n *node, path string, depth int) error {
	n.kind, n.items = listKind, []*node{}
	for p.dec.More() {
		item, err := p.value(path+"["+strconv.Itoa(len(n.items))+"]", depth+1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := p.dec.Token()
	return err
}

func (p *parser) object(n *node, path string, depth int) error {
	n.kind = objectKind
	seen := map[string]bool{}
	for p.dec.More() {
		at := p.start()
		token, err := p.dec.Token()
		if err != nil {
			return err
		}
		name := token.(string) // the decoder only accepts strings here
		inner := child(path, name)
		if err := p.checkString(at, inner, name); err != nil {
			return err
		}
		if seen[name] {
			p.doc.problem(at, inner, "occurs twice")
			return errReported
		}
		seen[name] = true
		value, err := p.value(inner, depth+1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{name, at, value})
	}
	_, err := p.dec.Token()
	return err
}

// checkString reports a string that decoding has changed: half of a surrogate pair becomes
// another character.
func (p *parser) checkString(at int, path, text string) error {
	if !strings.ContainsRune(text, utf8.RuneError) {
		return nil
	}
	raw := strings.ToLower(string(p.doc.data[at:p.dec.InputOffset()]))
	if strings.Count(text, "\ufffd") == strings.Count(raw, "\ufffd")+strings.Count(raw, `\ufffd`) {
		return nil
	}
	p.doc.problem(at, path, `a \u escape is half of a surrogate pair`)
	return errReported
}

// isBounded reports whether arithmetic with a number has a bounded cost.
func isBounded(n json.Number) bool {
	text := string(n)
	if len(text) > maxNumber {
		return false
	}
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(text[at+1:])
	return err == nil && exponent >= -maxNumber && exponent <= maxNumber
}

// invalidAt returns the offset of the first invalid UTF-8, or -1.
func invalidAt(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

var simpleName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]{0,99}$`)

// child returns the path of a field.
func child(path, name string) string {
	if simpleName.MatchString(name) {
		return path + "." + name
	}
	return path + "[" + quote(name) + "]"
}

// quote quotes a text and truncates it.
func quote(text string) string {
	const most = 60 // characters
	if runes := []rune(text); len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "…"
	}
	return strconv.Quote(text)
}

// encode returns canonical JSON: sorted names, no white space, numbers as written.
func encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
