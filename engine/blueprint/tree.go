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

// shape is the type of a JSON value, as a schema calls it.
type shape string

const (
	nullKind   shape = "null"
	boolKind   shape = "boolean"
	numberKind shape = "number"
	stringKind shape = "string"
	listKind   shape = "array"
	objectKind shape = "object"
)

// words names a shape in a sentence.
func (k shape) words() string {
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

// node is a JSON value with its place.
type node struct {
	at      int // offset
	kind    shape
	value   any // bool, json.Number or string
	items   []*node
	members []member // in the order of the text
}

// member is a field of an object. at is the offset of its name.
type member struct {
	name  string
	at    int
	value *node
}

// field is the value of a field, nil where there is none.
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

// step is the value that a token of a JSON pointer leads to, nil for none.
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

// plain is the value as encoding/json has it, with numbers as they are written.
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

// parser reads JSON more strictly than encoding/json: every name of an object once, no text
// that would be changed by reading it, numbers and depth bounded.
type parser struct {
	doc *document
	dec *json.Decoder
}

// parse reads the document as one JSON value; nil where it is none, which is a problem then.
func (d *document) parse() *node {
	if !utf8.Valid(d.data) {
		d.problem(invalidAt(d.data), "", "is not UTF-8")
		return nil
	}
	p := &parser{d, json.NewDecoder(bytes.NewReader(d.data))}
	p.dec.UseNumber()
	n, err := p.value("$", 0)
	if err == nil {
		var at int
		if at = p.start(); at < len(d.data) {
			d.problem(at, "", "there is something after the end of the JSON value")
			return nil
		}
	}
	switch {
	case err == nil:
		return n
	case errors.Is(err, errSaid):
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		d.problem(len(d.data), "", "the JSON ends before it is complete")
	default:
		d.syntax(p.start(), err)
	}
	return nil
}

// syntax says what keeps the document from being JSON. A stream's decoder is not exact about
// the place; one that reads the whole is.
func (d *document) syntax(offset int, err error) {
	var whole any
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(d.data, &whole), &syntax) {
		offset, err = int(syntax.Offset)-1, syntax
	}
	d.problem(min(max(offset, 0), len(d.data)), "", "is not JSON: %v", err)
}

// errSaid ends the parsing where a problem was added already.
var errSaid = errors.New("said")

// start is the offset at which the next token begins.
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
		p.doc.problem(n.at, "", "is more than %d deep", maxDepth)
		return nil, errSaid
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
		return n, p.whole(n.at, path, v)
	case json.Number:
		n.kind = numberKind
		if !bounded(v) {
			p.doc.problem(n.at, path, "the number is too long, or its exponent is above %d", maxNumber)
			return nil, errSaid
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
		name := token.(string) // the decoder takes nothing else here
		inner := below(path, name)
		if err := p.whole(at, inner, name); err != nil {
			return err
		}
		if seen[name] {
			p.doc.problem(at, inner, "stands there twice")
			return errSaid
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

// whole refuses a string that reading has changed: half of a pair of \u escapes becomes
// another character.
func (p *parser) whole(at int, path, text string) error {
	if !strings.ContainsRune(text, utf8.RuneError) {
		return nil
	}
	raw := strings.ToLower(string(p.doc.data[at:p.dec.InputOffset()]))
	if strings.Count(text, "\ufffd") == strings.Count(raw, "\ufffd")+strings.Count(raw, `\ufffd`) {
		return nil
	}
	p.doc.problem(at, path, `a \u escape is half of a character`)
	return errSaid
}

// bounded tells whether a number can be computed with at a bounded cost.
func bounded(n json.Number) bool {
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

// below is the path of a field.
func below(path, name string) string {
	if simpleName.MatchString(name) {
		return path + "." + name
	}
	return path + "[" + quoted(name) + "]"
}

// quoted is a text in quotation marks, cut where it is long.
func quoted(text string) string {
	const most = 60 // characters
	if runes := []rune(text); len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "…"
	}
	return strconv.Quote(text)
}

// encode is a value as JSON in its one form: names sorted, no space, numbers as they were
// written.
func encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
