package blueprint

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"acescope/engine/run"
)

// EnvPrefix begins the name of every variable that is a parameter, so that none takes the
// place of one that means something to the system, such as PATH.
const EnvPrefix = "PARAM_"

// paramName is what a parameter may be called that becomes a flag or a variable.
var paramName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$`)

// EnvName is the variable that a parameter is given as: its name in upper case after
// [EnvPrefix], with _ for -.
func EnvName(param string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(param, "-", "_"))
}

// cannotPass says why a strategy cannot pass a parameter of the name, "" where it can.
func cannotPass(s run.Strategy, name string) string {
	if s != run.Args && s != run.Env || paramName.MatchString(name) {
		return ""
	}
	return fmt.Sprintf("the strategy %s cannot pass a parameter of this name: letters, digits, - and _ only, beginning with a letter or digit, at most 100", s)
}

// sameVariable finds two names that would be one variable; "" where there are none.
func sameVariable(s run.Strategy, names []string) (one, other string) {
	if s != run.Env {
		return "", ""
	}
	seen := map[string]string{}
	slices.Sort(names)
	for _, name := range names {
		as := EnvName(name)
		if before, ok := seen[as]; ok {
			return before, name
		}
		seen[as] = name
	}
	return "", ""
}

// passable finds what a strategy cannot pass of some parameters.
func passable(s run.Strategy, params map[string]any, out *Violations) {
	if s != run.Args && s != run.Env {
		return
	}
	names := slices.Sorted(maps.Keys(params))
	for _, name := range names {
		path := below("$", name)
		if why := cannotPass(s, name); why != "" {
			out.add(path, why)
			continue
		}
		switch v := params[name].(type) {
		case string:
			out.argument(s, path, name, v)
		case []any:
			if s == run.Env {
				out.nested(s, path, name, v)
				break
			}
			for i, item := range v {
				at := path + "[" + strconv.Itoa(i) + "]"
				if text, ok := item.(string); ok {
					out.argument(s, at, name, text)
				} else {
					out.nested(s, at, name, item)
				}
			}
		case map[string]any:
			out.nested(s, path, name, v)
		}
	}
	if one, other := sameVariable(s, names); one != "" {
		out.add(below("$", other), fmt.Sprintf("is the variable %s, as %s is", EnvName(other), quoted(one)))
	}
}

// argument checks a text that is passed as it is.
func (v *Violations) argument(s run.Strategy, path, name, text string) {
	if strings.ContainsRune(text, 0) {
		v.add(path, fmt.Sprintf("holds a NUL, which the strategy %s cannot pass", s))
	}
	v.fits(s, path, name, len(text))
}

// nested checks a value that is passed as JSON.
func (v *Violations) nested(s run.Strategy, path, name string, value any) {
	if raw, err := encode(value); err == nil {
		v.fits(s, path, name, len(raw))
	}
}

func (v *Violations) fits(s run.Strategy, path, name string, size int) {
	if most := maxArg - len(EnvPrefix) - len(name) - 1; size > most {
		v.add(path, fmt.Sprintf("has %d bytes, and the strategy %s passes at most %d: the blueprint needs stdin_json or file", size, s, most))
	}
}
