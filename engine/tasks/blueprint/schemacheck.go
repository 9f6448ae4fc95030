package blueprint

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"

	"acescope/engine/tasks/run"
)

// schemaDocument is a schema at a path of a document.
type schemaDocument struct {
	doc  *document
	root gjson.Result
	path string
}

// problem adds a problem at a JSON pointer into the schema.
func (d schemaDocument) problem(tokens []string, format string, args ...any) {
	d.doc.problem(closest(d.root, tokens).Index, pathOf(d.root, d.path, tokens), format, args...)
}

func (d schemaDocument) note(tokens []string, format string, args ...any) {
	d.doc.note(closest(d.root, tokens).Index, pathOf(d.root, d.path, tokens), format, args...)
}

// sourceChecker checks a schema before it is compiled: it refuses what is not supported.
type sourceChecker struct {
	schemaDocument
	old     bool // draft-07
	parts   int
	anchors map[string]bool     // defined names
	named   map[string][]string // a reference to each anchor
}

// draft returns the draft of the schema, draft-07 by default.
func (c *sourceChecker) draft() *jsonschema.Draft {
	n := field(c.root, "$schema")
	if !n.Exists() {
		c.old = true
		return jsonschema.Draft7
	}
	id := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(n.Str, "#"), "https:"), "http:")
	switch id {
	case "//json-schema.org/draft-07/schema":
		c.old = true
		return jsonschema.Draft7
	case "//json-schema.org/draft/2020-12/schema":
		return jsonschema.Draft2020
	}
	c.problem([]string{"$schema"}, "only draft-07 and 2020-12 are supported: "+
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
func (c *sourceChecker) walk(n gjson.Result, tokens []string, depth int) {
	if !n.IsObject() || depth > maxDepth {
		return // other kinds are checked by the library
	}
	c.parts++
	if c.parts > maxParts {
		if c.parts == maxParts+1 {
			c.problem(tokens, "the schema has more than %d parts", maxParts)
		}
		return
	}
	c.checkReferences(n, tokens)
	c.checkPatterns(n, tokens)
	c.checkFormat(n, tokens)
	at := func(more ...string) []string { return slices.Concat(tokens, more) }
	for keyword, v := range members(n) {
		switch name := keyword.Str; {
		case v.IsObject() && slices.Contains(objectKeywords, name):
			for key, inner := range members(v) {
				c.walk(inner, at(name, key.Str), depth+1)
			}
		case v.IsArray() && slices.Contains(listKeywords, name):
			for i, inner := range v.Array() {
				c.walk(inner, at(name, strconv.Itoa(i)), depth+1)
			}
		case slices.Contains(schemaKeywords, name):
			c.walk(v, at(name), depth+1)
		}
	}
}

// checkReferences refuses references out of the schema, and collects anchors.
func (c *sourceChecker) checkReferences(n gjson.Result, tokens []string) {
	for keyword, v := range members(n) {
		at := slices.Concat(tokens, []string{keyword.Str})
		switch keyword.Str {
		case "$ref":
			c.checkReference(v, at)
			if c.old {
				c.noteIgnored(n, tokens)
			}
		case "$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor":
			c.problem(at, "is not supported: use $ref")
		case "$schema":
			if len(tokens) > 0 {
				c.problem(at, "is allowed at the root of a schema only")
			}
		case "$id":
			name, anchor := strings.CutPrefix(v.Str, "#")
			if len(tokens) > 0 && !anchor {
				c.problem(at, "is not supported for a part of a schema")
			}
			c.anchors[name] = c.anchors[name] || anchor && c.old
		case "$anchor":
			c.anchors[v.Str] = c.anchors[v.Str] || !c.old
		}
	}
}

func (c *sourceChecker) checkReference(n gjson.Result, tokens []string) {
	ref := n.Str
	switch {
	case n.Type != gjson.String:
		c.problem(tokens, "expected a string, found %s", kindOf(n).words())
		return
	case !strings.HasPrefix(ref, "#"):
		c.problem(tokens, "%s is outside the schema: only references within it (#/…) are supported", quote(ref))
		return
	case ref != "#" && !strings.HasPrefix(ref, "#/"):
		c.named[ref] = tokens
		return
	}
	path, err := parsePointer(ref)
	if err != nil {
		c.problem(tokens, "%v", err)
		return
	}
	target := c.root
	for _, t := range path {
		if target = step(target, t); !target.Exists() {
			c.problem(tokens, "%s does not exist", quote(ref))
			return
		}
	}
}

// checkAnchors refuses references to anchors that do not exist.
func (c *sourceChecker) checkAnchors() {
	for _, ref := range sortedNames(c.named) {
		if !c.anchors[strings.TrimPrefix(ref, "#")] {
			c.problem(c.named[ref], "%s does not exist", quote(ref))
		}
	}
}

// noteIgnored warns of keywords that draft-07 ignores next to $ref.
func (c *sourceChecker) noteIgnored(n gjson.Result, tokens []string) {
	harmless := []string{"$ref", "title", "description", "$comment", "definitions", "examples", "$schema", "$id"}
	var ignored []string
	for name := range members(n) {
		if !slices.Contains(harmless, name.Str) {
			ignored = append(ignored, name.Str)
		}
	}
	if len(ignored) > 0 {
		c.note(tokens, "draft-07 ignores %s next to $ref: put both into allOf, or use 2020-12", strings.Join(ignored, ", "))
	}
}

// checkPatterns refuses regular expressions that cannot be matched in linear time.
func (c *sourceChecker) checkPatterns(n gjson.Result, tokens []string) {
	check := func(text string, more ...string) {
		if _, err := regexp.Compile(text); err != nil {
			c.problem(slices.Concat(tokens, more), "%s is not a supported regular expression "+
				"(RE2: no look-around, no back-reference): %s",
				quote(text), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
	}
	if v := field(n, "pattern"); v.Type == gjson.String {
		check(v.Str, "pattern")
	}
	for name := range members(field(n, "patternProperties")) {
		check(name.Str, "patternProperties", name.Str)
	}
}

var checkedFormats = []string{"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri", "iri-reference",
	"json-pointer", "period", "regex", "relative-json-pointer", "semver", "time", "uri", "uri-reference", "uri-template", "uuid"}

func (c *sourceChecker) checkFormat(n gjson.Result, tokens []string) {
	v := field(n, "format")
	if v.Type == gjson.String && !slices.Contains(checkedFormats, v.Str) {
		c.note(slices.Concat(tokens, []string{"format"}), "the format %s is not checked%s", quote(v.Str),
			suggestion(v.Str, checkedFormats))
	}
}

// compileProblem adds an error of the library.
func (c *sourceChecker) compileProblem(err error) {
	var invalid *jsonschema.ValidationError
	if schemaErr, ok := errors.AsType[*jsonschema.SchemaValidationError](err); !ok || !errors.As(schemaErr.Err, &invalid) {
		c.doc.problem(c.root.Index, c.path, "%s", strings.ReplaceAll(err.Error(), schemaURL, ""))
		return
	}
	var v Violations
	v.collect(invalid, plain(c.root))
	for _, violation := range v.sorted() {
		c.problem(violation.tokens, "%s", violation.Text)
	}
}

// closest returns the value of the longest prefix of tokens that exists.
func closest(n gjson.Result, tokens []string) gjson.Result {
	for _, t := range tokens {
		if inner := step(n, t); inner.Exists() {
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
func pathOf(n gjson.Result, path string, tokens []string) string {
	for _, t := range tokens {
		if n.IsArray() {
			path += "[" + t + "]"
		} else {
			path = child(path, t)
		}
		n = step(n, t)
	}
	return path
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// pointerTo returns the tokens of the JSON pointer to a part of a compiled schema, followed by more; nil if its
// location is invalid.
func pointerTo(s *jsonschema.Schema, more ...string) []string {
	_, fragment, _ := strings.Cut(s.Location, "#")
	tokens, err := parsePointer("#" + fragment)
	if err != nil {
		return nil
	}
	return append(tokens, more...)
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
func (d schemaDocument) checkLoops(root *jsonschema.Schema) {
	const active, done = 1, 2
	state := map[*jsonschema.Schema]int{}
	var visit func(s *jsonschema.Schema) bool
	visit = func(s *jsonschema.Schema) bool {
		state[s] = active
		for _, next := range inPlace(s) {
			if state[next] == active {
				d.problem(pointerTo(s), "refers to itself in a circle, so that checking a value would never end")
				return false
			}
			if state[next] == 0 && !visit(next) {
				return false
			}
		}
		state[s] = done
		return true
	}
	for _, s := range allParts(root) {
		if state[s] == 0 && !visit(s) {
			return
		}
	}
}

// checkObject checks that an object can be valid.
func (d schemaDocument) checkObject(root *jsonschema.Schema) {
	if root.Types != nil && !slices.Contains(root.Types.ToStrings(), "object") {
		d.problem(pointerTo(root, "type"), "must allow an object, since parameters are an object")
	}
}

// checkNames refuses parameters that the strategy cannot pass.
func (d schemaDocument) checkNames(root *jsonschema.Schema, strategy run.Strategy) {
	var names []string
	for _, s := range reachable(root, inPlace) {
		for _, name := range sortedNames(s.Properties) {
			if why := cannotPass(strategy, name); why != "" {
				d.problem(pointerTo(s, "properties", name), "%s", why)
			} else if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if first, second := sameVariable(strategy, names); first != "" {
		d.problem(pointerTo(root, "properties", second), "has the same variable %s as %s", run.EnvName(second), quote(first))
	}
}

// checkDefaults checks that every default is valid after its own defaults are filled in.
func (d schemaDocument) checkDefaults(s *Schema) {
	for _, part := range allParts(s.compiled) {
		if part.Default == nil {
			continue
		}
		at := pointerTo(part, "default")
		value := deepCopy(*part.Default)
		if err := new(budget).fill(part, value, 0); err != nil {
			d.problem(at, "the defaults within it never end, or are too many")
			continue
		}
		violations := Violations{schema: d.root}
		if err := violations.check(part, value); err != nil {
			d.problem(at, "%v", err)
			continue
		}
		path := pathOf(d.root, d.path, at)
		for _, v := range violations.sorted() {
			d.doc.problem(closest(d.root, at).Index, pathIn(value, path, v.tokens), "%s", v.Text)
		}
	}
}
