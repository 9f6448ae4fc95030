package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
)

// decoder decodes and checks the arguments of a tool.
type decoder struct{ schema *blueprint.Schema }

// newDecoder panics if the schema, which is part of the program, is invalid.
func newDecoder(schema json.RawMessage) *decoder {
	s, err := blueprint.Compile(schema, run.StdinJSON)
	if err != nil {
		panic(err)
	}
	return &decoder{s}
}

// decode decodes arguments. A null argument counts as absent, no arguments as an empty object.
func (d *decoder) decode(raw json.RawMessage, into any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	doc, _ := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	args, ok := doc.(map[string]any)
	if !ok {
		return errors.New("the arguments must be a JSON object")
	}
	err := d.schema.Validate(args)
	if violations, ok := errors.AsType[*blueprint.Violations](err); ok {
		return errors.New(describe(violations))
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// describe describes the first few violations in one line.
func describe(v *blueprint.Violations) string {
	const most = 3
	var all []string
	for _, violation := range v.List[:min(len(v.List), most)] {
		all = append(all, strings.TrimPrefix(violation.Path, "$.")+": "+violation.Text)
	}
	if n := len(v.List) - len(all) + v.More; n > 0 {
		all = append(all, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(all, "; ")
}

// checkName returns an error if a name or an id is invalid.
func checkName(argument, name string) error {
	if run.ValidName(name) {
		return nil
	}
	what := "name"
	if strings.HasSuffix(argument, "_id") {
		what = "id"
	}
	return fmt.Errorf("%w: %s %s is not a valid %s: use letters, digits, dots, dashes and underscores, starting with a letter or a digit",
		run.ErrBadRequest, argument, quote(name), what)
}
