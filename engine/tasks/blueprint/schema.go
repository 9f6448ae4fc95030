package blueprint

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"

	"acescope/engine/tasks/run"
)

// Schema fills in and checks parameters. It is safe for concurrent use.
type Schema struct {
	strategy run.Strategy
	raw      json.RawMessage
	doc      gjson.Result       // the schema as written
	compiled *jsonschema.Schema // nil: any object is valid
}

// anyObject returns a schema for which any object is valid.
func anyObject(s run.Strategy) *Schema { return &Schema{strategy: s} }

// Compile compiles the schema of a resolved blueprint. For an empty schema, any object is
// valid.
func Compile(schema json.RawMessage, strategy run.Strategy) (*Schema, error) {
	if len(schema) == 0 {
		return anyObject(strategy), nil
	}
	d := &document{name: "parameters_schema", data: schema}
	if len(schema) > MaxFile {
		d.problem(-1, "", "is larger than %d KB", MaxFile>>10)
		return nil, &d.Problems
	}
	tree := d.parse()
	if !tree.Exists() {
		return nil, &d.Problems
	}
	s := d.compile(tree, "$", strategy)
	if d.any() {
		return nil, &d.Problems
	}
	return s, nil
}

// schemaURL is the URL under which a schema is compiled. Nothing is fetched from it.
const schemaURL = "https://acescope.invalid/parameters"

// compile compiles a schema at a path of the document. It returns nil after a problem.
func (d *document) compile(n gjson.Result, path string, strategy run.Strategy) *Schema {
	before := len(d.List) + d.More
	hasProblems := func() bool { return len(d.List)+d.More > before }
	if !n.IsObject() {
		d.problem(n.Index, path, "a schema is an object, found %s", kindOf(n).words())
		return nil
	}
	c := sourceChecker{schemaDocument: schemaDocument{d, n, path}, anchors: map[string]bool{},
		named: map[string][]string{}}
	draft := c.draft()
	if draft == nil {
		return nil
	}
	c.walk(n, nil, 0)
	c.checkAnchors()
	if hasProblems() {
		return nil
	}
	raw, err := encode(plain(n))
	if err != nil {
		d.problem(n.Index, path, "%v", err)
		return nil
	}
	s := &Schema{strategy: strategy, raw: raw, doc: n}
	if s.compiled, err = compileTree(n, draft); err != nil {
		c.compileProblem(err)
		return nil
	}
	c.checkLoops(s.compiled)
	if hasProblems() {
		return nil
	}
	c.checkObject(s.compiled)
	c.checkNames(s.compiled, strategy)
	c.checkDefaults(s)
	if hasProblems() {
		return nil
	}
	return s
}

// compileTree compiles a schema with the library. A panic of the library becomes an error.
func compileTree(n gjson.Result, draft *jsonschema.Draft) (s *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("it cannot be used: %v", p)
		}
	}()
	doc := plain(n).(map[string]any)
	delete(doc, "$id") // all references are within the schema
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("only references within the schema are supported")
}

// Check fills in the defaults of parameters and checks them. It returns the parameters that a
// run records and a program gets: an object with sorted names and numbers as written. Nil
// parameters are missing, which differs from {}. The error is [*Violations].
func (s *Schema) Check(params json.RawMessage) (json.RawMessage, error) {
	v := &Violations{schema: s.doc}
	switch {
	case len(params) == 0:
		v.add("$", "parameters are required; use {} for no parameters")
		return nil, v
	case len(params) > run.MaxParams:
		v.add("$", fmt.Sprintf("has %d bytes; at most %d are allowed: pass the path of a file instead", len(params), run.MaxParams))
		return nil, v
	}
	obj, err := parseObject(params)
	if err != nil {
		return nil, err
	}
	if s.compiled != nil {
		err := new(budget).fill(s.compiled, obj, 0)
		if err == nil {
			err = v.check(s.compiled, obj)
		}
		if err != nil {
			v.add("$", err.Error())
			return nil, v.err()
		}
	}
	v.checkStrategy(s.strategy, obj)
	if err := v.err(); err != nil {
		return nil, err
	}
	filled, err := encode(obj)
	if err == nil && len(filled) > run.MaxParams {
		err = fmt.Errorf("has %d bytes with its defaults; at most %d are allowed", len(filled), run.MaxParams)
	}
	if err != nil {
		v.add("$", err.Error())
		return nil, v
	}
	return filled, nil
}

// Validate checks an object of any size, without its defaults. The error is [*Violations], or says
// why the object cannot be checked.
func (s *Schema) Validate(obj map[string]any) error {
	v := &Violations{schema: s.doc}
	if err := v.check(s.compiled, obj); err != nil {
		return err
	}
	return v.err()
}

func parseObject(params json.RawMessage) (map[string]any, error) {
	d := &document{name: "parameters", data: params}
	tree := d.parse()
	if !tree.Exists() {
		return nil, &d.Problems
	}
	obj, ok := plain(tree).(map[string]any)
	if !ok {
		d.problem(tree.Index, "$", "expected an object, found %s", kindOf(tree).words())
		return nil, &d.Problems
	}
	return obj, nil
}

// Parameter describes a parameter of a schema.
type Parameter struct {
	Name        string          `json:"name"`
	Type        string          `json:"parameter_type"` // several are separated by "|"; "": any
	Required    bool            `json:"required"`       // and without a default
	Default     json.RawMessage `json:"default,omitempty"`
	Description string          `json:"description,omitempty"`
}

// Parameters returns the parameters that the schema names, sorted.
func (s *Schema) Parameters() []Parameter {
	out := []Parameter{}
	if s == nil || s.compiled == nil {
		return out
	}
	properties := map[string]*jsonschema.Schema{}
	var required []string
	for todo := []*jsonschema.Schema{s.compiled}; len(todo) > 0; todo = todo[1:] {
		for name, inner := range todo[0].Properties {
			if properties[name] == nil {
				properties[name] = inner
			}
		}
		required = append(required, todo[0].Required...)
		todo = append(todo, unconditional(todo[0])...)
	}
	for _, name := range sortedNames(properties) {
		p := Parameter{Name: name}
		p.describe(properties[name], 0)
		p.Required = p.Default == nil && slices.Contains(required, name)
		out = append(out, p)
	}
	return out
}

// describe sets the unset fields from a schema and from those that always apply with it.
func (p *Parameter) describe(s *jsonschema.Schema, depth int) {
	if depth > maxDepth {
		return
	}
	if p.Type == "" && s.Types != nil {
		p.Type = strings.Join(s.Types.ToStrings(), "|")
	}
	if p.Description == "" {
		p.Description = s.Description
	}
	if p.Default == nil && s.Default != nil {
		p.Default, _ = encode(*s.Default)
	}
	for _, next := range unconditional(s) {
		p.describe(next, depth+1)
	}
}
