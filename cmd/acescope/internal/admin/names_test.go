package admin

import (
	"reflect"
	"slices"
	"testing"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	sourceruns "acescope/sources/runs"
)

// TestTypeNames checks that no two commands give different names to lines of the same Go type. A command may
// write fewer of a type's names: run writes tasks only, list writes all types of runs.
func TestTypeNames(t *testing.T) {
	names := map[reflect.Type]map[string][]string{} // by Go type and command
	for _, o := range Outputs {
		for _, l := range o.lines {
			if names[l.of] == nil {
				names[l.of] = map[string][]string{}
			}
			names[l.of][o.Command] = append(names[l.of][o.Command], l.name)
		}
	}
	for of, commands := range names {
		for a, inA := range commands {
			for b, inB := range commands {
				if a < b && !within(inA, inB) && !within(inB, inA) {
					t.Errorf("%s is %q in %s and %q in %s", of, inA, a, inB, b)
				}
			}
		}
	}
}

func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// TestRunNames checks that the names of the types of runs stand for runs only.
func TestRunNames(t *testing.T) {
	lines := []reflect.Type{reflect.TypeFor[cli.RunLine](), reflect.TypeFor[runs.ShowLine](),
		reflect.TypeFor[agents.SessionLine]()}
	names := append(sourceruns.RunTypes(), sourceruns.OtherType)
	for _, o := range Outputs {
		for _, l := range o.lines {
			if slices.Contains(names, l.name) && !slices.Contains(lines, l.of) {
				t.Errorf("%s: a line named %q is a %s, not a run", o.Command, l.name, l.of)
			}
		}
	}
}
