package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
)

// passed are parameters in the form of a strategy.
type passed struct {
	args  []string // after the command
	env   []string // NAME=value
	stdin []byte   // or nil
	file  []byte   // content of the file, or nil
}

// passParameters checks parameters by the schema and the strategy of a blueprint, since any client may
// have sent them, and returns them in the form of the strategy:
//
//	stdin_json  Standard input is the object as JSON and a newline.
//	args        true is --name; false and null are omitted; a list repeats the flag for each
//	            item; other values are --name=value, so that no value can be a flag. Objects,
//	            and all items of a list except strings, are JSON.
//	args_spaced As args, but --name and the value are two arguments. A value that begins with a
//	            dash is refused.
//	env         PARAM_NAME is a string as it is, or another value as JSON; null is omitted.
//	            The name is in upper case, with _ for -.
//	file        A private file contains the object as JSON. Its path replaces
//	            {parameters_file} in the command, or is the last argument.
//
// Numbers are passed as they are written. With all but stdin_json, standard input is empty.
func passParameters(b run.Blueprint, object json.RawMessage) (p passed, err error) {
	if err := checkParameters(b, object); err != nil {
		return p, err
	}
	switch b.Strategy {
	case run.Args, run.ArgsSpaced:
		gjson.ParseBytes(object).ForEach(func(name, value gjson.Result) bool {
			p.args = append(p.args, arguments(b.Strategy, "--"+name.Str, value)...)
			return true
		})
	case run.Env:
		gjson.ParseBytes(object).ForEach(func(name, value gjson.Result) bool {
			if value.Type != gjson.Null {
				p.env = append(p.env, run.EnvName(name.Str)+"="+text(value))
			}
			return true
		})
	case run.File:
		p.file = append(compact(object), '\n')
	default:
		p.stdin = append(compact(object), '\n')
	}
	return p, nil
}

func checkParameters(b run.Blueprint, object json.RawMessage) error {
	if b.Strategy != "" && !slices.Contains(run.Strategies(), b.Strategy) {
		return fmt.Errorf("%q must be one of %v", short(string(b.Strategy)), run.Strategies())
	}
	schema, err := blueprint.Compile(b.Schema, b.Strategy)
	if err == nil {
		_, err = schema.Check(object)
	}
	return err
}

// arguments returns the value of a parameter as arguments.
func arguments(s run.Strategy, flag string, value gjson.Result) (args []string) {
	add := func(value gjson.Result) {
		if s == run.ArgsSpaced {
			args = append(args, flag, text(value))
		} else {
			args = append(args, flag+"="+text(value))
		}
	}
	switch {
	case value.Type == gjson.True:
		return []string{flag}
	case value.Type == gjson.False || value.Type == gjson.Null:
		return nil
	case value.IsArray():
		for _, item := range value.Array() {
			add(item)
		}
	default:
		add(value)
	}
	return args
}

// text returns a string as it is, and another value as JSON.
func text(value gjson.Result) string {
	if value.Type == gjson.String {
		return value.Str
	}
	return string(compact([]byte(value.Raw)))
}

// compact returns a copy of JSON without white space.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return bytes.Clone(raw)
	}
	return b.Bytes()
}
