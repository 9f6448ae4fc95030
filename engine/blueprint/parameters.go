package blueprint

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Parameter is what a schema says of one parameter.
type Parameter struct {
	Name        string          `json:"name"`
	Type        string          `json:"parameter_type"` // "" for any; several with "|" between them
	Required    bool            `json:"required"`       // and has no default
	Default     json.RawMessage `json:"default,omitempty"`
	Description string          `json:"description,omitempty"`
}

// Parameters are those that the schema names, sorted; none where any object will do.
func (s *Schema) Parameters() []Parameter {
	out := []Parameter{}
	if s == nil || s.compiled == nil {
		return out
	}
	all := map[string]*jsonschema.Schema{}
	var required []string
	for todo := []*jsonschema.Schema{s.compiled}; len(todo) > 0; todo = todo[1:] {
		for name, inner := range todo[0].Properties {
			if all[name] == nil {
				all[name] = inner
			}
		}
		required = append(required, todo[0].Required...)
		todo = append(todo, always(todo[0])...)
	}
	for _, name := range sortedNames(all) {
		p := Parameter{Name: name}
		p.describe(all[name], 0)
		p.Required = p.Default == nil && slices.Contains(required, name)
		out = append(out, p)
	}
	return out
}

// describe takes what a schema says, and then what those say that hold with it.
func (p *Parameter) describe(s *jsonschema.Schema, depth int) {
	if depth > maxDepth {
		return
	}
	if p.Type == "" && s.Types != nil {
		p.Type = strings.Join(s.Types.ToStrings(), "|")
	}
	if p.Description == "" {
		p.Description = s.Description
	}
	if p.Default == nil && s.Default != nil {
		p.Default, _ = encode(*s.Default)
	}
	for _, next := range always(s) {
		p.describe(next, depth+1)
	}
}
