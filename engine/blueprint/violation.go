package blueprint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"acescope/engine/redact"
)

// Violation is one thing that is wrong with parameters.
type Violation struct {
	Path   string `json:"path"`
	Text   string `json:"text"`
	tokens []string
}

// Violations are all that is wrong with parameters; it is an error where there are any.
type Violations struct {
	List []Violation `json:"violations"`
	More int         `json:"more,omitempty"`
	doc  *node       // the schema, to know which names it has
}

// Error says all of them in one line.
func (v *Violations) Error() string {
	var parts []string
	for _, one := range v.List {
		parts = append(parts, one.Path+": "+one.Text)
	}
	text := "parameters: " + strings.Join(parts, "; ")
	if v.More > 0 {
		text += fmt.Sprintf("; and %d more", v.More)
	}
	return text
}

func (v *Violations) add(path, text string) {
	v.List = append(v.List, Violation{Path: path, Text: text})
}

// err is the error: sorted, bounded, without what looks like a secret; nil for none.
func (v *Violations) err() error {
	if len(v.List) == 0 {
		return nil
	}
	v.List = v.sorted()
	if n := len(v.List) - MaxViolations; n > 0 {
		v.List, v.More = v.List[:MaxViolations], n
	}
	r := redact.New()
	for i := range v.List {
		v.List[i].Text = r.String(v.List[i].Text)
	}
	return v
}

// sorted are the violations by place, each once.
func (v *Violations) sorted() []Violation {
	slices.SortFunc(v.List, func(a, b Violation) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Text, b.Text)
	})
	return slices.CompactFunc(v.List, func(a, b Violation) bool { return a.Path == b.Path && a.Text == b.Text })
}

// check has the library check a value, and gathers what is wrong with it. The error says
// that it could not be checked at all.
func (v *Violations) check(s *jsonschema.Schema, value any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be checked: %v", p)
		}
	}()
	w := &work{}
	if err := w.check(s, value, 0); err != nil {
		return err
	}
	if wrong, ok := s.Validate(value).(*jsonschema.ValidationError); ok {
		v.gather(wrong, value)
	}
	return nil
}

// gather adds what the library found.
func (v *Violations) gather(e *jsonschema.ValidationError, value any) {
	tokens := e.InstanceLocation
	here := at(value, tokens)
	say := func(format string, args ...any) { v.say(value, tokens, fmt.Sprintf(format, args...)) }
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			v.gather(cause, value)
		}
	case *kind.AnyOf:
		say("fits none of the %d alternatives%s", len(e.Causes), v.alternatives(e.Causes, value))
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			say("fits two alternatives, numbers %d and %d, and only one may fit", k.Subschemas[0]+1, k.Subschemas[1]+1)
		} else {
			say("fits none of the %d alternatives%s", len(e.Causes), v.alternatives(e.Causes, value))
		}
	case *kind.Required:
		for _, name := range k.Missing {
			v.say(value, append(slices.Clone(tokens), name), "is missing")
		}
	case *kind.Dependency:
		v.needed(value, tokens, k.Prop, k.Missing)
	case *kind.DependentRequired:
		v.needed(value, tokens, k.Prop, k.Missing)
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			v.say(value, append(slices.Clone(tokens), name), "there is no such parameter"+meant(name, v.properties(e.SchemaURL)))
		}
	case *kind.PropertyNames:
		text := "its name is not allowed"
		if len(e.Causes) > 0 {
			text += ": it " + wording(e.Causes[0], k.Property)
		}
		v.say(value, append(slices.Clone(tokens), k.Property), text)
	default:
		say("%s", wording(e, here))
	}
}

func (v *Violations) say(value any, tokens []string, text string) {
	v.List = append(v.List, Violation{pathIn(value, "$", tokens), text, tokens})
}

func (v *Violations) needed(value any, tokens []string, prop string, missing []string) {
	for _, name := range missing {
		v.say(value, append(slices.Clone(tokens), name), "is missing: it is needed where "+quoted(prop)+" is given")
	}
}

// alternatives says what is wrong with the first few.
func (v *Violations) alternatives(causes []*jsonschema.ValidationError, value any) string {
	const most = 3
	var parts []string
	for i, c := range causes[:min(len(causes), most)] {
		inner := Violations{doc: v.doc}
		inner.gather(c, value)
		if all := inner.sorted(); len(all) > 0 {
			parts = append(parts, strconv.Itoa(i+1)+": "+all[0].Path+" "+all[0].Text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// properties are the names that a part of the schema knows.
func (v *Violations) properties(location string) (names []string) {
	_, fragment, _ := strings.Cut(location, "#")
	tokens, err := pointer("#" + fragment)
	n := v.doc
	if n == nil || err != nil {
		return nil
	}
	for _, t := range tokens {
		n = n.step(t)
	}
	if n = n.field("properties"); n != nil {
		for _, m := range n.members {
			names = append(names, m.name)
		}
	}
	return names
}

// at is the value that tokens lead to.
func at(v any, tokens []string) any {
	for _, t := range tokens {
		switch value := v.(type) {
		case map[string]any:
			v = value[t]
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(value) {
				return nil
			}
			v = value[i]
		default:
			return nil
		}
	}
	return v
}

// pathIn is the JSON path that tokens lead to in a value.
func pathIn(v any, path string, tokens []string) string {
	for _, t := range tokens {
		if _, list := v.([]any); list {
			path += "[" + t + "]"
		} else {
			path = below(path, t)
		}
		v = at(v, []string{t})
	}
	return path
}
