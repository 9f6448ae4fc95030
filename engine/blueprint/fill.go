package blueprint

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// fill puts defaults where a value says nothing: in the fields of objects and, within what is
// there, in the entries of lists, also by $ref and allOf. Where a schema is one of several
// that may hold (anyOf, oneOf, if) it fills in nothing. Of several defaults for one field the
// first counts: the schema's own, then that of $ref, then those of allOf in their order. The
// value itself is changed.
func (w *work) fill(s *jsonschema.Schema, v any, depth int) error {
	if err := w.step(1, depth); err != nil {
		return err
	}
	var err error
	switch value := v.(type) {
	case map[string]any:
		err = w.fillObject(s, value, depth)
	case []any:
		err = w.fillList(s, value, depth)
	default:
		return nil
	}
	for _, next := range always(s) {
		if err == nil {
			err = w.fill(next, v, depth+1)
		}
	}
	return err
}

// always are the schemas that hold wherever this one does.
func always(s *jsonschema.Schema) []*jsonschema.Schema {
	if s.Ref == nil {
		return s.AllOf
	}
	return append([]*jsonschema.Schema{s.Ref}, s.AllOf...)
}

func (w *work) fillObject(s *jsonschema.Schema, obj map[string]any, depth int) error {
	patterns := byPattern(s)
	if err := w.step(len(s.Properties)+len(patterns)*(1+len(obj)), depth); err != nil {
		return err
	}
	for _, name := range sortedNames(s.Properties) {
		inner := s.Properties[name]
		if _, there := obj[name]; !there {
			found, err := w.defaultOf(inner, depth+1)
			if err != nil {
				return err
			}
			if found == nil {
				continue
			}
			obj[name] = copyOf(*found)
		}
		if err := w.fill(inner, obj[name], depth+1); err != nil {
			return err
		}
	}
	for _, name := range sortedNames(obj) {
		for _, other := range otherwise(s, patterns, name) {
			if err := w.fill(other, obj[name], depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// otherwise are the schemas of a field that is none of the properties: those whose pattern
// matches, else the one for all others.
func otherwise(s *jsonschema.Schema, patterns []patterned, name string) (out []*jsonschema.Schema) {
	for _, p := range patterns {
		if p.re.MatchString(name) {
			out = append(out, p.schema)
		}
	}
	other, ok := s.AdditionalProperties.(*jsonschema.Schema)
	if _, named := s.Properties[name]; ok && !named && len(out) == 0 {
		out = append(out, other)
	}
	return out
}

func (w *work) fillList(s *jsonschema.Schema, list []any, depth int) error {
	for i := range list {
		inner := itemSchema(s, i)
		if inner == nil {
			continue
		}
		if err := w.fill(inner, list[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// itemSchema is the schema of an entry of a list, nil for none.
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
		other, _ := s.AdditionalItems.(*jsonschema.Schema)
		return other
	}
	return nil
}

// defaultOf is the default of a schema, or of one that holds wherever it does; nil for none.
func (w *work) defaultOf(s *jsonschema.Schema, depth int) (*any, error) {
	if err := w.step(1, depth); err != nil {
		return nil, err
	}
	if s.Default != nil {
		return s.Default, nil
	}
	for _, next := range always(s) {
		if d, err := w.defaultOf(next, depth+1); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

// copyOf is a JSON value that shares nothing with the one it is made from.
func copyOf(v any) any {
	switch value := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, inner := range value {
			out[name] = copyOf(inner)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = copyOf(inner)
		}
		return out
	}
	return v
}
