package blueprint

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"

	"acescope/engine/internal/plainjson"
	"acescope/engine/tasks/run"
)

// schemaURL is the URL under which a schema is compiled. Nothing is fetched from it.
const schemaURL = "https://acescope.invalid/parameters"

// compiler compiles a schema, which is the value root at a path of a document. It refuses schemas that are
// not supported, or that would make checking slow or endless.
type compiler struct {
	*document
	root  gjson.Result
	path  string
	draft *jsonschema.Draft
	refs  map[string][]string             // pointers to the keywords $ref, by their values
	parts [][]string                      // pointers to the schemas within the schema
	at    map[*jsonschema.Schema][]string // pointers to the compiled schemas
}

// compile compiles a schema at a path of the document. It returns nil after a problem.
func (d *document) compile(root gjson.Result, path string, strategy run.Strategy) *Schema {
	c := &compiler{document: d, root: root, path: path,
		refs: map[string][]string{}, at: map[*jsonschema.Schema][]string{}}
	s := &Schema{strategy: strategy, parts: map[string]*jsonschema.Schema{}}
	before := len(d.List) + d.More
	for _, step := range []func(*Schema){c.checkSource, c.compile, c.checkLoops, c.checkParts} {
		step(s)
		if len(d.List)+d.More > before {
			return nil
		}
	}
	return s
}

// problemAt adds a problem at a JSON pointer into the schema.
func (c *compiler) problemAt(tokens []string, format string, args ...any) {
	c.problem(closest(c.root, tokens).Index, pathOf(c.path, tokens), format, args...)
}

func (c *compiler) noteAt(tokens []string, format string, args ...any) {
	c.note(closest(c.root, tokens).Index, pathOf(c.path, tokens), format, args...)
}

// checkSource reports problems that the library does not find, or for which it gives no place.
func (c *compiler) checkSource(*Schema) {
	if !c.root.IsObject() {
		c.problemAt(nil, "a schema must be an object")
		return
	}
	c.draft = jsonschema.Draft7
	if n := field(c.root, "$schema"); n.Exists() {
		_, name, _ := strings.Cut(strings.TrimSuffix(n.Str, "#"), "://json-schema.org/")
		switch name {
		case "draft-07/schema":
		case "draft/2020-12/schema":
			c.draft = jsonschema.Draft2020
		default:
			c.problemAt([]string{"$schema"}, "only draft-07 and 2020-12 are supported: "+
				"http://json-schema.org/draft-07/schema# or https://json-schema.org/draft/2020-12/schema")
			return
		}
	}
	c.walk(c.root, nil)
	if len(c.parts) > maxParts {
		c.problemAt(nil, "the schema has more than %d parts", maxParts)
	}
}

// Keywords whose values are a schema or a list of schemas, and those with an object of schemas.
var (
	schemaKeywords = []string{"additionalItems", "additionalProperties", "allOf", "anyOf", "contains",
		"contentSchema", "else", "if", "items", "not", "oneOf", "prefixItems", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties"}
	objectKeywords = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties",
		"properties"}
)

// walk checks the keywords of a schema and of the schemas within it.
func (c *compiler) walk(n gjson.Result, tokens []string) {
	if !n.IsObject() || len(c.parts) > maxParts {
		return // other kinds are checked by the library
	}
	c.parts = append(c.parts, tokens)
	for keyword, v := range members(n) {
		name := keyword.Str
		at := append(slices.Clip(tokens), name)
		switch {
		case slices.Contains(objectKeywords, name):
			for key, inner := range members(v) {
				c.walk(inner, append(slices.Clip(at), key.Str))
			}
		case !slices.Contains(schemaKeywords, name):
			c.checkKeyword(n, name, v, at)
		case v.IsArray():
			for i, inner := range v.Array() {
				c.walk(inner, append(slices.Clip(at), strconv.Itoa(i)))
			}
		default:
			c.walk(v, at)
		}
	}
}

var checkedFormats = []string{"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "iri",
	"iri-reference", "json-pointer", "period", "regex", "relative-json-pointer", "semver", "time", "uri",
	"uri-reference", "uri-template", "uuid"}

// checkKeyword checks a keyword of the schema n whose value is not a schema.
func (c *compiler) checkKeyword(n gjson.Result, keyword string, v gjson.Result, at []string) {
	inner := len(at) > 1
	switch {
	case keyword == "$ref" && v.Type == gjson.String:
		c.refs[v.Str] = at
		if !strings.HasPrefix(v.Str, "#") {
			c.problemAt(at, "%s is outside the schema: only references within it (#/…) are supported",
				quote(v.Str))
		}
		c.noteIgnored(n, at[:len(at)-1])
	case slices.Contains([]string{"$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor"},
		keyword):
		c.problemAt(at, "is not supported: use $ref")
	case keyword == "$schema" && inner:
		c.problemAt(at, "is allowed at the root of a schema only")
	case keyword == "$id" && inner && !strings.HasPrefix(v.Str, "#"):
		c.problemAt(at, "is not supported for a part of a schema")
	case keyword == "format" && v.Type == gjson.String && !slices.Contains(checkedFormats, v.Str):
		c.noteAt(at, "the format %s is not checked%s", quote(v.Str), suggestion(v.Str, checkedFormats))
	}
}

// noteIgnored warns of keywords that draft-07 ignores next to $ref.
func (c *compiler) noteIgnored(n gjson.Result, tokens []string) {
	harmless := []string{"$ref", "title", "description", "$comment", "definitions", "examples", "$schema",
		"$id"}
	var ignored []string
	for name := range members(n) {
		if c.draft == jsonschema.Draft7 && !slices.Contains(harmless, name.Str) {
			ignored = append(ignored, name.Str)
		}
	}
	if len(ignored) > 0 {
		c.noteAt(tokens, "draft-07 ignores %s next to $ref: put both into allOf, or use 2020-12",
			strings.Join(ignored, ", "))
	}
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("only references within the schema are supported")
}

// compile compiles the schema and its parts with the library.
func (c *compiler) compile(s *Schema) {
	defer func() {
		if p := recover(); p != nil {
			c.problemAt(nil, "the schema cannot be used: %v", p)
		}
	}()
	doc := plain(c.root.Raw).(map[string]any)
	s.raw, _ = plainjson.Marshal(doc) // cannot fail for a value of a parsed document
	delete(doc, "$id")                // all references are within the schema
	library := jsonschema.NewCompiler()
	library.DefaultDraft(c.draft)
	library.AssertFormat()
	library.UseLoader(noLoader{})
	err := library.AddResource(schemaURL, doc)
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, tokens := range c.parts {
		var part *jsonschema.Schema
		location := schemaURL + "#"
		for _, token := range tokens {
			location += "/" + url.PathEscape(escape.Replace(token))
		}
		if err == nil {
			part, err = library.Compile(location)
		}
		if err != nil {
			c.compileProblem(err)
			return
		}
		if s.root == nil {
			s.root = part
		}
		c.at[part] = tokens
		s.parts[part.Location] = part
	}
}

// compileProblem adds an error of the library.
func (c *compiler) compileProblem(err error) {
	if schemaErr, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		err = schemaErr.Err
	}
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		var v Violations
		v.collect(invalid)
		c.addViolations(v.sorted(), c.root, c.path)
		return
	}
	missing := ""
	if pointer, ok := errors.AsType[*jsonschema.JSONPointerNotFoundError](err); ok {
		missing = pointer.URL
	}
	if anchor, ok := errors.AsType[*jsonschema.AnchorNotFoundError](err); ok {
		missing = anchor.Reference
	}
	ref := strings.TrimPrefix(missing, schemaURL)
	if at, ok := c.refs[ref]; ok {
		c.problemAt(at, "%s does not exist", quote(ref))
		return
	}
	c.problemAt(nil, "%s", strings.ReplaceAll(err.Error(), schemaURL, ""))
}

// checkLoops refuses references that lead back to the same schema for the same value, since checking would
// never end.
func (c *compiler) checkLoops(s *Schema) {
	const active, done = 1, 2
	state := map[*jsonschema.Schema]int{}
	var visit func(s *jsonschema.Schema) bool
	visit = func(s *jsonschema.Schema) bool {
		state[s] = active
		for _, next := range inPlace(s, false) {
			if state[next] == active {
				c.problemAt(c.at[s], "refers to itself in a circle, so that checking a value would never end")
				return false
			}
			if state[next] == 0 && !visit(next) {
				return false
			}
		}
		state[s] = done
		return true
	}
	for _, location := range slices.Sorted(maps.Keys(s.parts)) {
		if part := s.parts[location]; state[part] == 0 && !visit(part) {
			return
		}
	}
}

// checkParts checks the defaults of all parts and the names of the parameters.
func (c *compiler) checkParts(s *Schema) {
	if t := s.root.Types; t != nil && !slices.Contains(t.ToStrings(), "object") {
		c.problemAt([]string{"type"}, "must allow an object, since parameters are an object")
	}
	taken := variables{}
	for _, part := range sameValue(s.root, false) {
		for _, name := range slices.Sorted(maps.Keys(part.Properties)) {
			at := append(slices.Clip(c.at[part]), "properties", name)
			if why := cmp.Or(cannotPass(s.strategy, name), taken.conflict(s.strategy, name)); why != "" {
				c.problemAt(at, "%s", why)
			}
		}
	}
	for _, location := range slices.Sorted(maps.Keys(s.parts)) {
		if part := s.parts[location]; part.Default != nil {
			c.checkDefault(s, part)
		}
	}
}

// checkDefault checks that a default is valid after its own defaults are filled in.
func (c *compiler) checkDefault(s *Schema, part *jsonschema.Schema) {
	at := append(slices.Clip(c.at[part]), "default")
	value := copyOf(*part.Default)
	if fillDefaults(part, value) != nil {
		c.problemAt(at, "filling in the default adds defaults without end, or too many")
		return
	}
	v := Violations{schema: s}
	if err := v.check(part, value); err != nil {
		c.problemAt(at, "%v", err)
		return
	}
	c.addViolations(v.sorted(), closest(c.root, at), pathOf(c.path, at))
}
