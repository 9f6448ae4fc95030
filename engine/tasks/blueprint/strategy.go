package blueprint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/internal/plainjson"
	"acescope/engine/tasks/run"
)

// cannotPass says why a strategy cannot pass a parameter of a name, or returns "".
func cannotPass(s run.Strategy, name string) string {
	if !s.SingleValues() || run.ValidParameter(name) {
		return ""
	}
	return fmt.Sprintf("the strategy %s cannot pass a parameter of this name: "+
		"use 1 to 100 letters, digits, - and _, starting with a letter or a digit", s)
}

// variables holds the names of parameters by their variables.
type variables map[string]string

// conflict adds a name. It returns a problem if an earlier name has the same variable, otherwise "".
func (v variables) conflict(s run.Strategy, name string) string {
	variable := run.EnvName(name)
	other, taken := v[variable]
	v[variable] = name
	if s != run.Env || !taken || other == name {
		return ""
	}
	return fmt.Sprintf("has the same variable %s as %s", variable, quote(other))
}

// checkStrategy adds violations for parameters that a strategy cannot pass.
func (v *Violations) checkStrategy(s run.Strategy, params map[string]any) {
	if !s.SingleValues() {
		return
	}
	taken := variables{}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		path := child("$", name)
		if why := cannotPass(s, name); why != "" {
			v.add(path, why)
			continue
		}
		if why := taken.conflict(s, name); why != "" {
			v.add(path, why)
		}
		items, isList := params[name].([]any)
		if !isList || s == run.Env {
			v.checkArgument(s, path, name, params[name])
			continue
		}
		for i, item := range items {
			v.checkArgument(s, path+"["+strconv.Itoa(i)+"]", name, item)
		}
	}
}

// checkArgument checks a value that is passed as one argument or variable: a string as it is,
// another value as JSON.
func (v *Violations) checkArgument(s run.Strategy, path, name string, value any) {
	text, isString := value.(string)
	if !isString {
		raw, _ := plainjson.Marshal(value) // cannot fail for a value of a parsed document
		text = string(raw)
	}
	if s == run.ArgsSpaced && strings.HasPrefix(text, "-") {
		v.add(path, fmt.Sprintf("begins with a dash, so the strategy %s cannot tell it from a flag; "+
			"the blueprint needs args, stdin_json or file", s))
	}
	if strings.ContainsRune(text, 0) {
		v.add(path, fmt.Sprintf("contains a NUL, which the strategy %s cannot pass", s))
	}
	if most := maxArg - len(run.EnvPrefix) - len(name) - 1; len(text) > most {
		v.add(path, fmt.Sprintf("has %d bytes, and the strategy %s can pass at most %d: "+
			"the blueprint needs stdin_json or file", len(text), s, most))
	}
}
