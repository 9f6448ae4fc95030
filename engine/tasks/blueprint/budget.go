package blueprint

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of the cost of filling in and checking for any schema: a step is a value that meets a
// schema, the depth is that of their nesting.
const (
	maxWork  = 2_000_000
	maxStack = 2_000
)

var errTooMuch = errors.New("checking this would take too long: the schema has too many alternatives for it")

// budget counts steps.
type budget struct{ steps int }

func (b *budget) spend(cost, depth int) error {
	b.steps += cost
	if b.steps > maxWork || depth > maxStack {
		return errTooMuch
	}
	return nil
}

// fill sets absent fields of value to their defaults: in objects and in items of lists, also
// by $ref and allOf, but not by alternatives (anyOf, oneOf, if). If a field has several
// defaults, that of the schema itself counts first, then that of $ref, then those of allOf.
func (b *budget) fill(s *jsonschema.Schema, v any, depth int) error {
	if err := b.spend(1, depth); err != nil {
		return err
	}
	var err error
	switch value := v.(type) {
	case map[string]any:
		err = b.fillObject(s, value, depth)
	case []any:
		for i := range value {
			if inner := itemSchema(s, i); inner != nil && err == nil {
				err = b.fill(inner, value[i], depth+1)
			}
		}
	default:
		return nil
	}
	for _, next := range unconditional(s) {
		if err == nil {
			err = b.fill(next, v, depth+1)
		}
	}
	return err
}

// unconditional returns the schemas that always apply with s.
func unconditional(s *jsonschema.Schema) []*jsonschema.Schema {
	if s.Ref == nil {
		return s.AllOf
	}
	return append([]*jsonschema.Schema{s.Ref}, s.AllOf...)
}

func (b *budget) fillObject(s *jsonschema.Schema, obj map[string]any, depth int) error {
	patterns := sortedPatterns(s)
	if err := b.spend(len(s.Properties)+len(patterns)*(1+len(obj)), depth); err != nil {
		return err
	}
	for _, name := range sortedNames(s.Properties) {
		inner := s.Properties[name]
		if _, ok := obj[name]; !ok {
			value, err := b.defaultOf(inner, depth+1)
			if err != nil {
				return err
			}
			if value == nil {
				continue
			}
			obj[name] = deepCopy(*value)
		}
		if err := b.fill(inner, obj[name], depth+1); err != nil {
			return err
		}
	}
	for _, name := range sortedNames(obj) {
		for _, inner := range otherSchemas(s, patterns, name) {
			if err := b.fill(inner, obj[name], depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// otherSchemas returns the schemas of a field besides that in the properties: those whose
// pattern matches, or else that of all other fields.
func otherSchemas(s *jsonschema.Schema, patterns []patternSchema, name string) (out []*jsonschema.Schema) {
	for _, p := range patterns {
		if p.re.MatchString(name) {
			out = append(out, p.schema)
		}
	}
	additional, ok := s.AdditionalProperties.(*jsonschema.Schema)
	if _, named := s.Properties[name]; ok && !named && len(out) == 0 {
		out = append(out, additional)
	}
	return out
}

// itemSchema returns the schema of an item of a list, or nil.
func itemSchema(s *jsonschema.Schema, i int) *jsonschema.Schema {
	if i < len(s.PrefixItems) {
		return s.PrefixItems[i]
	}
	if s.Items2020 != nil {
		return s.Items2020
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
	return nil
}

// defaultOf returns the default of a schema, or of one that always applies with it, or nil.
func (b *budget) defaultOf(s *jsonschema.Schema, depth int) (*any, error) {
	if err := b.spend(1, depth); err != nil {
		return nil, err
	}
	if s.Default != nil {
		return s.Default, nil
	}
	for _, next := range unconditional(s) {
		if value, err := b.defaultOf(next, depth+1); value != nil || err != nil {
			return value, err
		}
	}
	return nil, nil
}

// deepCopy copies a JSON value.
func deepCopy(v any) any {
	switch value := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, inner := range value {
			out[name] = deepCopy(inner)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = deepCopy(inner)
		}
		return out
	}
	return v
}

// check spends an upper bound of the library's cost to check a value.
func (b *budget) check(s *jsonschema.Schema, v any, depth int) error {
	cost := 1 + len(s.Required) + len(s.Dependencies) + len(s.DependentRequired) + len(s.DependentSchemas)
	if s.Enum != nil {
		cost += len(s.Enum.Values)
	}
	if text, ok := v.(string); ok {
		cost += len(text) >> 6
	}
	if err := b.spend(cost, depth); err != nil {
		return err
	}
	if err := b.checkAll(inPlace(s), v, depth); err != nil {
		return err
	}
	switch value := v.(type) {
	case map[string]any:
		return b.checkObject(s, value, depth)
	case []any:
		return b.checkList(s, value, depth)
	}
	return nil
}

func (b *budget) checkAll(schemas []*jsonschema.Schema, v any, depth int) error {
	for _, s := range schemas {
		if err := b.check(s, v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (b *budget) checkObject(s *jsonschema.Schema, obj map[string]any, depth int) error {
	patterns := sortedPatterns(s)
	for name, value := range obj {
		if err := b.spend(1+len(patterns)*(1+len(name)>>6), depth); err != nil {
			return err
		}
		if s.PropertyNames != nil {
			if err := b.check(s.PropertyNames, name, depth+1); err != nil {
				return err
			}
		}
		schemas := append(otherSchemas(s, patterns, name), s.Properties[name], s.UnevaluatedProperties)
		if err := b.checkAll(withoutNil(schemas), value, depth); err != nil {
			return err
		}
	}
	return nil
}

func (b *budget) checkList(s *jsonschema.Schema, list []any, depth int) error {
	if err := b.spend(len(list), depth); err != nil {
		return err
	}
	for i, value := range list {
		schemas := withoutNil([]*jsonschema.Schema{itemSchema(s, i), s.Contains, s.UnevaluatedItems})
		if err := b.checkAll(schemas, value, depth); err != nil {
			return err
		}
	}
	return nil
}
