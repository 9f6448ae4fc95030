package mcp

import (
	"github.com/google/jsonschema-go/jsonschema"

	"acescope/engine/run"
)

// property is one argument of a tool.
type property struct {
	name     string
	schema   *jsonschema.Schema
	required bool
}

// takes is the schema of a tool's arguments.
func takes(properties ...property) *jsonschema.Schema {
	s := object("", properties...)
	for _, p := range properties {
		if p.required {
			s.Required = append(s.Required, p.name)
		}
	}
	return s
}

func object(description string, properties ...property) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Description: description, Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for _, p := range properties {
		s.Properties[p.name] = p.schema
		s.PropertyOrder = append(s.PropertyOrder, p.name)
	}
	return s
}

func text(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description}
}

func oneOf[T ~string](description string, words ...T) *jsonschema.Schema {
	s := text(description)
	for _, w := range words {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

func must(name string, s *jsonschema.Schema) property {
	return property{name: name, schema: s, required: true}
}

func may(name string, s *jsonschema.Schema) property { return property{name: name, schema: s} }

// prompt is the schema of a prompt.
func prompt(description string) *jsonschema.Schema {
	s := text(description)
	most := run.MaxPrompt
	s.MaxLength = &most
	return s
}

func modes(name string) *jsonschema.Schema {
	if name == "mode" {
		return oneOf("Another name of execution_mode.", run.Sync, run.AsyncPoll, run.AsyncCallback)
	}
	return oneOf("sync (the default) waits for the result, for 600 seconds at the longest. async_poll answers at once; ask get_agent_session_status and "+
		"get_agent_session_result later. async_callback answers at once too, and the session that started the run is told of its end by a message.",
		run.Sync, run.AsyncPoll, run.AsyncCallback)
}

// id is the schema of what names a session or a run.
func id() *jsonschema.Schema {
	return text("The session's id (ses_…). A run's id is taken too; a session's stands for its newest run.")
}

// demands is the schema of what a run asks of its runner.
func demands() *jsonschema.Schema {
	tag := text("")
	return object("What the runner must be besides what the blueprint demands. It is added; what contradicts the blueprint is refused.",
		may("hostname", text("The runner's host name, exactly.")),
		may("project_dir", text("The runner's project directory, exactly.")),
		may("executor_type", text("The kind of executor: deterministic, claude-code, codex, gemini, opencode, or the name of one that was added.")),
		may("tags", &jsonschema.Schema{Type: "array", Items: tag, Description: "Tags that the runner must have, all of them."}))
}

func count(description string, most float64) *jsonschema.Schema {
	least := 1.0
	return &jsonschema.Schema{Type: "integer", Minimum: &least, Maximum: &most, Description: description}
}
