package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kballard/go-shellquote"

	"acescope/engine/run"
)

// Mode is what an invocation asks for.
type Mode string

// Modes: an agent's session is started or resumed, a program is executed.
const (
	Start   Mode = "start"
	Resume  Mode = "resume"
	Execute Mode = "execute"
)

// Versions of the payload that are read. The last one is written.
const (
	v20 = "2.0"
	v21 = "2.1"
	v22 = "2.2"
)

// MaxInvocation bounds a payload, in bytes.
const MaxInvocation = 4 << 20

// Invocation is what an executor is given, whatever version it came in.
type Invocation struct {
	Mode       Mode
	SessionID  string
	Prompt     string          // of Start and Resume
	Parameters json.RawMessage // of Execute: an object
	ProjectDir string          // absolute, "" for the executor's own
	Task       *run.Blueprint  // of Execute
	// Agent, Config and Metadata are objects, or nil. Nobody here looks into them.
	Agent, Config, Metadata json.RawMessage
}

// InvocationError says what is wrong with a payload, and where.
type InvocationError struct {
	Path string // such as $.task_blueprint.command
	Text string
}

func (e *InvocationError) Error() string { return "invocation: " + e.Path + ": " + e.Text }

func wrong(path, format string, args ...any) error {
	return &InvocationError{path, fmt.Sprintf(format, args...)}
}

// ReadInvocation reads a payload of version 2.0, 2.1 or 2.2. Fields that nobody knows are
// left out; a prompt is taken from where any of the versions has it.
func ReadInvocation(r io.Reader) (Invocation, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxInvocation+1))
	if err != nil {
		return Invocation{}, fmt.Errorf("invocation: %w", err)
	}
	return ParseInvocation(data)
}

// ParseInvocation is [ReadInvocation] of bytes.
func ParseInvocation(data []byte) (in Invocation, err error) {
	fields, err := members(data)
	if err != nil {
		return in, err
	}
	version := ""
	if err := fields.required("schema_version", &version); err != nil {
		return in, err
	}
	if version != v20 && version != v21 && version != v22 {
		return in, wrong("$.schema_version", "%q is not known; give 2.0, 2.1 or 2.2", clip(version))
	}
	if err := fields.required("mode", &in.Mode); err != nil {
		return in, err
	}
	if err := fields.required("session_id", &in.SessionID); err != nil {
		return in, err
	}
	if err := goodID(in.SessionID); err != nil {
		return in, wrong("$.session_id", "%v", err)
	}
	if err := in.readDir(fields); err != nil {
		return in, err
	}
	for _, o := range []struct {
		name string
		into *json.RawMessage
	}{{"parameters", &in.Parameters}, {"agent_blueprint", &in.Agent}, {"executor_config", &in.Config}, {"metadata", &in.Metadata}} {
		if err := fields.object(o.name, o.into); err != nil {
			return in, err
		}
	}
	switch in.Mode {
	case Start, Resume:
		return in, in.readPrompt(fields, version)
	case Execute:
		return in, in.readTask(fields, version)
	}
	return in, wrong("$.mode", "%q is none of start, resume and execute", clip(string(in.Mode)))
}

func (in *Invocation) readDir(f fields) error {
	if err := f.optional("project_dir", &in.ProjectDir); err != nil {
		return err
	}
	switch {
	case strings.ContainsRune(in.ProjectDir, 0):
		return wrong("$.project_dir", "there is a NUL in it")
	case in.ProjectDir != "" && !filepath.IsAbs(in.ProjectDir):
		return wrong("$.project_dir", "%q is not absolute", clip(in.ProjectDir))
	}
	return nil
}

// readPrompt takes the prompt from the field of that name, or from the parameters. Only 2.2
// has it there, but nobody is refused who says it in the other way.
func (in *Invocation) readPrompt(f fields, version string) error {
	where := "$.prompt"
	if version == v22 {
		where = "$.parameters.prompt"
	}
	var direct, inside *string
	if err := f.optional("prompt", &direct); err != nil {
		return err
	}
	if in.Parameters != nil {
		inner, err := members(in.Parameters)
		if err != nil {
			return wrong("$.parameters", "not an object")
		}
		inner.at = "$.parameters"
		if err := inner.optional("prompt", &inside); err != nil {
			return err
		}
	}
	switch {
	case direct == nil && inside == nil:
		return wrong(where, "it is missing: mode %s needs a prompt", in.Mode)
	case direct != nil && inside != nil && *direct != *inside:
		return wrong("$.prompt", "it is another one than $.parameters.prompt")
	case direct != nil:
		in.Prompt = *direct
	default:
		in.Prompt = *inside
	}
	if strings.TrimSpace(in.Prompt) == "" {
		return wrong(where, "it is empty")
	}
	return nil
}

// readTask takes the blueprint of a program. As in the document, its command may be one
// text, which is split by the rules of a shell; no shell sees it.
func (in *Invocation) readTask(f fields, version string) error {
	switch {
	case version == v20:
		return wrong("$.mode", "execute came with schema_version 2.1; this is 2.0")
	case in.Parameters == nil:
		return wrong("$.parameters", "they are missing: mode execute needs an object, {} for none")
	case f.has("prompt"):
		return wrong("$.prompt", "mode execute takes parameters and no prompt")
	case !f.has("task_blueprint"):
		return wrong("$.task_blueprint", "it is missing: mode execute needs the program's blueprint")
	}
	b := &run.Blueprint{}
	if err := f.required("task_blueprint", b); err != nil {
		return err
	}
	in.Task = b
	return checkTask(b)
}

func checkTask(b *run.Blueprint) error {
	const at = "$.task_blueprint"
	if b.Type == "" {
		b.Type = run.Deterministic
	}
	switch {
	case b.Type != run.Deterministic:
		return wrong(at+".type", "%q is not deterministic", clip(string(b.Type)))
	case b.Name != "" && !run.ValidName(b.Name):
		return wrong(at+".name", "%q cannot be a blueprint's name", clip(b.Name))
	case b.TimeoutSeconds < 0:
		return wrong(at+".timeout_seconds", "%d is below 0", b.TimeoutSeconds)
	case !b.Shell && len(b.Argv) == 0 && b.Script == "" && strings.TrimSpace(b.Command) == "":
		return wrong(at+".command", "it is missing")
	case b.Shell && strings.TrimSpace(b.Command) == "":
		return wrong(at+".command", "it is missing, and shell is true")
	}
	if err := checkStrategy(b.Strategy); err != nil {
		return wrong(at+".parameter_strategy", "%v", err)
	}
	if b.Shell || len(b.Argv) > 0 || b.Script != "" {
		return nil
	}
	argv, err := shellquote.Split(b.Command)
	if err != nil || len(argv) == 0 {
		return wrong(at+".command", "it is not quoted well: %v", err)
	}
	b.Argv = argv
	return nil
}

// goodID tells what is wrong with an id that may be anybody's.
func goodID(id string) error {
	switch {
	case id == "":
		return errors.New("it is empty")
	case len(id) > maxID:
		return fmt.Errorf("it is longer than %d bytes", maxID)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return errors.New("there are control characters in it")
	}
	return nil
}

const maxID = 200

// payload is an invocation as version 2.2 has it, with task_blueprint as 2.1 has that.
type payload struct {
	SchemaVersion string          `json:"schema_version"`
	Mode          Mode            `json:"mode"`
	SessionID     string          `json:"session_id"`
	Parameters    json.RawMessage `json:"parameters"`
	ProjectDir    string          `json:"project_dir,omitempty"`
	Agent         json.RawMessage `json:"agent_blueprint,omitempty"`
	Task          *run.Blueprint  `json:"task_blueprint,omitempty"`
	Config        json.RawMessage `json:"executor_config,omitempty"`
	Metadata      json.RawMessage `json:"metadata,omitempty"`
}

// MarshalJSON writes version 2.2. A prompt stands among the parameters there.
func (in Invocation) MarshalJSON() ([]byte, error) {
	p := payload{SchemaVersion: v22, Mode: in.Mode, SessionID: in.SessionID, Parameters: in.Parameters, ProjectDir: in.ProjectDir,
		Agent: in.Agent, Config: in.Config, Metadata: in.Metadata}
	if in.Task != nil {
		task := *in.Task
		if task.Command == "" && len(task.Argv) > 0 {
			task.Command = shellquote.Join(task.Argv...)
		}
		p.Task = &task
	}
	if in.Mode != Execute {
		with, err := withPrompt(in.Parameters, in.Prompt)
		if err != nil {
			return nil, err
		}
		p.Parameters = with
	}
	return marshal(p)
}

// withPrompt sets the prompt among parameters.
func withPrompt(parameters json.RawMessage, prompt string) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if parameters != nil {
		if err := json.Unmarshal(parameters, &all); err != nil {
			return nil, err
		}
	}
	text, err := marshal(prompt)
	if err != nil {
		return nil, err
	}
	all["prompt"] = text
	return marshal(all)
}

// marshal is JSON with <, > and & as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
