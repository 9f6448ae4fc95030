package blueprint

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// rules checks a schema as it is written, before it is compiled: what is not understood here
// is refused with its place.
type rules struct {
	doc  *document
	root *node
	path string
	old  bool // draft-07
	many int  // parts of the schema

	anchors map[string]bool // names of places
	wanted  []wantedAnchor
}

// wantedAnchor is a reference to a place by its name.
type wantedAnchor struct {
	n  *node
	at []string
}

func (r *rules) problem(n *node, tokens []string, format string, args ...any) {
	r.doc.problem(n.at, pathOf(r.root, r.path, tokens), format, args...)
}

// draft is the draft that the schema says it is of, draft-07 where it says none.
func (r *rules) draft() *jsonschema.Draft {
	n := r.root.field("$schema")
	said := ""
	if n != nil {
		said, _ = n.value.(string)
	}
	rest, ok := strings.CutPrefix(strings.TrimSuffix(said, "#"), "http://json-schema.org/")
	if !ok {
		rest, ok = strings.CutPrefix(strings.TrimSuffix(said, "#"), "https://json-schema.org/")
	}
	switch {
	case n == nil, ok && rest == "draft-07/schema":
		r.old = true
		return jsonschema.Draft7
	case ok && rest == "draft/2020-12/schema":
		return jsonschema.Draft2020
	}
	r.problem(n, []string{"$schema"}, "only draft-07 and 2020-12 are understood: http://json-schema.org/draft-07/schema# or https://json-schema.org/draft/2020-12/schema")
	return nil
}

// Keywords whose values are schemas: one, a list, or a table of them.
func schemaKeywords() []string {
	return []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties"}
}

func listKeywords() []string { return []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"} }

func tableKeywords() []string {
	return []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
}

// walk checks a schema and those in it.
func (r *rules) walk(n *node, at []string, depth int) {
	if n.kind != objectKind || depth > maxDepth {
		return // other kinds are for the library to judge
	}
	if r.many++; r.many > maxParts {
		if r.many == maxParts+1 {
			r.problem(n, at, "the schema has more than %d parts", maxParts)
		}
		return
	}
	r.references(n, at)
	r.patterns(n, at)
	r.format(n, at)
	in := func(tokens ...string) []string { return slices.Concat(at, tokens) }
	for _, m := range n.members {
		switch v := m.value; {
		case v.kind == objectKind && slices.Contains(tableKeywords(), m.name):
			for _, inner := range v.members {
				r.walk(inner.value, in(m.name, inner.name), depth+1)
			}
		case v.kind == listKind && slices.Contains(listKeywords(), m.name):
			for i, inner := range v.items {
				r.walk(inner, in(m.name, fmt.Sprint(i)), depth+1)
			}
		case slices.Contains(schemaKeywords(), m.name):
			r.walk(v, in(m.name), depth+1)
		}
	}
}

// references allows those within the schema only.
func (r *rules) references(n *node, at []string) {
	for _, m := range n.members {
		here := slices.Concat(at, []string{m.name})
		text, _ := m.value.value.(string)
		switch m.name {
		case "$ref":
			r.reference(m.value, here, text)
			if r.old && len(n.members) > 1 {
				r.beside(n, at)
			}
		case "$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor":
			r.problem(m.value, here, "is not understood here: use $ref")
		case "$schema":
			if len(at) > 0 {
				r.problem(m.value, here, "stands at the beginning of a schema only")
			}
		case "$id":
			name, anchor := strings.CutPrefix(text, "#")
			if len(at) > 0 && !anchor {
				r.problem(m.value, here, "a part of a schema cannot have an address of its own here")
			}
			r.anchors[name] = r.anchors[name] || anchor && r.old
		case "$anchor":
			r.anchors[text] = r.anchors[text] || !r.old
		}
	}
}

// lost refuses references to names that no place has.
func (r *rules) lost() {
	for _, w := range r.wanted {
		if text := w.n.value.(string); !r.anchors[strings.TrimPrefix(text, "#")] {
			r.problem(w.n, w.at, "%s leads nowhere", quoted(text))
		}
	}
}

func (r *rules) reference(n *node, at []string, text string) {
	switch {
	case n.kind != stringKind:
		r.problem(n, at, "expected a string, found %s", n.kind.words())
		return
	case !strings.HasPrefix(text, "#"):
		r.problem(n, at, "%s leads out of the schema: only references within it (#/…) are followed", quoted(text))
		return
	case text != "#" && !strings.HasPrefix(text, "#/"):
		r.wanted = append(r.wanted, wantedAnchor{n, at})
		return
	}
	tokens, err := pointer(text)
	if err != nil {
		r.problem(n, at, "%s is no JSON pointer", quoted(text))
		return
	}
	to := r.root
	for _, t := range tokens {
		if to = to.step(t); to == nil {
			r.problem(n, at, "%s leads nowhere", quoted(text))
			return
		}
	}
}

// beside says what draft-07 ignores, which many do not know.
func (r *rules) beside(n *node, at []string) {
	var ignored []string
	for _, m := range n.members {
		if slices.Contains([]string{"$ref", "title", "description", "$comment", "definitions", "examples", "$schema", "$id"}, m.name) {
			continue
		}
		ignored = append(ignored, m.name)
	}
	if len(ignored) > 0 {
		r.doc.note(n.at, pathOf(r.root, r.path, at), "beside $ref, draft-07 ignores %s: put both into allOf, or use 2020-12", strings.Join(ignored, ", "))
	}
}

// patterns demands regular expressions that can be matched in linear time.
func (r *rules) patterns(n *node, at []string) {
	check := func(v *node, here []string, text string) {
		if _, err := regexp.Compile(text); err != nil {
			r.problem(v, here, "%s is no regular expression that is understood here (RE2: no look-around, no back-reference): %s", quoted(text), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
	if v := n.field("pattern"); v != nil && v.kind == stringKind {
		check(v, slices.Concat(at, []string{"pattern"}), v.value.(string))
	}
	if v := n.field("patternProperties"); v != nil {
		for _, m := range v.members {
			check(m.value, slices.Concat(at, []string{"patternProperties", m.name}), m.name)
		}
	}
}

// checkedFormats are those that are checked.
func checkedFormats() []string {
	return []string{"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference", "json-pointer", "period", "regex",
		"relative-json-pointer", "semver", "time", "uri", "uri-reference", "uri-template", "uuid"}
}

func (r *rules) format(n *node, at []string) {
	v := n.field("format")
	if v == nil || v.kind != stringKind {
		return
	}
	if name := v.value.(string); !slices.Contains(checkedFormats(), name) {
		r.doc.note(v.at, pathOf(r.root, r.path, slices.Concat(at, []string{"format"})), "the format %s is not checked%s", quoted(name), meant(name, checkedFormats()))
	}
}

// failed says why the library does not take the schema.
func (r *rules) failed(err error) {
	var invalid *jsonschema.SchemaValidationError
	var wrong *jsonschema.ValidationError
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &wrong) {
		r.doc.problem(r.root.at, r.path, "%s", strings.ReplaceAll(err.Error(), base, ""))
		return
	}
	var v Violations
	v.gather(wrong, r.root.plain())
	for _, one := range v.sorted() {
		n := r.root
		for _, t := range one.tokens {
			if inner := n.step(t); inner != nil {
				n = inner
			}
		}
		r.doc.problem(n.at, pathOf(r.root, r.path, one.tokens), "%s", one.Text)
	}
}

// pointer is the tokens of a reference within a schema.
func pointer(ref string) ([]string, error) {
	text, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil || text != "" && text[0] != '/' {
		return nil, fmt.Errorf("%s is no pointer", quoted(ref))
	}
	if text == "" {
		return nil, nil
	}
	var tokens []string
	for _, t := range strings.Split(text[1:], "/") {
		tokens = append(tokens, strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~"))
	}
	return tokens, nil
}

// pathOf is the JSON path of a pointer into a value that itself is at a path.
func pathOf(n *node, path string, tokens []string) string {
	for _, t := range tokens {
		if n != nil && n.kind == listKind {
			path += "[" + t + "]"
		} else {
			path = below(path, t)
		}
		n = n.step(t)
	}
	return path
}

// sortedNames are the names of a table in their order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
