package blueprint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"acescope/engine/ace"
	"acescope/engine/internal/redact"
)

// Violation is a problem of parameters.
type Violation struct {
	Path   string `json:"path"`
	Text   string `json:"text"`
	tokens []string
}

// Violations are the problems of parameters. More counts those above [MaxViolations].
type Violations struct {
	List   []Violation `json:"violations"`
	More   int         `json:"more,omitempty"`
	schema *Schema     // for hints at the names of parameters; may be nil
}

// Error returns all violations in one line.
func (v *Violations) Error() string {
	var parts []string
	for _, violation := range v.List {
		parts = append(parts, violation.Path+": "+violation.Text)
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

// err returns v sorted, bounded and without secrets, or nil if it is empty.
func (v *Violations) err() error {
	if len(v.List) == 0 {
		return nil
	}
	v.List = v.sorted()
	if n := len(v.List) - MaxViolations; n > 0 {
		v.List = v.List[:MaxViolations]
		v.More = n
	}
	r := redact.New()
	for i := range v.List {
		v.List[i].Text = r.String(v.List[i].Text)
	}
	return v
}

// sorted returns the violations by path, without duplicates.
func (v *Violations) sorted() []Violation {
	slices.SortFunc(v.List, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(v.List, func(a, b Violation) bool {
		return a.Path == b.Path && a.Text == b.Text
	})
}

// check checks a value with the library and adds its violations. The error says why the value
// cannot be checked.
func (v *Violations) check(s *jsonschema.Schema, value any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the value cannot be checked: %v", p)
		}
	}()
	if err := checkCost(s, value); err != nil {
		return err
	}
	if invalid, ok := s.Validate(value).(*jsonschema.ValidationError); ok {
		v.collect(invalid)
	}
	return nil
}

// collect adds the violations of an error of the library.
func (v *Violations) collect(e *jsonschema.ValidationError) {
	add := func(text string, more ...string) {
		tokens := slices.Concat(e.InstanceLocation, more)
		v.List = append(v.List, Violation{pathOf("$", tokens), text, tokens})
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, cause := range e.Causes {
			v.collect(cause)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			add("is missing", name)
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			add("unknown field"+v.hint(name, e.SchemaURL), name)
		}
	case *kind.FalseSchema:
		add("is not allowed")
	default:
		add(v.describe(e))
	}
}

var english = message.NewPrinter(language.English)

// describe returns the library's text for an error, with the first problem of each alternative.
func (v *Violations) describe(e *jsonschema.ValidationError) string {
	const most = 300 // bytes
	var parts []string
	for _, cause := range e.Causes {
		inner := Violations{schema: v.schema}
		inner.collect(cause)
		for _, first := range inner.sorted()[:min(len(inner.List), 1)] {
			parts = append(parts, strings.TrimPrefix(first.Path+" "+first.Text, "$ "))
		}
	}
	text := strings.ReplaceAll(e.ErrorKind.LocalizedString(english), "\n", " ")
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, "; ") + ")"
	}
	return ace.Cut(text, most)
}

// hint suggests a similar name of the schema at a location, or lists its names.
func (v *Violations) hint(name, location string) string {
	const most = 10
	if v.schema == nil || v.schema.parts[location] == nil {
		return ""
	}
	known := slices.Sorted(maps.Keys(v.schema.parts[location].Properties))
	if s := suggestion(name, known); s != "" || len(known) > most {
		return s
	}
	if len(known) == 0 {
		return "; no fields are known"
	}
	return "; known: " + strings.Join(known, ", ")
}

// suggestion returns `; did you mean "x"?`, or "" if no known name is similar.
func suggestion(name string, known []string) string {
	if n := ace.Nearest(name, known); n != "" {
		return "; did you mean " + quote(n) + "?"
	}
	return ""
}
