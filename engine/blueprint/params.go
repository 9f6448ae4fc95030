package blueprint

import (
	"encoding/json"
	"fmt"

	"acescope/engine/run"
)

// Check fills in the defaults of parameters and checks them. What is returned is what a run
// records and a program gets: one object with sorted names, its numbers as they were written.
// Nil parameters are missing ones, which {} is not. The error is [*Violations].
func (s *Schema) Check(params json.RawMessage) (json.RawMessage, error) {
	v := &Violations{doc: s.doc}
	switch {
	case len(params) == 0:
		v.add("$", "parameters are needed; where there are none to give, give {}")
		return nil, v
	case len(params) > run.MaxParams:
		v.add("$", fmt.Sprintf("has %d bytes; at most %d: give the path of a file instead", len(params), run.MaxParams))
		return nil, v
	}
	obj, err := object(params)
	if err != nil {
		return nil, err
	}
	if s.compiled != nil {
		if err := v.apply(s, obj); err != nil {
			v.add("$", err.Error())
			return nil, v.err()
		}
	}
	passable(s.strategy, obj, v)
	if err := v.err(); err != nil {
		return nil, err
	}
	filled, err := encode(obj)
	if err == nil && len(filled) > run.MaxParams {
		err = fmt.Errorf("has %d bytes with its defaults; at most %d", len(filled), run.MaxParams)
	}
	if err != nil {
		v.add("$", err.Error())
		return nil, v
	}
	return filled, nil
}

// apply fills in defaults and checks by the schema.
func (v *Violations) apply(s *Schema, obj map[string]any) error {
	w := &work{}
	if err := w.fill(s.compiled, obj, 0); err != nil {
		return err
	}
	return v.check(s.compiled, obj)
}

// object reads parameters.
func object(params json.RawMessage) (map[string]any, error) {
	d := &document{name: "parameters", data: params}
	tree := d.parse()
	if tree == nil {
		return nil, &d.Problems
	}
	obj, ok := tree.plain().(map[string]any)
	if !ok {
		d.problem(tree.at, "$", "expected an object, found %s", tree.kind.words())
		return nil, &d.Problems
	}
	return obj, nil
}
