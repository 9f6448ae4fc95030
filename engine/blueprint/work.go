package blueprint

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of what filling in and checking may cost, whatever the schema is: a step is one
// value met by one schema, and so much deep they may be within each other.
const (
	maxWork  = 2_000_000
	maxStack = 2_000
)

// errTooMuch says that a bound was met.
var errTooMuch = errors.New("checking this would take too long: the schema tries too many ways for it")

// work counts steps.
type work struct{ steps int }

func (w *work) step(cost, depth int) error {
	if w.steps += cost; w.steps > maxWork || depth > maxStack {
		return errTooMuch
	}
	return nil
}

// check counts what the library will do at the most to check a value, so that it is not even
// begun where that is too much.
func (w *work) check(s *jsonschema.Schema, v any, depth int) error {
	cost := 1 + len(s.Required) + len(s.Dependencies) + len(s.DependentRequired) + len(s.DependentSchemas)
	if s.Enum != nil {
		cost += len(s.Enum.Values)
	}
	if text, ok := v.(string); ok {
		cost += len(text) >> 6
	}
	if err := w.step(cost, depth); err != nil {
		return err
	}
	for _, next := range inPlace(s) {
		if err := w.check(next, v, depth+1); err != nil {
			return err
		}
	}
	switch value := v.(type) {
	case map[string]any:
		return w.checkObject(s, value, depth)
	case []any:
		return w.checkList(s, value, depth)
	}
	return nil
}

func (w *work) checkObject(s *jsonschema.Schema, obj map[string]any, depth int) error {
	patterns := byPattern(s)
	for name, value := range obj {
		if err := w.step(1+len(patterns)*(1+len(name)>>6), depth); err != nil {
			return err
		}
		next := otherwise(s, patterns, name)
		if inner := s.Properties[name]; inner != nil {
			next = append(next, inner)
		}
		if s.UnevaluatedProperties != nil {
			next = append(next, s.UnevaluatedProperties)
		}
		if s.PropertyNames != nil {
			if err := w.check(s.PropertyNames, name, depth+1); err != nil {
				return err
			}
		}
		for _, inner := range next {
			if err := w.check(inner, value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *work) checkList(s *jsonschema.Schema, list []any, depth int) error {
	if err := w.step(len(list), depth); err != nil {
		return err
	}
	for i, value := range list {
		for _, inner := range present([]*jsonschema.Schema{itemSchema(s, i), s.Contains, s.UnevaluatedItems}) {
			if err := w.check(inner, value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
