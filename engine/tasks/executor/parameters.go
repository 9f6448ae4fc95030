package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"acescope/engine/tasks/run"
)

func checkStrategy(s run.Strategy) error {
	if slices.Contains([]run.Strategy{"", run.StdinJSON, run.Args, run.Env, run.File}, s) {
		return nil
	}
	return fmt.Errorf("%q must be one of stdin_json, args, env and file", short(string(s)))
}

// passed are parameters in the form of a strategy.
type passed struct {
	args  []string // after the command
	env   []string // NAME=value
	stdin []byte   // or nil
	file  []byte   // content of the file, or nil
}

// passParameters returns parameters in the form of a strategy:
//
//	stdin_json  Standard input is the object as JSON and a newline.
//	args        true is --name; false and null are omitted; a list repeats the flag for each
//	            item; other values are --name=value, so that no value can be a flag. Objects,
//	            and all items of a list except strings, are JSON.
//	env         PARAM_NAME is a string as it is, or another value as JSON; null is omitted.
//	            The name is in upper case, with _ for -.
//	file        A private file contains the object as JSON. Its path replaces
//	            {parameters_file} in the command, or is the last argument.
//
// Numbers are passed as they are written. With all but stdin_json, standard input is empty.
func passParameters(strategy run.Strategy, object json.RawMessage) (p passed, err error) {
	list, err := parseParameters(object)
	if err != nil {
		return p, err
	}
	switch strategy {
	case run.Args:
		for _, param := range list {
			args, err := param.args()
			if err != nil {
				return p, err
			}
			p.args = append(p.args, args...)
		}
	case run.Env:
		p.env, err = variables(list)
	case run.File:
		p.file = append(compact(object), '\n')
	case run.StdinJSON, "":
		p.stdin = append(compact(object), '\n')
	default:
		err = checkStrategy(strategy)
	}
	return p, err
}

// parameter is a parameter of a program.
type parameter struct {
	name string
	raw  json.RawMessage // compact
}

// parseParameters parses an object into its members, in order, with numbers as written.
func parseParameters(object json.RawMessage) ([]parameter, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the parameters are not a JSON object")
	}
	var list []parameter
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("the parameters are not JSON: %s", jsonError(err))
		}
		name, _ := t.(string)
		if seen[name] {
			return nil, fmt.Errorf("parameter %q occurs twice", short(name))
		}
		seen[name] = true
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("parameter %q is not JSON: %s", short(name), jsonError(err))
		}
		list = append(list, parameter{name, compact(raw)})
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("the parameters are not JSON: %s", jsonError(err))
	}
	if d.More() {
		return nil, errors.New("the parameters are followed by other text")
	}
	return list, nil
}

// compact returns a copy of JSON without white space.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return bytes.Clone(raw)
	}
	return b.Bytes()
}

// checkName returns an error if the parameter cannot be a flag or a variable.
func (p parameter) checkName() error {
	if !run.ValidParameter(p.name) {
		return fmt.Errorf("parameter %q: the name of a flag or a variable must have 1 to 100 letters, digits, - and _, "+
			"and start with a letter or a digit", short(p.name))
	}
	return nil
}

// text returns a string value as it is, and another value as JSON. Arguments and variables
// cannot contain a NUL.
func (p parameter) text(raw json.RawMessage) (string, error) {
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", fmt.Errorf("parameter %q: %s", short(p.name), jsonError(err))
		}
	}
	if strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("parameter %q contains a NUL, which only the strategies stdin_json and file can pass", short(p.name))
	}
	return text, nil
}

// args returns the parameter as arguments.
func (p parameter) args() ([]string, error) {
	if err := p.checkName(); err != nil {
		return nil, err
	}
	flag := "--" + p.name
	switch string(p.raw) {
	case "true":
		return []string{flag}, nil
	case "false", "null":
		return nil, nil
	}
	var values []json.RawMessage
	if p.raw[0] != '[' || json.Unmarshal(p.raw, &values) != nil {
		values = []json.RawMessage{p.raw}
	}
	var args []string
	for _, v := range values {
		text, err := p.text(compact(v))
		if err != nil {
			return nil, err
		}
		args = append(args, flag+"="+text)
	}
	return args, nil
}

// variables returns parameters as variables.
func variables(list []parameter) ([]string, error) {
	var env []string
	names := map[string]string{} // of the parameters, by variable
	for _, p := range list {
		if err := p.checkName(); err != nil {
			return nil, err
		}
		variable := run.EnvName(p.name)
		if other, ok := names[variable]; ok {
			return nil, fmt.Errorf("parameters %q and %q would both be $%s", other, p.name, variable)
		}
		names[variable] = p.name
		if string(p.raw) == "null" {
			continue
		}
		text, err := p.text(p.raw)
		if err != nil {
			return nil, err
		}
		env = append(env, variable+"="+text)
	}
	return env, nil
}
