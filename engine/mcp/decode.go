package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	google "github.com/google/jsonschema-go/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// checker holds a tool's arguments to its schema.
type checker struct {
	schema *jsonschema.Schema
	names  []string // of the arguments, in order
}

// newChecker panics where the schema, which is part of the program, is none.
func newChecker(s *google.Schema) *checker {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tool.json", doc); err != nil {
		panic(err)
	}
	return &checker{c.MustCompile("tool.json"), s.PropertyOrder}
}

// decode reads arguments. An argument that is null counts as one that is not given. What
// stands in a field of type [json.RawMessage] is kept as it was written, so that no number
// in it is changed.
func (c *checker) decode(raw json.RawMessage, into any) error {
	given, err := objectOf(raw)
	if err != nil {
		return err
	}
	for name, v := range given {
		if string(v) == "null" {
			delete(given, name)
		}
	}
	data, err := json.Marshal(given)
	if err != nil {
		return fmt.Errorf("the arguments are no JSON: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("the arguments are no JSON: %w", err)
	}
	var wrong *jsonschema.ValidationError
	if err := c.schema.Validate(doc); errors.As(err, &wrong) {
		return errors.New(c.sentence(wrong))
	} else if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// objectOf are the members of a JSON object; none at all are an empty one.
func objectOf(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]json.RawMessage{}, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		return nil, errors.New("the arguments must be a JSON object")
	}
	return given, nil
}

// maxWrong is how many mistakes are told of at once.
const maxWrong = 3

// sentence says what is wrong with arguments.
func (c *checker) sentence(err *jsonschema.ValidationError) string {
	var all []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) == 0 {
			all = append(all, c.mistake(e))
		}
	}
	walk(err)
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxWrong {
		all = append(all[:maxWrong], fmt.Sprintf("and %d more", len(all)-maxWrong))
	}
	return strings.Join(all, "; ")
}

func (c *checker) mistake(e *jsonschema.ValidationError) string {
	at := cut(strings.Join(e.InstanceLocation, "."))
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("%s must be %s, and is %s", at, article(k.Want...), article(k.Got))
	case *kind.Required:
		return strings.Join(k.Missing, " and ") + " must be given"
	case *kind.AdditionalProperties:
		return fmt.Sprintf("there is no %s; there %s", quoted(at, k.Properties), c.there(at))
	case *kind.Enum:
		return fmt.Sprintf("%s %s is none of %s", at, cut(fmt.Sprintf("%q", fmt.Sprint(k.Got))), words(k.Want))
	case *kind.MaxLength:
		return fmt.Sprintf("%s has %d characters, at most %d are taken", at, k.Got, k.Want)
	case *kind.Minimum:
		return fmt.Sprintf("%s must be at least %s", at, k.Want.RatString())
	case *kind.Maximum:
		return fmt.Sprintf("%s must be at most %s", at, k.Want.RatString())
	}
	return fmt.Sprintf("%s does not fit %s", at, strings.Join(e.ErrorKind.KeywordPath(), "/"))
}

// there says which arguments there are.
func (c *checker) there(at string) string {
	switch {
	case at == "additional_demands":
		return "are hostname, project_dir, executor_type and tags"
	case len(c.names) == 0:
		return "are no arguments"
	case len(c.names) == 1:
		return "is " + c.names[0]
	}
	last := len(c.names) - 1
	return "are " + strings.Join(c.names[:last], ", ") + " and " + c.names[last]
}

func quoted(at string, names []string) string {
	slices.Sort(names)
	var out []string
	for i, n := range names {
		if i == maxWrong {
			break
		}
		if at != "" {
			n = at + "." + n
		}
		out = append(out, cut(fmt.Sprintf("%q", n)))
	}
	return strings.Join(out, ", ")
}

func article(types ...string) string {
	var out []string
	for _, t := range types {
		switch t {
		case "null":
			out = append(out, t)
		case "array":
			out = append(out, "a list")
		case "object", "integer":
			out = append(out, "an "+t)
		default:
			out = append(out, "a "+t)
		}
	}
	return strings.Join(out, " or ")
}

func words(want []any) string {
	var out []string
	for _, w := range want {
		out = append(out, fmt.Sprint(w))
	}
	return strings.Join(out, ", ")
}

// maxQuote is how many characters of what a caller said are said back.
const maxQuote = 120

func cut(s string) string {
	if r := []rune(s); len(r) > maxQuote {
		return string(r[:maxQuote]) + "…"
	}
	return s
}
