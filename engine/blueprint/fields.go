package blueprint

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// fields reads the fields of an object, and says of each what is wrong with it. A field that
// is null counts as one that is not there.
type fields struct {
	doc  *document
	obj  *node
	path string
}

// get is the value of a field, nil where there is none.
func (f fields) get(name string) *node {
	n := f.obj.field(name)
	if n == nil || n.kind == nullKind {
		return nil
	}
	return n
}

func (f fields) wrong(n *node, name, format string, args ...any) {
	f.doc.problem(n.at, below(f.path, name), format, args...)
}

// want is a field of a kind, nil where there is none or it is of another.
func (f fields) want(name string, k shape) *node {
	n := f.get(name)
	if n != nil && n.kind != k {
		f.wrong(n, name, "expected %s, found %s", k.words(), n.kind.words())
		return nil
	}
	return n
}

// text is a field's text without control characters other than tab and newline, "" where it
// is not given.
func (f fields) text(name string) string {
	n := f.want(name, stringKind)
	if n == nil {
		return ""
	}
	text := n.value.(string)
	switch {
	case strings.TrimSpace(text) == "":
		f.wrong(n, name, "is empty: leave it out, or fill it in")
	case strings.ContainsRune(text, 0):
		f.wrong(n, name, "holds a NUL")
	}
	return text
}

// line is a text of one line.
func (f fields) line(name string) string {
	text := f.text(name)
	if strings.ContainsAny(text, "\r\n\t\x1b") {
		f.wrong(f.get(name), name, "must be one line, without control characters")
	}
	return text
}

func (f fields) truth(name string) bool {
	n := f.want(name, boolKind)
	return n != nil && n.value.(bool)
}

// number is a whole number from 1 to most, 0 where it is not given.
func (f fields) number(name string, most int) int {
	n := f.want(name, numberKind)
	if n == nil {
		return 0
	}
	v, err := strconv.Atoi(string(n.value.(json.Number)))
	if err != nil || v < 1 || v > most {
		f.wrong(n, name, "expected a whole number from 1 to %d, found %s", most, n.value)
		return 0
	}
	return v
}

// choice is one of some words, "" where it is not given.
func (f fields) choice(name string, words ...string) string {
	n := f.want(name, stringKind)
	if n == nil {
		return ""
	}
	text := n.value.(string)
	if !slices.Contains(words, text) {
		f.wrong(n, name, "%s is none of %s%s", quoted(text), strings.Join(words, ", "), meant(text, words))
		return ""
	}
	return text
}

// texts is a list of texts that each pass the check, which says what is wrong with one, each
// once.
func (f fields) texts(name string, check func(text string) string) []string {
	n := f.want(name, listKind)
	if n == nil {
		return nil
	}
	if len(n.items) > maxList {
		f.wrong(n, name, "has %d entries; at most %d", len(n.items), maxList)
		return nil
	}
	out := []string{}
	for i, item := range n.items {
		path := below(f.path, name) + "[" + strconv.Itoa(i) + "]"
		text, ok := item.value.(string)
		if !ok || item.kind != stringKind {
			f.doc.problem(item.at, path, "expected a string, found %s", item.kind.words())
			continue
		}
		if why := check(text); why != "" {
			f.doc.problem(item.at, path, "%s", why)
			continue
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// known refuses fields that are none of the names. elsewhere says of some why they are not
// for this object.
func (f fields) known(names []string, elsewhere func(name string) string) {
	for _, m := range f.obj.members {
		if slices.Contains(names, m.name) {
			continue
		}
		why := elsewhere(m.name)
		if why == "" {
			why = "there is no such field" + meant(m.name, names)
		}
		f.doc.problem(m.at, below(f.path, m.name), "%s", why)
	}
}
