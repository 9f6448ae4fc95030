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

// Invocation is the input of an executor, independent of the payload's version.
type Invocation struct {
	Mode       Mode
	SessionID  string
	Prompt     string          // of Start and Resume
	Parameters json.RawMessage // of Execute: an object
	ProjectDir string          // absolute; "": the executor's own
	Task       *run.Blueprint  // of Execute
	// Agent, Config and Metadata are objects that are passed on unread, or nil.
	Agent, Config, Metadata json.RawMessage
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
	p, err := parsePayload(data)
	if err != nil {
		return in, err
	}
	switch version := p.SchemaVersion; {
	case version == nil:
		return in, invalid("$.schema_version", "is required")
	case *version != v20 && *version != v21 && *version != v22:
		return in, invalid("$.schema_version", "%q is not supported; use 2.0, 2.1 or 2.2", short(*version))
	case p.Mode == nil:
		return in, invalid("$.mode", "is required")
	case p.SessionID == nil:
		return in, invalid("$.session_id", "is required")
	}
	in.Mode, in.SessionID, in.ProjectDir = *p.Mode, *p.SessionID, p.ProjectDir
	if err := checkID(in.SessionID); err != nil {
		return in, invalid("$.session_id", "%v", err)
	}
	if strings.ContainsRune(in.ProjectDir, 0) {
		return in, invalid("$.project_dir", "contains a NUL")
	}
	if in.ProjectDir != "" && !filepath.IsAbs(in.ProjectDir) {
		return in, invalid("$.project_dir", "%q is not absolute", short(in.ProjectDir))
	}
	for _, o := range []struct {
		name string
		from json.RawMessage
		to   *json.RawMessage
	}{
		{"parameters", p.Parameters, &in.Parameters},
		{"agent_blueprint", p.Agent, &in.Agent},
		{"executor_config", p.Config, &in.Config},
		{"metadata", p.Metadata, &in.Metadata},
	} {
		if isNull(o.from) {
			continue
		}
		if o.from[0] != '{' {
			return in, invalid("$."+o.name, "not an object")
		}
		*o.to = o.from
	}
	switch in.Mode {
	case Start, Resume:
		return in, in.parsePrompt(p)
	case Execute:
		return in, in.parseTask(p)
	}
	return in, invalid("$.mode", "%q must be one of start, resume and execute", short(string(in.Mode)))
}

// parsePrompt takes the prompt from its field or from the parameters, where version 2.2 has it.
func (in *Invocation) parsePrompt(p payload) error {
	where := "$.prompt"
	if *p.SchemaVersion == v22 {
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
	prompt := cmp.Or(p.Prompt, inside.Prompt)
	switch {
	case prompt == nil:
		return invalid(where, "is required: mode %s needs a prompt", in.Mode)
	case inside.Prompt != nil && *prompt != *inside.Prompt:
		return invalid("$.prompt", "differs from $.parameters.prompt")
	case strings.TrimSpace(*prompt) == "":
		return invalid(where, "is empty")
	}
	in.Prompt = *prompt
	return nil
}

// parseTask takes the blueprint of a program.
func (in *Invocation) parseTask(p payload) error {
	switch {
	case *p.SchemaVersion == v20:
		return invalid("$.mode", "execute needs schema_version 2.1; this is 2.0")
	case in.Parameters == nil:
		return invalid("$.parameters", "are required: mode execute needs an object, {} for none")
	case p.Prompt != nil:
		return invalid("$.prompt", "mode execute takes parameters and no prompt")
	case isNull(p.Task):
		return invalid("$.task_blueprint", "is required: mode execute needs the program's blueprint")
	}
	in.Task = &run.Blueprint{}
	if err := decode("$.task_blueprint", p.Task, in.Task); err != nil {
		return err
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

// payload is an invocation of any version.
type payload struct {
	SchemaVersion *string         `json:"schema_version"`
	Mode          *Mode           `json:"mode"`
	SessionID     *string         `json:"session_id"`
	Prompt        *string         `json:"prompt,omitempty"` // up to version 2.1
	Parameters    json.RawMessage `json:"parameters"`
	ProjectDir    string          `json:"project_dir,omitempty"`
	Agent         json.RawMessage `json:"agent_blueprint,omitempty"`
	Task          json.RawMessage `json:"task_blueprint,omitempty"` // since version 2.1
	Config        json.RawMessage `json:"executor_config,omitempty"`
	Metadata      json.RawMessage `json:"metadata,omitempty"`
}

// MarshalJSON writes version 2.2, where the prompt is one of the parameters.
func (in Invocation) MarshalJSON() (data []byte, err error) {
	version := v22
	p := payload{SchemaVersion: &version, Mode: &in.Mode, SessionID: &in.SessionID, Parameters: in.Parameters,
		ProjectDir: in.ProjectDir, Agent: in.Agent, Config: in.Config, Metadata: in.Metadata}
	if in.Task != nil {
		task := *in.Task
		if task.Command == "" && len(task.Argv) > 0 {
			task.Command = shellquote.Join(task.Argv...)
		}
		if p.Task, err = marshal(task); err != nil {
			return nil, err
		}
	}
	if in.Mode == Execute {
		return marshal(p)
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
	if p.Parameters, err = marshal(parameters); err != nil {
		return nil, err
	}
	return marshal(p)
}

// marshal marshals without escaping of <, > and &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// parsePayload parses one object, followed by nothing.
func parsePayload(data []byte) (p payload, err error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	switch {
	case len(data) > MaxInvocation:
		return p, invalid("$", "is longer than %d bytes", MaxInvocation)
	case len(data) == 0:
		return p, invalid("$", "is empty; expected a JSON object")
	case data[0] != '{':
		return p, invalid("$", "not a JSON object")
	case !utf8.Valid(data):
		return p, invalid("$", "is not valid UTF-8")
	}
	return p, decode("$", data, &p)
}

// isNull reports whether a field is absent or null.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

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
