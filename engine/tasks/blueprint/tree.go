package blueprint

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
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

// parse parses the document as one JSON value, more strictly than encoding/json: names of an object
// are unique, strings are valid, and numbers and depth are bounded. It returns nil after a problem.
func (d *document) parse() *node {
	if !utf8.Valid(d.data) {
		d.problem(invalidAt(d.data), "", "is not UTF-8")
		return nil
	}
	err := json.Unmarshal(d.data, new(json.RawMessage))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset := min(max(int(syntax.Offset)-1, 0), len(d.data))
		switch text := syntax.Error(); {
		case strings.Contains(text, "unexpected end"):
			d.problem(len(d.data), "", "the JSON ends before it is complete")
		case strings.Contains(text, "after top-level value"):
			d.problem(offset, "", "the JSON value is followed by other text")
		default:
			d.problem(offset, "", "is not JSON: %v", syntax)
		}
		return nil
	}
	return d.node(gjson.ParseBytes(d.data), "$", 0)
}

// node converts a value. It returns nil after a problem.
func (d *document) node(v gjson.Result, path string, depth int) *node {
	n := &node{at: v.Index}
	switch {
	case depth > maxDepth:
		d.problem(n.at, "", "is nested more than %d deep", maxDepth)
		return nil
	case v.Type == gjson.Null:
		n.kind = nullKind
	case v.IsBool():
		n.kind, n.value = boolKind, v.Bool()
	case v.Type == gjson.String:
		n.kind, n.value = stringKind, v.Str
		if !d.checkString(v, path) {
			return nil
		}
	case v.Type == gjson.Number:
		n.kind, n.value = numberKind, json.Number(v.Raw)
		if !isBounded(json.Number(v.Raw)) {
			d.problem(n.at, path, "the number is too long, or its exponent is above %d", maxNumber)
			return nil
		}
	case v.IsArray():
		n.kind, n.items = listKind, []*node{}
		v.ForEach(func(_, item gjson.Result) bool {
			inner := d.node(item, path+"["+strconv.Itoa(len(n.items))+"]", depth+1)
			n.items = append(n.items, inner)
			return inner != nil
		})
		if slices.Contains(n.items, nil) {
			return nil
		}
	default:
		return d.object(n, v, path, depth)
	}
	return n
}

func (d *document) object(n *node, v gjson.Result, path string, depth int) *node {
	n.kind = objectKind
	seen := map[string]bool{}
	ok := true
	v.ForEach(func(name, value gjson.Result) bool {
		inner := child(path, name.Str)
		ok = d.checkString(name, inner)
		if ok && seen[name.Str] {
			d.problem(name.Index, inner, "occurs twice")
			ok = false
		}
		seen[name.Str] = true
		if ok {
			m := member{name.Str, name.Index, d.node(value, inner, depth+1)}
			n.members = append(n.members, m)
			ok = m.value != nil
		}
		return ok
	})
	if !ok {
		return nil
	}
	return n
}

// checkString reports a string that decoding has changed: half of a surrogate pair becomes
// another character.
func (d *document) checkString(v gjson.Result, path string) bool {
	raw := strings.ToLower(v.Raw)
	if strings.Count(v.Str, "\ufffd") == strings.Count(raw, "\ufffd")+strings.Count(raw, `\ufffd`) {
		return true
	}
	d.problem(v.Index, path, `a \u escape is half of a surrogate pair`)
	return false
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
