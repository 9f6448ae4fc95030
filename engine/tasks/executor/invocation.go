package executor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kballard/go-shellquote"
	"github.com/tidwall/gjson"

	"acescope/engine/tasks/run"
)

// Mode is what an invocation asks for.
type Mode string

// Modes: start or resume an agent's session, or execute a program.
const (
	Start   Mode = "start"
	Resume  Mode = "resume"
	Execute Mode = "execute"
)

// Versions of the payload that can be read. The last one is written.
const (
	v20 = "2.0"
	v21 = "2.1"
	v22 = "2.2"
)

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

// InvocationError says what is wrong with a payload, and where.
type InvocationError struct {
	Path string // such as $.task_blueprint.command
	Text string
}

func (e *InvocationError) Error() string { return "invocation: " + e.Path + ": " + e.Text }

func invalid(path, format string, args ...any) error {
	return &InvocationError{path, fmt.Sprintf(format, args...)}
}

// ReadInvocation reads a payload of version 2.0, 2.1 or 2.2. It ignores unknown fields, and
// accepts the prompt at the place of any version.
func ReadInvocation(r io.Reader) (Invocation, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxInvocation+1))
	if err != nil {
		return Invocation{}, fmt.Errorf("invocation: %w", err)
	}
	return ParseInvocation(data)
}

// ParseInvocation parses a payload; see [ReadInvocation].
func ParseInvocation(data []byte) (in Invocation, err error) {
	if data, err = checkPayload(data); err != nil {
		return in, err
	}
	if err := decode("$", data, &in); err != nil {
		return in, err
	}
	version := in.SchemaVersion
	in.SchemaVersion = "" // of no meaning from here on
	given := func(name string) bool { return gjson.GetBytes(data, name).Type != gjson.Null }
	switch {
	case !given("schema_version"):
		return in, invalid("$.schema_version", "is required")
	case version != v20 && version != v21 && version != v22:
		return in, invalid("$.schema_version", "%q is not supported; use 2.0, 2.1 or 2.2", short(version))
	case !given("mode"):
		return in, invalid("$.mode", "is required")
	case !given("session_id"):
		return in, invalid("$.session_id", "is required")
	case strings.ContainsRune(in.ProjectDir, 0):
		return in, invalid("$.project_dir", "contains a NUL")
	case in.ProjectDir != "" && !filepath.IsAbs(in.ProjectDir):
		return in, invalid("$.project_dir", "%q is not absolute", short(in.ProjectDir))
	}
	if err := checkID(in.SessionID); err != nil {
		return in, invalid("$.session_id", "%v", err)
	}
	for _, o := range []struct {
		name string
		raw  *json.RawMessage
	}{
		{"parameters", &in.Parameters}, {"agent_blueprint", &in.Agent},
		{"executor_config", &in.Config}, {"metadata", &in.Metadata},
	} {
		switch {
		case string(*o.raw) == "null":
			*o.raw = nil
		case len(*o.raw) > 0 && (*o.raw)[0] != '{':
			return in, invalid("$."+o.name, "not an object")
		}
	}
	switch in.Mode {
	case Start, Resume:
		return in, in.checkPrompt(version, given("prompt"))
	case Execute:
		return in, in.checkTask(version, given("prompt"))
	}
	return in, invalid("$.mode", "%q must be one of start, resume and execute", short(string(in.Mode)))
}

// checkPrompt takes the prompt from the parameters, where version 2.2 has it, unless it is given as
// a field.
func (in *Invocation) checkPrompt(version string, given bool) error {
	where := "$.prompt"
	if version == v22 {
		where = "$.parameters.prompt"
	}
	var inside struct {
		Prompt *string `json:"prompt"`
	}
	if in.Parameters != nil {
		if err := decode("$.parameters", in.Parameters, &inside); err != nil {
			return err
		}
	}
	switch {
	case !given && inside.Prompt == nil:
		return invalid(where, "is required: mode %s needs a prompt", in.Mode)
	case !given:
		in.Prompt = *inside.Prompt
	case inside.Prompt != nil && in.Prompt != *inside.Prompt:
		return invalid("$.prompt", "differs from $.parameters.prompt")
	}
	if strings.TrimSpace(in.Prompt) == "" {
		return invalid(where, "is empty")
	}
	return nil
}

// checkTask checks the blueprint of a program.
func (in *Invocation) checkTask(version string, prompt bool) error {
	switch {
	case version == v20:
		return invalid("$.mode", "execute needs schema_version 2.1; this is 2.0")
	case in.Parameters == nil:
		return invalid("$.parameters", "are required: mode execute needs an object, {} for none")
	case prompt:
		return invalid("$.prompt", "mode execute takes parameters and no prompt")
	case in.Task == nil:
		return invalid("$.task_blueprint", "is required: mode execute needs the program's blueprint")
	}
	return checkTask(in.Task)
}

// checkTask checks a blueprint and sets its defaults. As in document 004, the command may be a
// string, which is split by the rules of a shell, but not given to one.
func checkTask(b *run.Blueprint) error {
	const path = "$.task_blueprint"
	b.Type = cmp.Or(b.Type, run.Deterministic)
	hasCommand := strings.TrimSpace(b.Command) != ""
	switch {
	case b.Type != run.Deterministic:
		return invalid(path+".type", "%q is not deterministic", short(string(b.Type)))
	case b.Name != "" && !run.ValidName(b.Name):
		return invalid(path+".name", "%q is not a valid blueprint name", short(b.Name))
	case b.TimeoutSeconds < 0:
		return invalid(path+".timeout_seconds", "%d is negative", b.TimeoutSeconds)
	case !b.Shell && len(b.Argv) == 0 && b.Script == "" && !hasCommand:
		return invalid(path+".command", "is required")
	case b.Shell && !hasCommand:
		return invalid(path+".command", "is required if shell is true")
	}
	if err := checkStrategy(b.Strategy); err != nil {
		return invalid(path+".parameter_strategy", "%v", err)
	}
	if b.Shell || len(b.Argv) > 0 || b.Script != "" {
		return nil
	}
	argv, err := shellquote.Split(b.Command)
	if err != nil || len(argv) == 0 {
		return invalid(path+".command", "has invalid quotes: %v", err)
	}
	b.Argv = argv
	return nil
}

// checkID returns an error if a session id is invalid. It may be another system's id.
func checkID(id string) error {
	const most = 200
	switch {
	case id == "":
		return errors.New("is empty")
	case len(id) > most:
		return fmt.Errorf("is longer than %d bytes", most)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return errors.New("contains control characters")
	}
	return nil
}

// MarshalJSON writes version 2.2, where the prompt is one of the parameters.
func (in Invocation) MarshalJSON() (data []byte, err error) {
	type plain Invocation // without this method
	in.SchemaVersion = v22
	if in.Task != nil && in.Task.Command == "" && len(in.Task.Argv) > 0 {
		task := *in.Task
		task.Command = shellquote.Join(task.Argv...)
		in.Task = &task
	}
	if in.Mode == Execute {
		return marshal(plain(in))
	}
	parameters := map[string]json.RawMessage{}
	if in.Parameters != nil {
		if err := json.Unmarshal(in.Parameters, &parameters); err != nil {
			return nil, err
		}
	}
	if parameters["prompt"], err = marshal(in.Prompt); err != nil {
		return nil, err
	}
	in.Prompt = ""
	if in.Parameters, err = marshal(parameters); err != nil {
		return nil, err
	}
	return marshal(plain(in))
}

// marshal marshals without escaping of <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// checkPayload returns the text of one object.
func checkPayload(data []byte) ([]byte, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	switch {
	case len(data) > MaxInvocation:
		return nil, invalid("$", "is longer than %d bytes", MaxInvocation)
	case len(data) == 0:
		return nil, invalid("$", "is empty; expected a JSON object")
	case data[0] != '{':
		return nil, invalid("$", "not a JSON object")
	case !utf8.Valid(data):
		return nil, invalid("$", "is not valid UTF-8")
	}
	return data, nil
}

// decode decodes the value at a path.
func decode(path string, data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return invalid(path, "%s", jsonError(err))
	}
	if mismatch.Field != "" {
		path += "." + mismatch.Field
	}
	return invalid(path, "must be %s, but is: %s", jsonType(mismatch.Type.Kind().String()), mismatch.Value)
}

func jsonError(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("at byte %d: %v", syntax.Offset, err)
	}
	return err.Error()
}

// jsonType returns JSON's name of a kind of Go.
func jsonType(kind string) string {
	switch {
	case kind == "struct" || kind == "map":
		return "an object"
	case kind == "slice" || kind == "array":
		return "an array"
	case kind == "bool":
		return "a boolean"
	case strings.HasPrefix(kind, "int"):
		return "an integer"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	}
	return "a " + kind
}
