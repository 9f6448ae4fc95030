package blueprint

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"acescope/engine/run"
)

// graph checks a compiled schema: what follows from its references.
type graph struct {
	doc  *document
	root *node
	path string
}

// where is the place of a part of the schema.
func (g graph) where(s *jsonschema.Schema, more ...string) (offset int, path string) {
	_, fragment, _ := strings.Cut(s.Location, "#")
	tokens, err := pointer("#" + fragment)
	if err != nil {
		return g.root.at, g.path
	}
	tokens = append(tokens, more...)
	n := g.root
	for _, t := range tokens {
		if inner := n.step(t); inner != nil {
			n = inner
		}
	}
	return n.at, pathOf(g.root, g.path, tokens)
}

// inPlace are the schemas that a value is checked by beside this one.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat([]*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else}, s.AllOf, s.AnyOf, s.OneOf)
	for _, name := range sortedNames(s.Dependencies) {
		if inner, ok := s.Dependencies[name].(*jsonschema.Schema); ok {
			out = append(out, inner)
		}
	}
	for _, name := range sortedNames(s.DependentSchemas) {
		out = append(out, s.DependentSchemas[name])
	}
	return present(out)
}

// inside are the schemas that the parts of a value are checked by.
func inside(s *jsonschema.Schema) []*jsonschema.Schema {
	out := []*jsonschema.Schema{s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema}
	for _, name := range sortedNames(s.Properties) {
		out = append(out, s.Properties[name])
	}
	for _, p := range byPattern(s) {
		out = append(out, p.schema)
	}
	for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		switch inner := v.(type) {
		case *jsonschema.Schema:
			out = append(out, inner)
		case []*jsonschema.Schema:
			out = append(out, inner...)
		}
	}
	return present(append(out, s.PrefixItems...))
}

func present(all []*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(all, func(s *jsonschema.Schema) bool { return s == nil })
}

// patterned is the schema of the fields whose names match.
type patterned struct {
	re     jsonschema.Regexp
	schema *jsonschema.Schema
}

// byPattern are those of a schema in the order of their patterns.
func byPattern(s *jsonschema.Schema) (out []patterned) {
	for re, inner := range s.PatternProperties {
		out = append(out, patterned{re, inner})
	}
	slices.SortFunc(out, func(a, b patterned) int { return strings.Compare(a.re.String(), b.re.String()) })
	return out
}

// reachable are all parts of a schema, each once.
func reachable(root *jsonschema.Schema) (out []*jsonschema.Schema) {
	seen := map[*jsonschema.Schema]bool{root: true}
	out = append(out, root)
	for i := 0; i < len(out); i++ {
		for _, next := range slices.Concat(inPlace(out[i]), inside(out[i])) {
			if !seen[next] {
				seen[next] = true
				out = append(out, next)
			}
		}
	}
	return out
}

// loops refuses references that come back to where they began without going into the value:
// checking any value would never end.
func (g graph) loops(root *jsonschema.Schema) {
	const under, done = 1, 2
	state := map[*jsonschema.Schema]int{}
	type frame struct {
		s    *jsonschema.Schema
		next []*jsonschema.Schema
	}
	for _, from := range reachable(root) {
		if state[from] != 0 {
			continue
		}
		state[from] = under
		for stack := []frame{{from, inPlace(from)}}; len(stack) > 0; {
			top := &stack[len(stack)-1]
			if len(top.next) == 0 {
				state[top.s] = done
				stack = stack[:len(stack)-1]
				continue
			}
			next := top.next[0]
			top.next = top.next[1:]
			switch state[next] {
			case under:
				at, path := g.where(top.s)
				g.doc.problem(at, path, "refers in a circle: it comes back to itself without going into the value")
				return
			case 0:
				state[next] = under
				stack = append(stack, frame{next, inPlace(next)})
			}
		}
	}
}

// object demands that parameters can be an object.
func (g graph) object(root *jsonschema.Schema) {
	if root.Types == nil || slices.Contains(root.Types.ToStrings(), "object") {
		return
	}
	at, path := g.where(root, "type")
	g.doc.problem(at, path, "parameters are an object, and this does not allow one")
}

// names refuses parameters that the strategy cannot pass.
func (g graph) names(root *jsonschema.Schema, strategy run.Strategy) {
	var all []string
	seen := map[*jsonschema.Schema]bool{root: true}
	for todo := []*jsonschema.Schema{root}; len(todo) > 0; todo = todo[1:] {
		s := todo[0]
		for _, name := range sortedNames(s.Properties) {
			if why := cannotPass(strategy, name); why != "" {
				at, path := g.where(s, "properties", name)
				g.doc.problem(at, path, "%s", why)
			} else if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
		for _, next := range inPlace(s) {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	if one, other := sameVariable(strategy, all); one != "" {
		at, path := g.where(root, "properties", other)
		g.doc.problem(at, path, "is the variable %s, as %s is", EnvName(other), quoted(one))
	}
}

// defaults demands that every default, filled in itself, is what its schema allows.
func (g graph) defaults(s *Schema) {
	for _, part := range reachable(s.compiled) {
		if part.Default == nil {
			continue
		}
		at, path := g.where(part, "default")
		value := copyOf(*part.Default)
		if err := new(work).fill(part, value, 0); err != nil {
			g.doc.problem(at, path, "the defaults within it never end, or are too many")
			continue
		}
		violations := Violations{doc: g.root}
		if err := violations.check(part, value); err != nil {
			g.doc.problem(at, path, "%v", err)
			continue
		}
		for _, v := range violations.sorted() {
			g.doc.problem(at, pathIn(value, path, v.tokens), "%s", v.Text)
		}
	}
}
