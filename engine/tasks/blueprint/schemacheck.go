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

	"acescope/engine/tasks/run"
)

// sourceChecker checks a schema before it is compiled: it refuses what is not supported.
type sourceChecker struct {
	doc   *document
	root  *node
	path  string
	old   bool // draft-07
	parts int

	anchors map[string]bool // defined names
	named   []namedReference
}

// namedReference is a reference to an anchor.
type namedReference struct {
	n      *node
	tokens []string
}

func (c *sourceChecker) problem(n *node, tokens []string, format string, args ...any) {
	c.doc.problem(n.at, pathOf(c.root, c.path, tokens), format, args...)
}

func (c *sourceChecker) note(n *node, tokens []string, format string, args ...any) {
	c.doc.note(n.at, pathOf(c.root, c.path, tokens), format, args...)
}

// draft returns the draft of the schema, draft-07 by default.
func (c *sourceChecker) draft() *jsonschema.Draft {
	n := c.root.field("$schema")
	if n == nil {
		c.old = true
		return jsonschema.Draft7
	}
	id, _ := n.value.(string)
	id = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(id, "#"), "https:"), "http:")
	switch id {
	case "//json-schema.org/draft-07/schema":
		c.old = true
		return jsonschema.Draft7
	case "//json-schema.org/draft/2020-12/schema":
		return jsonschema.Draft2020
	}
	c.problem(n, []string{"$schema"}, "only draft-07 and 2020-12 are supported: "+
		"http://json-schema.org/draft-07/schema# or https://json-schema.org/draft/2020-12/schema")
	return nil
}

// Keywords whose values are a schema, a list of schemas, or an object of schemas.
var (
	schemaKeywords = []string{"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items",
		"not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	listKeywords   = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	objectKeywords = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// walk checks a schema and those within it.
func (c *sourceChecker) walk(n *node, tokens []string, depth int) {
	if n.kind != objectKind || depth > maxDepth {
		return // other kinds are checked by the library
	}
	c.parts++
	if c.parts > maxParts {
		if c.parts == maxParts+1 {
			c.problem(n, tokens, "the schema has more than %d parts", maxParts)
		}
		return
	}
	c.checkReferences(n, tokens)
	c.checkPatterns(n, tokens)
	c.checkFormat(n, tokens)
	at := func(more ...string) []string { return slices.Concat(tokens, more) }
	for _, m := range n.members {
		switch v := m.value; {
		case v.kind == objectKind && slices.Contains(objectKeywords, m.name):
			for _, inner := range v.members {
				c.walk(inner.value, at(m.name, inner.name), depth+1)
			}
		case v.kind == listKind && slices.Contains(listKeywords, m.name):
			for i, inner := range v.items {
				c.walk(inner, at(m.name, fmt.Sprint(i)), depth+1)
			}
		case slices.Contains(schemaKeywords, m.name):
			c.walk(v, at(m.name), depth+1)
		}
	}
}

// checkReferences refuses references out of the schema, and collects anchors.
func (c *sourceChecker) checkReferences(n *node, tokens []string) {
	for _, m := range n.members {
		at := slices.Concat(tokens, []string{m.name})
		text, _ := m.value.value.(string)
		switch m.name {
		case "$ref":
			c.checkReference(m.value, at, text)
			if c.old && len(n.members) > 1 {
				c.noteIgnored(n, tokens)
			}
		case "$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor":
			c.problem(m.value, at, "is not supported: use $ref")
		case "$schema":
			if len(tokens) > 0 {
				c.problem(m.value, at, "is allowed at the root of a schema only")
			}
		case "$id":
			name, anchor := strings.CutPrefix(text, "#")
			if len(tokens) > 0 && !anchor {
				c.problem(m.value, at, "is not supported for a part of a schema")
			}
			c.anchors[name] = c.anchors[name] || anchor && c.old
		case "$anchor":
			c.anchors[text] = c.anchors[text] || !c.old
		}
	}
}

func (c *sourceChecker) checkReference(n *node, tokens []string, ref string) {
	switch {
	case n.kind != stringKind:
		c.problem(n, tokens, "expected a string, found %s", n.kind.words())
		return
	case !strings.HasPrefix(ref, "#"):
		c.problem(n, tokens, "%s is outside the schema: only references within it (#/…) are supported", quote(ref))
		return
	case ref != "#" && !strings.HasPrefix(ref, "#/"):
		c.named = append(c.named, namedReference{n, tokens})
		return
	}
	path, err := parsePointer(ref)
	if err != nil {
		c.problem(n, tokens, "%v", err)
		return
	}
	target := c.root
	for _, t := range path {
		if target = target.step(t); target == nil {
			c.problem(n, tokens, "%s does not exist", quote(ref))
			return
		}
	}
}

// checkAnchors refuses references to anchors that do not exist.
func (c *sourceChecker) checkAnchors() {
	for _, r := range c.named {
		if text := r.n.value.(string); !c.anchors[strings.TrimPrefix(text, "#")] {
			c.problem(r.n, r.tokens, "%s does not exist", quote(text))
		}
	}
}

// noteIgnored warns of keywords that draft-07 ignores next to $ref.
func (c *sourceChecker) noteIgnored(n *node, tokens []string) {
	harmless := []string{"$ref", "title", "description", "$comment", "definitions", "examples", "$schema", "$id"}
	var ignored []string
	for _, m := range n.members {
		if !slices.Contains(harmless, m.name) {
			ignored = append(ignored, m.name)
		}
	}
	if len(ignored) > 0 {
		c.note(n, tokens, "draft-07 ignores %s next to $ref: put both into allOf, or use 2020-12", strings.Join(ignored, ", "))
	}
}

// checkPatterns refuses regular expressions that cannot be matched in linear time.
func (c *sourceChecker) checkPatterns(n *node, tokens []string) {
	check := func(v *node, text string, more ...string) {
		if _, err := regexp.Compile(text); err != nil {
			c.problem(v, slices.Concat(tokens, more), "%s is not a supported regular expression (RE2: no look-around, no back-reference): %s",
				quote(text), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
	if v := n.field("pattern"); v != nil && v.kind == stringKind {
		check(v, v.value.(string), "pattern")
	}
	if v := n.field("patternProperties"); v != nil {
		for _, m := range v.members {
			check(m.value, m.name, "patternProperties", m.name)
		}
	}
}

var checkedFormats = []string{"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference",
	"json-pointer", "period", "regex", "relative-json-pointer", "semver", "time", "uri", "uri-reference", "uri-template", "uuid"}

func (c *sourceChecker) checkFormat(n *node, tokens []string) {
	v := n.field("format")
	if v == nil || v.kind != stringKind {
		return
	}
	if name := v.value.(string); !slices.Contains(checkedFormats, name) {
		c.note(v, slices.Concat(tokens, []string{"format"}), "the format %s is not checked%s", quote(name), suggestion(name, checkedFormats))
	}
}

// compileProblem adds an error of the library.
func (c *sourceChecker) compileProblem(err error) {
	var invalid *jsonschema.ValidationError
	if schemaErr, ok := errors.AsType[*jsonschema.SchemaValidationError](err); !ok || !errors.As(schemaErr.Err, &invalid) {
		c.doc.problem(c.root.at, c.path, "%s", strings.ReplaceAll(err.Error(), schemaURL, ""))
		return
	}
	var v Violations
	v.collect(invalid, c.root.plain())
	for _, violation := range v.sorted() {
		c.problem(c.root.closest(violation.tokens), violation.tokens, "%s", violation.Text)
	}
}

// closest returns the node of the longest prefix of tokens that exists.
func (n *node) closest(tokens []string) *node {
	for _, t := range tokens {
		if inner := n.step(t); inner != nil {
			n = inner
		}
	}
	return n
}

// parsePointer returns the tokens of a reference within a schema.
func parsePointer(ref string) ([]string, error) {
	text, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil || text != "" && text[0] != '/' {
		return nil, fmt.Errorf("%s is not a JSON pointer", quote(ref))
	}
	if text == "" {
		return nil, nil
	}
	tokens := strings.Split(text[1:], "/")
	for i, t := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// pathOf returns the JSON path of a pointer into a value at a path.
func pathOf(n *node, path string, tokens []string) string {
	for _, t := range tokens {
		if n != nil && n.kind == listKind {
			path += "[" + t + "]"
		} else {
			path = child(path, t)
		}
		n = n.step(t)
	}
	return path
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// schemaGraph checks the references and defaults of a compiled schema.
type schemaGraph struct {
	doc  *document
	root *node
	path string
}

// problem adds a problem at a place below a part of the schema.
func (g schemaGraph) problem(s *jsonschema.Schema, more []string, format string, args ...any) {
	n, path := g.locate(s, more...)
	g.doc.problem(n.at, path, format, args...)
}

func (g schemaGraph) locate(s *jsonschema.Schema, more ...string) (*node, string) {
	_, fragment, _ := strings.Cut(s.Location, "#")
	tokens, err := parsePointer("#" + fragment)
	if err != nil {
		return g.root, g.path
	}
	tokens = append(tokens, more...)
	return g.root.closest(tokens), pathOf(g.root, g.path, tokens)
}

// inPlace returns the schemas that check the same value as s.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat([]*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf)
	for _, name := range sortedNames(s.Dependencies) {
		if inner, ok := s.Dependencies[name].(*jsonschema.Schema); ok {
			out = append(out, inner)
		}
	}
	for _, name := range sortedNames(s.DependentSchemas) {
		out = append(out, s.DependentSchemas[name])
	}
	return withoutNil(out)
}

// inside returns the schemas that check parts of the value.
func inside(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema}
	for _, name := range sortedNames(s.Properties) {
		out = append(out, s.Properties[name])
	}
	for _, p := range sortedPatterns(s) {
		out = append(out, p.schema)
	}
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch inner := v.(type) {
		case *jsonschema.Schema:
			out = append(out, inner)
		case []*jsonschema.Schema:
			out = append(out, inner...)
		}
	}
	return withoutNil(append(out, s.PrefixItems...))
}

func withoutNil(all []*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(all, func(s *jsonschema.Schema) bool { return s == nil })
}

// patternSchema is the schema of the fields whose names match a pattern.
type patternSchema struct {
	re     jsonschema.Regexp
	schema *jsonschema.Schema
}

func sortedPatterns(s *jsonschema.Schema) (out []patternSchema) {
	for re, inner := range s.PatternProperties {
		out = append(out, patternSchema{re, inner})
	}
	slices.SortFunc(out, func(a, b patternSchema) int { return strings.Compare(a.re.String(), b.re.String()) })
	return out
}

// reachable returns all schemas that next leads to from the root, each once.
func reachable(root *jsonschema.Schema, next func(*jsonschema.Schema) []*jsonschema.Schema) []*jsonschema.Schema {
	seen := map[*jsonschema.Schema]bool{root: true}
	out := []*jsonschema.Schema{root}
	for i := 0; i < len(out); i++ {
		for _, s := range next(out[i]) {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

func allParts(root *jsonschema.Schema) []*jsonschema.Schema {
	return reachable(root, func(s *jsonschema.Schema) []*jsonschema.Schema { return slices.Concat(inPlace(s), inside(s)) })
}

// checkLoops refuses references in a circle that does not go into the value, since checking
// would never end.
func (g schemaGraph) checkLoops(root *jsonschema.Schema) {
	const active, done = 1, 2
	state := map[*jsonschema.Schema]int{}
	type frame struct {
		s    *jsonschema.Schema
		next []*jsonschema.Schema
	}
	for _, from := range allParts(root) {
		if state[from] != 0 {
			continue
		}
		state[from] = active
		for stack := []frame{{from, inPlace(from)}}; len(stack) > 0; {
			top := &stack[len(stack)-1]
			if len(top.next) == 0 {
				state[top.s] = done
				stack = stack[:len(stack)-1]
				continue
			}
			next := top.next[0]
			top.next = top.next[1:]
			switch state[next] {
			case active:
				g.problem(top.s, nil, "refers to itself in a circle, so that checking a value would never end")
				return
			case 0:
				state[next] = active
				stack = append(stack, frame{next, inPlace(next)})
			}
		}
	}
}

// checkObject checks that an object can be valid.
func (g schemaGraph) checkObject(root *jsonschema.Schema) {
	if root.Types != nil && !slices.Contains(root.Types.ToStrings(), "object") {
		g.problem(root, []string{"type"}, "must allow an object, since parameters are an object")
	}
}

// checkNames refuses parameters that the strategy cannot pass.
func (g schemaGraph) checkNames(root *jsonschema.Schema, strategy run.Strategy) {
	var names []string
	for _, s := range reachable(root, inPlace) {
		for _, name := range sortedNames(s.Properties) {
			if why := cannotPass(strategy, name); why != "" {
				g.problem(s, []string{"properties", name}, "%s", why)
			} else if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if first, second := sameVariable(strategy, names); first != "" {
		g.problem(root, []string{"properties", second}, "has the same variable %s as %s", run.EnvName(second), quote(first))
	}
}

// checkDefaults checks that every default is valid after its own defaults are filled in.
func (g schemaGraph) checkDefaults(s *Schema) {
	for _, part := range allParts(s.compiled) {
		if part.Default == nil {
			continue
		}
		n, path := g.locate(part, "default")
		value := deepCopy(*part.Default)
		if err := new(budget).fill(part, value, 0); err != nil {
			g.doc.problem(n.at, path, "the defaults within it never end, or are too many")
			continue
		}
		violations := Violations{schema: g.root}
		if err := violations.check(part, value); err != nil {
			g.doc.problem(n.at, path, "%v", err)
			continue
		}
		for _, v := range violations.sorted() {
			g.doc.problem(n.at, pathIn(value, path, v.tokens), "%s", v.Text)
		}
	}
}
