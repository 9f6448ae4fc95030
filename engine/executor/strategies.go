package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"acescope/engine/run"
)

// Strategies say how parameters reach a program.
//
//	stdin_json  standard input has the object as JSON, and a line's end.
//	args        true is --name; false and null are left out; a list is repeated, item by item;
//	            a string or a number is --name=value, one argument, so that no value can be
//	            taken for a flag; an object is --name={…} as JSON, and so is what a list holds
//	            but for its strings.
//	env         PARAM_NAME has a string as it is, and other values as JSON; null is left out.
//	            The name is in capitals, with _ for -.
//	file        a file that only the program's user may read has the object as JSON. Its path
//	            stands for {parameters_file} in the command, or is the last argument.
//
// Numbers are given as they were written. With all but stdin_json, standard input is empty.
var strategies = []run.Strategy{run.StdinJSON, run.Args, run.Env, run.File}

func checkStrategy(s run.Strategy) error {
	if s == "" {
		return nil
	}
	for _, known := range strategies {
		if s == known {
			return nil
		}
	}
	return fmt.Errorf("%q is none of stdin_json, args, env and file", clip(string(s)))
}

// Placeholders in a command. They are replaced in each argument by itself.
const (
	placeFile = "{parameters_file}"
	placeDir  = "{blueprint_dir}"
)

// variablePrefix begins the name of every variable that a parameter makes, so that none of
// them is one that a program or its loader heeds.
const variablePrefix = "PARAM_"

// given is what a strategy makes of parameters.
type given struct {
	args  []string // after the command
	env   []string // NAME=value
	stdin []byte   // nil for none
	file  []byte   // the content of the file, nil for none
}

// give makes the parameters what the program is given.
func give(strategy run.Strategy, object json.RawMessage) (g given, err error) {
	list, err := parametersOf(object)
	if err != nil {
		return g, err
	}
	switch strategy {
	case run.Args:
		for _, p := range list {
			args, err := p.args()
			if err != nil {
				return g, err
			}
			g.args = append(g.args, args...)
		}
	case run.Env:
		g.env, err = variables(list)
	case run.File:
		g.file = line(object)
	case run.StdinJSON, "":
		g.stdin = line(object)
	default:
		err = checkStrategy(strategy)
	}
	return g, err
}

func line(object json.RawMessage) []byte { return append(bytes.Clone(compact(object)), '\n') }

// args are the arguments that a parameter becomes.
func (p parameter) args() ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	flag := "--" + p.name
	switch string(p.raw) {
	case "true":
		return []string{flag}, nil
	case "false", "null":
		return nil, nil
	}
	values, ok := p.items()
	if !ok {
		values = []json.RawMessage{p.raw}
	}
	var args []string
	for _, v := range values {
		text, err := p.textOf(compact(v))
		if err != nil {
			return nil, err
		}
		args = append(args, flag+"="+text)
	}
	return args, nil
}

// variables are the variables that parameters become.
func variables(list []parameter) ([]string, error) {
	var env []string
	from := map[string]string{}
	for _, p := range list {
		if err := p.check(); err != nil {
			return nil, err
		}
		name := variablePrefix + strings.ToUpper(strings.ReplaceAll(p.name, "-", "_"))
		if other, twice := from[name]; twice {
			return nil, fmt.Errorf("parameters %q and %q would both be $%s", other, p.name, name)
		}
		from[name] = p.name
		if p.absent() {
			continue
		}
		text, err := p.textOf(p.raw)
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+text)
	}
	return env, nil
}
