package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
)

// ParseParams returns parameters in the form NAME=VALUE or NAME:=JSON as an object. The blueprint's schema
// decides the type of a VALUE: "2" is a number if the schema allows a number. Without a type in the schema a
// VALUE is a text. A repeated name adds to a list.
func ParseParams(params []string, schema json.RawMessage) (json.RawMessage, error) {
	parameters := map[string]blueprint.Parameter{}
	// an invalid schema is reported when the run starts
	if s, err := blueprint.Compile(schema, run.StdinJSON); err == nil {
		for _, p := range s.Parameters() {
			parameters[p.Name] = p
		}
	}
	values := map[string]any{} // json.RawMessage, or []json.RawMessage for a list that is given by its items
	for _, param := range params {
		name, text, isJSON, err := splitParam(param)
		if err != nil {
			return nil, err
		}
		if err := addParam(values, parameters[name], name, text, isJSON); err != nil {
			return nil, cli.UsageError("--param %s: %w", cli.SafeText(param), err)
		}
	}
	return json.Marshal(values)
}

// splitParam splits NAME=TEXT and NAME:=JSON.
func splitParam(param string) (name, text string, isJSON bool, err error) {
	name, text, ok := strings.Cut(param, "=")
	name, isJSON = strings.CutSuffix(name, ":")
	if !ok || name == "" {
		err = cli.UsageError("--param %s: write NAME=VALUE or NAME:=JSON", cli.SafeText(param))
	}
	return name, text, isJSON, err
}

// addParam adds the value of a parameter, or an item of it.
func addParam(values map[string]any, p blueprint.Parameter, name, text string, isJSON bool) (err error) {
	before, repeated := values[name]
	items, isItems := before.([]json.RawMessage)
	isList := slices.Contains(strings.Split(p.Type, "|"), "array") && !isText(p.Type)
	var value json.RawMessage
	switch {
	case isJSON && !json.Valid([]byte(text)):
		return fmt.Errorf("%s is not JSON; quote a text, or write NAME=TEXT", name)
	case isJSON:
		value = json.RawMessage(text)
	case isList && (!repeated || isItems):
		value, err = valueOf(text, p.Items)
		values[name] = append(items, value)
		return err
	case !isList:
		value, err = valueOf(text, p.Type)
	}
	switch {
	case err != nil:
		return err
	case isItems, repeated && isList:
		return fmt.Errorf("%s is given both by its items and as a whole list", name)
	case repeated:
		return fmt.Errorf("%s is repeated, but its schema is not a list", name)
	}
	values[name] = value
	return nil
}

// isText reports whether any text is a value of the types.
func isText(types string) bool {
	return types == "" || slices.Contains(strings.Split(types, "|"), "string")
}

// valueOf returns the value of one of the types that a text stands for.
func valueOf(text, types string) (json.RawMessage, error) {
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		kind := blueprint.TypeOf(value)
		allowed := strings.Split(types, "|")
		// A text is a value as it is written, without quotes.
		if kind != "string" && slices.Contains(allowed, kind) ||
			kind == "number" && slices.Contains(allowed, "integer") {
			return json.RawMessage(strings.TrimSpace(text)), nil
		}
	}
	if isText(types) {
		return json.Marshal(text)
	}
	return nil, errors.New(cli.SafeText(fmt.Sprintf("%q does not match the schema, which requires: %s", text,
		strings.ReplaceAll(types, "|", " or "))))
}
