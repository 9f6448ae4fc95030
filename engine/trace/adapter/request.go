package adapter

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/ace"
	"acescope/engine/trace"
)

// Request is all that a history has of a request to a model, with whole texts.
type Request struct {
	System   string
	Messages []trace.Message
	Tools    []ace.ModelTool // offered
}

// RequestAt returns the request to a model that an event schedules, or false if the event is of another kind
// or no adapter fits its shape.
func RequestAt(e *historypb.HistoryEvent) (r Request, ok bool) {
	scheduled := e.GetActivityTaskScheduledEventAttributes()
	s := source{activity: scheduled.GetActivityType().GetName(), inputs: scheduled.GetInput().GetPayloads(),
		recorded: true}
	a, _ := s.find()
	if scheduled == nil || a == nil || a.Operation != string(trace.Chat) {
		return r, false
	}
	r.System = joinText(messages(s.get(a.System)))
	for _, m := range messages(s.get(a.Messages)) {
		if m.Role == "system" {
			r.System = strings.TrimSpace(r.System + "\n" + m.Text)
		} else {
			r.Messages = append(r.Messages, m)
		}
	}
	for _, path := range a.Tools {
		list, name, _ := strings.Cut(path, ".#.")
		for _, t := range s.get(Paths{list}).Array() {
			if n := t.Get(name).String(); n != "" {
				r.Tools = append(r.Tools, ace.ModelTool{Name: n, Description: text(t, toolTexts),
					Parameters: schemaOf(t)})
			}
		}
	}
	return r, true
}

// Names under which frameworks write the description and the JSON Schema of a tool.
var (
	toolTexts   = []string{"description", "tool_description", "toolDescription", "function.description"}
	toolSchemas = []string{"params_json_schema", "parameters_json_schema", "parametersJsonSchema",
		"input_json_schema", "inputJsonSchema", "inputSchema.json", "inputSchema", "input_schema",
		"function.parameters", "parameters"}
)

// schemaOf returns the JSON Schema of the arguments of a tool, or nil.
func schemaOf(tool gjson.Result) json.RawMessage {
	for _, name := range toolSchemas {
		if s := tool.Get(name); s.IsObject() {
			return json.RawMessage(s.Raw)
		}
	}
	return nil
}
