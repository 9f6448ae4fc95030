package blueprint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"acescope/engine/internal/plainjson"
	"acescope/engine/tasks/run"
)

// Schema fills in and checks parameters. It is safe for concurrent use.
type Schema struct {
	strategy run.Strategy
	raw      json.RawMessage
	root     *jsonschema.Schema            // nil: any object is valid
	parts    map[string]*jsonschema.Schema // by location
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
	var s *Schema
	if tree := d.parse(); tree.Exists() {
		s = d.compile(tree, "$", strategy)
	}
	if d.any() {
		return nil, &d.Problems
	}
	return s, nil
}

// Check fills in the defaults of parameters and checks them. It returns the parameters that a
// run records and a program gets: an object with sorted names and numbers as written. Nil
// parameters are missing, which differs from {}. The error is [*Violations] or [*Problems].
func (s *Schema) Check(params json.RawMessage) (json.RawMessage, error) {
	const limit = run.MaxParams
	switch {
	case len(params) == 0:
		return nil, violation("parameters are required; use {} for no parameters")
	case len(params) > limit:
		return nil, violation("has %d bytes; at most %d are allowed: pass the path of a file instead",
			len(params), limit)
	}
	d := &document{name: "parameters", data: params}
	tree := d.parse()
	obj, isObject := plain(tree.Raw).(map[string]any)
	if !isObject && !d.any() {
		d.problem(tree.Index, "$", "expected an object")
	}
	if d.any() {
		return nil, &d.Problems
	}
	v := &Violations{schema: s}
	if s.root != nil {
		err := fillDefaults(s.root, obj)
		if err == nil {
			err = v.check(s.root, obj)
		}
		if err != nil {
			return nil, violation("%v", err)
		}
	}
	v.checkStrategy(s.strategy, obj)
	if err := v.err(); err != nil {
		return nil, err
	}
	filled, err := plainjson.Marshal(obj)
	switch {
	case err != nil:
		return nil, violation("%v", err)
	case len(filled) > limit:
		return nil, violation("has %d bytes with its defaults; at most %d are allowed", len(filled), limit)
	}
	return filled, nil
}

// Validate checks an object of any size, without its defaults. Null fields of it, and of the objects in
// it, count as absent: it removes them. The error is [*Violations], or says why the object cannot be
// checked.
func (s *Schema) Validate(obj map[string]any) error {
	removeNulls(obj)
	v := &Violations{schema: s}
	if err := v.check(s.root, obj); err != nil {
		return err
	}
	return v.err()
}

func removeNulls(obj map[string]any) {
	isNull := func(_ string, value any) bool { return value == nil }
	maps.DeleteFunc(obj, isNull)
	for _, value := range obj {
		inner, _ := value.(map[string]any)
		maps.DeleteFunc(inner, isNull)
	}
}

// Parameter describes a parameter of a schema.
type Parameter struct {
	Name        string          `json:"name"`
	Type        string          `json:"parameter_type"` // several are separated by "|"; "": any
	Items       string          `json:"-"`              // of a list, in the same way
	Required    bool            `json:"required"`       // required, and without a default
	Default     json.RawMessage `json:"default,omitempty"`
	Description string          `json:"description,omitempty"`
}

// Parameters returns the parameters that the schema names, sorted.
func (s *Schema) Parameters() []Parameter {
	out := []Parameter{}
	if s == nil || s.root == nil {
		return out
	}
	properties := map[string]*jsonschema.Schema{}
	var required []string
	for _, part := range sameValue(s.root, false) {
		for name, inner := range part.Properties {
			if properties[name] == nil {
				properties[name] = inner
			}
		}
	}
	for _, part := range sameValue(s.root, true) {
		required = append(required, part.Required...)
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p := Parameter{Name: name, Type: typesOf(properties[name])}
		for _, part := range sameValue(properties[name], true) {
			if items := itemSchema(part, 0); p.Items == "" && items != nil {
				p.Items = typesOf(items)
			}
			p.Description = cmp.Or(p.Description, part.Description)
			if p.Default == nil && part.Default != nil {
				p.Default, _ = plainjson.Marshal(*part.Default) // cannot fail for a value of a parsed document
			}
		}
		p.Required = p.Default == nil && slices.Contains(required, name)
		out = append(out, p)
	}
	return out
}

// typesOf returns the types that a schema allows, separated by "|", or "" for any.
func typesOf(s *jsonschema.Schema) string {
	var out []string
	seen := map[*jsonschema.Schema]bool{}
	var add func(*jsonschema.Schema)
	add = func(s *jsonschema.Schema) {
		parts := sameValue(s, true)
		typed := slices.IndexFunc(parts, func(part *jsonschema.Schema) bool { return part.Types != nil })
		if typed >= 0 {
			out = append(out, parts[typed].Types.ToStrings()...)
			return
		}
		for _, part := range parts {
			if seen[part] {
				continue
			}
			seen[part] = true
			if part.Const != nil {
				out = append(out, TypeOf(*part.Const))
			}
			if part.Enum != nil {
				for _, value := range part.Enum.Values {
					out = append(out, TypeOf(value))
				}
			}
			for _, alternative := range slices.Concat(part.AnyOf, part.OneOf) {
				add(alternative)
			}
		}
	}
	add(s)
	return strings.Join(sortedSet(out), "|")
}

// TypeOf returns the JSON type of a value.
func TypeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}

// violation returns the error of a violation by the parameters as a whole.
func violation(format string, args ...any) error {
	v := &Violations{}
	v.add("$", fmt.Sprintf(format, args...))
	return v
}
