package process

import (
	"os"
	"slices"
	"strings"
)

// Environ makes the environment of a program: of this process's variables those that are
// named (a name that ends with * stands for all that begin so), without those in unset, and
// then the additions, as NAME=value. Each name stands in it once, in the order of the names.
func Environ(names, unset, additions []string) []string {
	return environ(os.Environ(), names, unset, additions)
}

func environ(all, names, unset, additions []string) []string {
	vars := map[string]string{}
	for _, v := range all {
		if name, _, ok := strings.Cut(v, "="); ok && name != "" && named(names, name) && !slices.Contains(unset, name) {
			vars[name] = v
		}
	}
	for _, v := range additions {
		if name, _, ok := strings.Cut(v, "="); ok && name != "" {
			vars[name] = v
		}
	}
	out := make([]string, 0, len(vars))
	for _, v := range vars {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

// named tells whether the name is one of the names.
func named(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		if begin, all := strings.CutSuffix(n, "*"); all {
			return strings.HasPrefix(name, begin)
		}
		return n == name
	})
}

// value is that of a variable; the last one counts.
func value(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if rest, ok := strings.CutPrefix(v, name+"="); ok {
			return rest
		}
	}
	return ""
}
