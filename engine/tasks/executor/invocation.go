package executor

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/kballard/go-shellquote"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tidwall/gjson"

	"acescope/engine/internal/plainjson"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
)

// Mode is the kind of an invocation.
type Mode string

// Modes: start or resume an agent's session, or execute a program.
const (
	Start   Mode = "start"
	Resume  Mode = "resume"
	Execute Mode = "execute"
)

// version is the version of the payload that is written.
const version = "2.2"

// MaxInvocation bounds a payload, in bytes.
const MaxInvocation = 4 << 20

// Invocation is the input of an executor.
type Invocation struct {
	SchemaVersion string          `json:"schema_version"` // set by MarshalJSON
	Mode          Mode            `json:"mode"`
	SessionID     string          `json:"session_id"`
	Prompt        string          `json:"prompt,omitempty"`         // of Start and Resume
	Parameters    json.RawMessage `json:"parameters"`               // of Execute: an object
	ProjectDir    string          `json:"project_dir,omitempty"`    // absolute; "": the executor's own
	Task          *run.Blueprint  `json:"task_blueprint,omitempty"` // of Execute, since version 2.1
	// Agent, Config and Metadata are objects that are passed on unread, or nil.
	Agent    json.RawMessage `json:"agent_blueprint,omitempty"`
	Config   json.RawMessage `json:"executor_config,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

//go:embed invocation.schema.json
var invocationSchemaJSON []byte

var invocationSchema = sync.OnceValue(func() *blueprint.Schema {
	s, err := blueprint.Compile(invocationSchemaJSON, run.StdinJSON)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return s
})

func invalid(format string, args ...any) error {
	return fmt.Errorf("invocation: "+format, args...)
}

// ReadInvocation reads a payload of version 2.0, 2.1 or 2.2. It ignores unknown fields, and
// accepts the prompt at the place of any version.
func ReadInvocation(r io.Reader) (Invocation, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxInvocation+1))
	if err != nil {
		return Invocation{}, invalid("%w", err)
	}
	return ParseInvocation(data)
}

// ParseInvocation parses a payload; see [ReadInvocation].
func ParseInvocation(data []byte) (in Invocation, err error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case len(data) > MaxInvocation:
		return in, invalid("$: is longer than %d bytes", MaxInvocation)
	case !utf8.Valid(data):
		return in, invalid("$: is not valid UTF-8")
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return in, invalid("$: %s", jsonError(err))
	}
	obj, ok := value.(map[string]any)
	if !ok {
		return in, invalid("$: not a JSON object")
	}
	if err := invocationSchema().Validate(obj); err != nil {
		return in, invalid("%s", strings.TrimPrefix(err.Error(), "parameters: "))
	}
	if err := checkCase(obj); err != nil {
		return in, err
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return in, invalid("$: %s", jsonError(err))
	}
	in.SchemaVersion = "" // MarshalJSON sets it again
	for _, raw := range []*json.RawMessage{&in.Parameters, &in.Agent, &in.Config, &in.Metadata} {
		if string(*raw) == "null" {
			*raw = nil
		}
	}
	if in.ProjectDir != "" && !filepath.IsAbs(in.ProjectDir) {
		return in, invalid("$.project_dir: %q is not absolute", short(in.ProjectDir))
	}
	if in.Mode == Execute {
		return in, checkTask(in.Task)
	}
	_, given := obj["prompt"]
	return in, in.setPrompt(given)
}

// checkCase refuses fields whose names differ from known ones only in case: the schema ignores them, but
// encoding/json does not.
func checkCase(obj map[string]any) error {
	task, _ := obj["task_blueprint"].(map[string]any)
	for path, level := range map[string]struct {
		obj  map[string]any
		into reflect.Type
	}{
		"$":                {obj, reflect.TypeFor[Invocation]()},
		"$.task_blueprint": {task, reflect.TypeFor[run.Blueprint]()},
	} {
		for _, field := range reflect.VisibleFields(level.into) {
			known, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			for name := range level.obj {
				if name != known && strings.EqualFold(name, known) {
					return invalid("%s.%s: write %s", path, short(name), known)
				}
			}
		}
	}
	return nil
}

// setPrompt takes the prompt from the parameters, where version 2.2 has it, unless it is given as
// a field.
func (in *Invocation) setPrompt(given bool) error {
	inside := gjson.GetBytes(in.Parameters, "prompt")
	switch {
	case !given:
		in.Prompt = inside.Str
	case inside.Type == gjson.String && in.Prompt != inside.Str:
		return invalid("$.prompt: differs from $.parameters.prompt")
	}
	if strings.TrimSpace(in.Prompt) == "" {
		return invalid("$.prompt: is missing or empty; version 2.2 has it in $.parameters.prompt")
	}
	return nil
}

// checkTask checks a blueprint and sets its defaults. As in document 004, the command may be a string, which
// is split by the rules of a shell but not executed by a shell.
func checkTask(b *run.Blueprint) error {
	if b.Name != "" && !run.ValidName(b.Name) {
		return invalid("$.task_blueprint.name: %q is not a valid blueprint name", short(b.Name))
	}
	b.Type = run.Deterministic
	hasCommand := strings.TrimSpace(b.Command) != ""
	switch {
	case !b.Shell && (len(b.Argv) > 0 || b.Script != ""):
		return nil
	case !hasCommand:
		return invalid("$.task_blueprint.command: is required")
	case b.Shell:
		return nil
	}
	argv, err := shellquote.Split(b.Command)
	if err != nil || len(argv) == 0 {
		return invalid("$.task_blueprint.command: has invalid quotes: %v", err)
	}
	b.Argv = argv
	return nil
}

// MarshalJSON writes version 2.2, where the prompt is one of the parameters.
func (in Invocation) MarshalJSON() (data []byte, err error) {
	type plain Invocation // without this method
	in.SchemaVersion = version
	if in.Task != nil && in.Task.Command == "" && len(in.Task.Argv) > 0 {
		task := *in.Task
		task.Command = shellquote.Join(task.Argv...)
		in.Task = &task
	}
	if in.Mode == Execute {
		return plainjson.Marshal(plain(in))
	}
	parameters := map[string]json.RawMessage{}
	if in.Parameters != nil {
		if err := json.Unmarshal(in.Parameters, &parameters); err != nil {
			return nil, err
		}
	}
	if parameters["prompt"], err = plainjson.Marshal(in.Prompt); err != nil {
		return nil, err
	}
	in.Prompt = ""
	if in.Parameters, err = plainjson.Marshal(parameters); err != nil {
		return nil, err
	}
	return plainjson.Marshal(plain(in))
}

func jsonError(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("at byte %d: %v", syntax.Offset, err)
	}
	return err.Error()
}
