package blueprint

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"acescope/engine/internal/plainjson"
)

// Bounds of the cost of filling in defaults and checking, for any schema: the number of steps, which are
// roughly pairs of a value and a schema, and the depth of nesting.
const (
	maxWork  = 2_000_000
	maxStack = 2_000
)

var errTooMuch = errors.New("checking this would take too long: the schema has too many alternatives for it")

// walker visits a value and the values within it, each with all schemas that check it, as the library does.
type walker struct {
	fill  bool // set absent fields to their defaults; visit only schemas that a valid value must match
	steps int
	err   error
}

// fillDefaults sets absent fields of value to their defaults: in objects and in items of lists, also by $ref
// and allOf, but not by alternatives (anyOf, oneOf, if). If a field has several defaults, the default in the
// schema itself takes precedence over that of $ref, and that over those of allOf.
func fillDefaults(s *jsonschema.Schema, value any) error {
	w := walker{fill: true}
	w.visit(s, value, 0)
	return w.err
}

// checkCost returns an error if the library might take too long to check a value.
func checkCost(s *jsonschema.Schema, value any) error {
	var w walker
	w.visit(s, value, 0)
	return w.err
}

func (w *walker) visit(s *jsonschema.Schema, v any, depth int) {
	w.steps += 1 + len(s.Properties) + len(s.Required) + len(s.Dependencies) + len(s.DependentRequired)
	if s.Enum != nil {
		w.steps += len(s.Enum.Values)
	}
	if w.steps > maxWork || depth > maxStack {
		w.err = errTooMuch
	}
	if w.err != nil {
		return
	}
	switch value := v.(type) {
	case map[string]any:
		w.visitFields(s, value, depth+1)
	case []any:
		w.steps += len(value)
		for i, item := range value {
			w.visitAll([]*jsonschema.Schema{itemSchema(s, i)}, item, depth+1)
			if !w.fill {
				w.visitAll([]*jsonschema.Schema{s.Contains, s.UnevaluatedItems}, item, depth+1)
			}
		}
	case string:
		w.steps += len(value) >> 6
	}
	w.visitAll(inPlace(s, w.fill), v, depth+1)
}

func (w *walker) visitAll(schemas []*jsonschema.Schema, v any, depth int) {
	for _, s := range schemas {
		if s != nil && w.err == nil {
			w.visit(s, v, depth)
		}
	}
}

func (w *walker) visitFields(s *jsonschema.Schema, obj map[string]any, depth int) {
	if w.fill {
		w.setDefaults(s, obj)
	}
	for name, value := range obj {
		w.steps += len(s.PatternProperties) * (1 + len(name)>>6)
		w.visitAll(fieldSchemas(s, name), value, depth)
		if !w.fill {
			w.visitAll([]*jsonschema.Schema{s.UnevaluatedProperties}, value, depth)
			w.visitAll([]*jsonschema.Schema{s.PropertyNames}, name, depth)
		}
	}
}

func (w *walker) setDefaults(s *jsonschema.Schema, obj map[string]any) {
	for name, inner := range s.Properties {
		if _, ok := obj[name]; ok || w.steps > maxWork {
			continue
		}
		parts := sameValue(inner, true)
		w.steps += len(parts)
		hasDefault := func(part *jsonschema.Schema) bool { return part.Default != nil }
		if i := slices.IndexFunc(parts, hasDefault); i >= 0 {
			obj[name] = copyOf(*parts[i].Default)
		}
	}
}

// fieldSchemas returns the schemas of a field of an object; some may be nil.
func fieldSchemas(s *jsonschema.Schema, name string) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.Properties[name]}
	byPattern := func(a, b jsonschema.Regexp) int { return strings.Compare(a.String(), b.String()) }
	for _, pattern := range slices.SortedFunc(maps.Keys(s.PatternProperties), byPattern) {
		if pattern.MatchString(name) {
			out = append(out, s.PatternProperties[pattern])
		}
	}
	if out[0] == nil && len(out) == 1 {
		additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
		out = append(out, additional)
	}
	return out
}

// itemSchema returns the schema of an item of a list, or nil.
func itemSchema(s *jsonschema.Schema, i int) *jsonschema.Schema {
	if i < len(s.PrefixItems) {
		return s.PrefixItems[i]
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		return items
	case []*jsonschema.Schema:
		if i < len(items) {
			return items[i]
		}
		additional, _ := s.AdditionalItems.(*jsonschema.Schema)
		return additional
	}
	return s.Items2020
}

// inPlace returns the schemas that check the same value as s. If always is set, it omits schemas that a valid
// value need not match.
func inPlace(s *jsonschema.Schema, always bool) []*jsonschema.Schema {
	var out []*jsonschema.Schema
	switch {
	case s.Ref != nil && s.DraftVersion < 2019: // draft-07 ignores keywords next to $ref
		return []*jsonschema.Schema{s.Ref}
	case always:
		out = slices.Concat([]*jsonschema.Schema{s.Ref}, s.AllOf)
	default:
		out = slices.Concat([]*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf,
			s.OneOf,
			slices.Collect(maps.Values(s.DependentSchemas)))
		for _, dependency := range s.Dependencies {
			inner, _ := dependency.(*jsonschema.Schema)
			out = append(out, inner)
		}
	}
	return slices.DeleteFunc(out, func(s *jsonschema.Schema) bool { return s == nil })
}

// sameValue returns s and all schemas that check the same value, also indirectly, each once.
func sameValue(s *jsonschema.Schema, always bool) (out []*jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{}
	var add func(*jsonschema.Schema)
	add = func(s *jsonschema.Schema) {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
			for _, next := range inPlace(s, always) {
				add(next)
			}
		}
	}
	add(s)
	return out
}

// copyOf copies a JSON value.
func copyOf(v any) any {
	data, err := plainjson.Marshal(v)
	if err != nil {
		return nil // cannot happen for a value of a parsed document
	}
	return plain(string(data))
}
