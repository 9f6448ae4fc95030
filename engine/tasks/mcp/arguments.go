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

	"acescope/engine/tasks/run"
)

// property is an argument of a tool.
type property struct {
	name     string
	schema   *google.Schema
	required bool
}

func required(name string, s *google.Schema) property { return property{name, s, true} }
func optional(name string, s *google.Schema) property { return property{name, s, false} }

// objectSchema returns the schema of an object without other properties.
func objectSchema(description string, properties ...property) *google.Schema {
	s := &google.Schema{Type: "object", Description: description, Properties: map[string]*google.Schema{},
		AdditionalProperties: &google.Schema{Not: &google.Schema{}}}
	for _, p := range properties {
		s.Properties[p.name] = p.schema
		s.PropertyOrder = append(s.PropertyOrder, p.name)
		if p.required {
			s.Required = append(s.Required, p.name)
		}
	}
	return s
}

func textSchema(description string) *google.Schema {
	return &google.Schema{Type: "string", Description: description}
}

func enumSchema[T ~string](description string, values ...T) *google.Schema {
	s := textSchema(description)
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

func integerSchema(description string, least, most float64) *google.Schema {
	return &google.Schema{Type: "integer", Minimum: &least, Maximum: &most, Description: description}
}

func promptSchema(description string) *google.Schema {
	s := textSchema(description)
	most := run.MaxPrompt
	s.MaxLength = &most
	return s
}

// modeProperties are the execution mode and its other name.
func modeProperties() []property {
	return []property{
		optional("execution_mode", enumSchema("sync (the default) waits for the result, for up to 600 seconds. "+
			"async_poll returns immediately; call get_agent_session_status and get_agent_session_result later. "+
			"async_callback returns immediately too; the session that started the run gets a message when the run ends.",
			run.Sync, run.AsyncPoll, run.AsyncCallback)),
		optional("mode", enumSchema("Another name of execution_mode.", run.Sync, run.AsyncPoll, run.AsyncCallback)),
	}
}

func idProperty() property {
	return required("session_id",
		textSchema("The session's id (ses_…), which stands for its newest run, or the id of a run."))
}

func requirementsSchema() *google.Schema {
	return objectSchema("Requirements for the runner, in addition to those of the blueprint. Contradictions are refused.",
		optional("hostname", textSchema("The runner's host name, exactly.")),
		optional("project_dir", textSchema("The runner's project directory, exactly.")),
		optional("executor_type", textSchema("The executor type: deterministic, claude-code, codex, gemini, opencode, "+
			"or the name of a custom executor.")),
		optional("tags", &google.Schema{Type: "array", Items: textSchema(""), Description: "Tags that the runner must have, all of them."}))
}

// decoder decodes and checks the arguments of a tool.
type decoder struct {
	schema *jsonschema.Schema
	names  []string // of the arguments, in order
}

// newDecoder panics if the schema, which is part of the program, is invalid.
func newDecoder(s *google.Schema) *decoder {
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
	return &decoder{c.MustCompile("tool.json"), s.PropertyOrder}
}

// decode decodes arguments. A null argument counts as absent, no arguments as an empty object.
// A field of type [json.RawMessage] keeps numbers as they are written.
func (d *decoder) decode(raw json.RawMessage, into any) error {
	args := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &args); err != nil || args == nil {
			return errors.New("the arguments must be a JSON object")
		}
	}
	for name, v := range args {
		if string(v) == "null" {
			delete(args, name)
		}
	}
	data, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
	err = d.schema.Validate(doc)
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return errors.New(d.describeAll(invalid))
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// maxMistakes bounds the mistakes in an error.
const maxMistakes = 3

func (d *decoder) describeAll(err *jsonschema.ValidationError) string {
	var all []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) == 0 {
			all = append(all, d.describe(e))
		}
	}
	walk(err)
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) > maxMistakes {
		all = append(all[:maxMistakes], fmt.Sprintf("and %d more", len(all)-maxMistakes))
	}
	return strings.Join(all, "; ")
}

func (d *decoder) describe(e *jsonschema.ValidationError) string {
	at := truncate(strings.Join(e.InstanceLocation, "."), maxQuote)
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("%s must be %s, but is %s", at, typeNames(k.Want), typeNames([]string{k.Got}))
	case *kind.Required:
		return strings.Join(k.Missing, " and ") + " is required"
	case *kind.AdditionalProperties:
		return "unknown argument " + quoteNames(at, k.Properties) + "; " + d.knownArguments(at)
	case *kind.Enum:
		var allowed []string
		for _, v := range k.Want {
			allowed = append(allowed, fmt.Sprint(v))
		}
		return fmt.Sprintf("%s %s must be one of %s", at, quote(fmt.Sprint(k.Got)), strings.Join(allowed, ", "))
	case *kind.MaxLength:
		return fmt.Sprintf("%s has %d characters, at most %d are allowed", at, k.Got, k.Want)
	case *kind.Minimum:
		return fmt.Sprintf("%s must be at least %s", at, k.Want.RatString())
	case *kind.Maximum:
		return fmt.Sprintf("%s must be at most %s", at, k.Want.RatString())
	}
	return fmt.Sprintf("%s does not match %s", at, strings.Join(e.ErrorKind.KeywordPath(), "/"))
}

func (d *decoder) knownArguments(at string) string {
	names := d.names
	if at == "additional_demands" {
		names = requirementsDecoder.names
	}
	if len(names) == 0 {
		return "the tool takes no arguments"
	}
	return "known: " + strings.Join(names, ", ")
}

// quoteNames quotes the paths of the first few properties of an object.
func quoteNames(at string, names []string) string {
	slices.Sort(names)
	var out []string
	for _, n := range names[:min(len(names), maxMistakes)] {
		if at != "" {
			n = at + "." + n
		}
		out = append(out, quote(n))
	}
	return strings.Join(out, ", ")
}

func typeNames(types []string) string {
	var out []string
	for _, t := range types {
		switch t {
		case "null":
			out = append(out, t)
		case "array", "object", "integer":
			out = append(out, "an "+t)
		default:
			out = append(out, "a "+t)
		}
	}
	return strings.Join(out, " or ")
}

// checkName returns an error if a name or an id is invalid.
func checkName(argument, name string) error {
	if run.ValidName(name) {
		return nil
	}
	what := "name"
	if strings.HasSuffix(argument, "_id") {
		what = "id"
	}
	return fmt.Errorf("%w: %s %s is not a valid %s: use letters, digits, dots, dashes and underscores, starting with a letter or a digit",
		run.ErrBadRequest, argument, quote(name), what)
}
