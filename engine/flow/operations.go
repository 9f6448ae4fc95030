package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v3"

	"acescope/engine/ace"
	"acescope/engine/temporal/operation"
)

// Parameters are the parameters of an operation of a flow. Exactly one field is set.
type Parameters struct {
	Prompt    *PromptCall    `json:"prompt,omitempty"`
	Agent     *AgentCall     `json:"agent,omitempty"`
	Command   *CommandCall   `json:"command,omitempty"`
	Blueprint *BlueprintCall `json:"blueprint,omitempty"`
}

// PromptCall asks a model. Attachments are artifacts whose text follows the prompt. With a schema, the answer
// must be JSON that fits it.
type PromptCall struct {
	Provider    string          `json:"provider"`
	Model       string          `json:"model,omitempty"`
	System      string          `json:"system,omitempty"`
	Prompt      string          `json:"prompt"`
	Attachments []ace.Ref       `json:"attachments,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// AgentCall asks an agent's CLI in the run's directory.
type AgentCall struct {
	ace.AgentCall
	Within      string          `json:"within,omitempty"` // directory in the run's
	Attachments []ace.Ref       `json:"attachments,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
}

// CommandCall starts a program without a shell, in the run's directory or in a directory within it. An empty
// list of exit codes allows every exit code.
type CommandCall struct {
	Args      []string          `json:"args"`
	Directory string            `json:"directory"` // absolute: the run's directory
	Within    string            `json:"within,omitempty"`
	Stdin     string            `json:"stdin,omitempty"`
	StdinRef  *ace.Ref          `json:"stdin_ref,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	Allowed   []int             `json:"allowed_exit_codes"`
	JSON      bool              `json:"json,omitempty"` // the output must be JSON
}

// BlueprintCall starts a run of a blueprint and waits for its end.
type BlueprintCall struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// Answer is the result of a prompt or an agent.
type Answer struct {
	ace.AgentResult
	Text    string          `json:"text"`
	TextRef *ace.Ref        `json:"text_ref,omitempty"` // of a text that was truncated
	JSON    json.RawMessage `json:"json,omitempty"`
	Calls   *ace.CallLog    `json:"model_calls,omitempty"` // of a prompt
}

// CommandResult is the result of a program. Output above [MaxOutput] bytes is truncated; the whole output is
// then an artifact.
type CommandResult struct {
	ExitCode   int             `json:"exit_code"`
	Stdout     string          `json:"stdout"`
	Stderr     string          `json:"stderr"`
	StdoutRef  *ace.Ref        `json:"stdout_ref,omitempty"`
	JSON       json.RawMessage `json:"json,omitempty"`
	DurationMS float64         `json:"duration_ms"`
}

// MaxOutput bounds a text in a result, and MaxJSON its JSON, in bytes.
const (
	MaxOutput = 8 << 10
	MaxJSON   = 20 << 10
)

// BlueprintResult is the result of a blueprint's run.
type BlueprintResult struct {
	RunID     string          `json:"run_id"`
	SessionID string          `json:"session_id,omitempty"`
	Status    string          `json:"status"`
	Output    json.RawMessage `json:"output,omitempty"`
	Usage     ace.Usage       `json:"usage"`
}

var answerFields = map[string]*cel.Type{
	"text": cel.StringType, "json": cel.DynType, "text_ref": cel.DynType, "model": cel.StringType,
	"provider": cel.StringType, "cost_usd": cel.DoubleType, "duration_ms": cel.DoubleType,
	"usage":      cel.DynType,
	"session_id": cel.StringType, "success": cel.BoolType, "exit_class": cel.StringType,
	"summary": cel.StringType,
	"log":     cel.DynType, "log_path": cel.StringType, "denials": cel.IntType,
}

// operates is embedded in kinds that execute one operation.
type operates struct {
	leaf
	attach []Value
	schema json.RawMessage
}

func (operates) identified() {}

// fields adds the fields that all operations have.
func (o *operates) fields(b *builder, s *Step, fields map[string]func(*yaml.Node)) {
	fields["timeout"] = func(n *yaml.Node) { s.Timeout = b.duration(n) }
	fields["attempts"] = func(n *yaml.Node) { s.Attempts = b.number(n, 1, 100) }
	fields["cache"] = func(n *yaml.Node) { s.Cache = b.boolean(n) }
}

// answers adds the fields that prompts and agents have in common.
func (o *operates) answers(b *builder, fields map[string]func(*yaml.Node)) {
	fields["attach"] = func(n *yaml.Node) {
		b.items(n,
			func(n *yaml.Node) { o.attach = append(o.attach, b.value(n)) })
	}
	fields["schema"] = func(n *yaml.Node) {
		value := b.plainJSON(n)
		b.compileSchema(n, "schema", map[string]any{"answer": value}, nil)
		o.schema, _ = json.Marshal(value)
	}
}

// attachments evaluates references to artifacts.
func (o *operates) attachments(s *scope) (refs []ace.Ref, err error) {
	for _, v := range o.attach {
		value, err := v.eval(s)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue // nothing was truncated
		}
		ref, err := refOf(value)
		if err != nil {
			return nil, err
		}
		refs = append(refs, *ref)
	}
	return refs, nil
}

func refOf(value any) (*ace.Ref, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var ref ace.Ref
	if err := json.Unmarshal(data, &ref); err != nil || ref.SHA256 == "" {
		return nil, fmt.Errorf("%s is not a reference to an artifact", shorten(string(data)))
	}
	return &ref, nil
}

// promptStep asks a model.
type promptStep struct {
	operates
	prompt, system  *Template
	provider, model *Template
}

func (*promptStep) Name() string                 { return "prompt" }
func (*promptStep) result() map[string]*cel.Type { return answerFields }

func (*promptStep) detail(fields map[string]any) string { return preview(fields["text"]) }

func newPrompt(b *builder, s *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &promptStep{}
	k.fields(b, s, fields)
	k.answers(b, fields)
	fields["prompt"] = func(n *yaml.Node) { k.prompt = b.prompt(n) }
	fields["system"] = func(n *yaml.Node) { k.system = b.prompt(n) }
	fields["provider"] = func(n *yaml.Node) { k.provider = b.template(n) }
	fields["model"] = func(n *yaml.Node) { k.model = b.template(n) }
	return k
}

// prompt reads a text, or {file: PATH} with the path of a text that is part of the flow.
func (b *builder) prompt(n *yaml.Node) *Template {
	if n.Kind != yaml.MappingNode {
		return b.template(n)
	}
	var t *Template
	b.fields(n, "a prompt", map[string]func(*yaml.Node){"file": func(n *yaml.Node) {
		name := b.include(n)
		text, ok := b.source.Files[name]
		if !ok {
			return
		}
		file := reader{file: name, lines: strings.Split(text, "\n"), owner: b.owner, isInside: b.isInside}
		t = file.compile(&yaml.Node{Line: 1, Column: 1}, text)
		b.problems = append(b.problems, file.problems...)
		b.pending = append(b.pending, file.pending...)
	}}, "file")
	return t
}

func (k *promptStep) run(s *scope, step *Step) (any, error) {
	call := PromptCall{Schema: k.schema}
	err := s.texts([]textInto{{k.prompt, &call.Prompt}, {k.system, &call.System}, {k.provider, &call.Provider},
		{k.model, &call.Model}})
	if err != nil {
		return nil, err
	}
	call.Provider = cmp.Or(call.Provider, s.flow.defaults.Provider, ace.Builtin)
	call.Model = cmp.Or(call.Model, s.flow.defaults.Model)
	if call.Attachments, err = k.attachments(s); err != nil {
		return nil, err
	}
	return s.operate(step, operation.AgentResponse, Parameters{Prompt: &call}, false)
}

// textInto is a template, which may be nil, and the variable for its text.
type textInto struct {
	template *Template
	into     *string
}

// texts evaluates templates in order.
func (s *scope) texts(list []textInto) (err error) {
	for _, t := range list {
		if *t.into, err = s.optional(t.template); err != nil {
			return err
		}
	}
	return nil
}

// agentStep asks an agent's CLI.
type agentStep struct {
	operates
	agent, permission *Template
	prompt, system    *Template
	session, model    *Template
	within            *Template
	maxTurns          int
	maxCost           float64
	allowed, denied   []string
}

func (*agentStep) Name() string                 { return "agent" }
func (*agentStep) result() map[string]*cel.Type { return answerFields }

func (*agentStep) detail(fields map[string]any) string {
	return preview(cmp.Or(fields["summary"], fields["text"]))
}

func newAgent(b *builder, s *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &agentStep{}
	k.fields(b, s, fields)
	k.answers(b, fields)
	fields["agent"] = func(n *yaml.Node) {
		k.agent = b.template(n)
		if name, ok := k.agent.constant(); ok && name != "default" && !ace.IsAgent(name) {
			b.fail(n, fmt.Sprintf("agent %q not found", shorten(name)),
				"agents are default, "+strings.Join(ace.Agents(), ", "))
		}
	}
	fields["prompt"] = func(n *yaml.Node) { k.prompt = b.prompt(n) }
	fields["system"] = func(n *yaml.Node) { k.system = b.prompt(n) }
	fields["session"] = func(n *yaml.Node) { k.session = b.template(n) }
	fields["model"] = func(n *yaml.Node) { k.model = b.template(n) }
	fields["dir"] = func(n *yaml.Node) { k.within = b.template(n) }
	fields["permission"] = func(n *yaml.Node) {
		k.permission = b.template(n)
		if mode, ok := k.permission.constant(); ok && !slices.Contains(permissions, mode) {
			b.fail(n, fmt.Sprintf("permission %q not found", shorten(mode)),
				"permissions are "+strings.Join(permissions, ", "))
		}
	}
	fields["max_turns"] = func(n *yaml.Node) { k.maxTurns = b.number(n, 1, 10_000) }
	fields["max_cost_usd"] = func(n *yaml.Node) { k.maxCost = b.amount(n) }
	fields["allowed_tools"] = func(n *yaml.Node) { k.allowed = b.strings(n) }
	fields["denied_tools"] = func(n *yaml.Node) { k.denied = b.strings(n) }
	return k
}

func (k *agentStep) finish(b *builder, _ *Step, n *yaml.Node) {
	if k.prompt == nil {
		b.fail(n, "the step agent needs the field \"prompt\"", "")
	}
}

// permissions are the values of the field permission.
var permissions = []string{"default", "plan", "acceptEdits", "dontAsk", "full"}

// call evaluates the texts of a call.
func (k *agentStep) call(s *scope, step *Step) (*AgentCall, error) {
	call := &AgentCall{AgentCall: ace.AgentCall{MaxTurns: k.maxTurns, MaxBudgetUSD: k.maxCost,
		AllowedTools:    k.allowed,
		DisallowedTools: k.denied, ActivityName: step.ID}, Schema: k.schema}
	if err := s.texts([]textInto{{k.agent, &call.Provider}, {k.permission, &call.PermissionMode},
		{k.prompt, &call.Instruction}, {k.system, &call.SystemPrompt}, {k.session, &call.SessionID},
		{k.model, &call.Model}}); err != nil {
		return nil, err
	}
	for _, text := range []string{call.SessionID, call.Model} {
		if err := noFlag(step, text); err != nil {
			return nil, err
		}
	}
	d := s.flow.defaults
	if call.Provider == "" || call.Provider == "default" {
		call.Provider = cmp.Or(d.Agent, "claude")
	}
	if !ace.IsAgent(call.Provider) {
		return nil, step.errorf(TypeValue, "agent %q not found; agents are %s",
			shorten(call.Provider), strings.Join(ace.Agents(), ", "))
	}
	if call.PermissionMode = cmp.Or(call.PermissionMode, d.Permission); call.PermissionMode != "" &&
		!slices.Contains(permissions, call.PermissionMode) {
		return nil, step.errorf(TypeValue, "permission %q not found; permissions are %s",
			shorten(call.PermissionMode), strings.Join(permissions, ", "))
	}
	return call, nil
}

func (k *agentStep) run(s *scope, step *Step) (any, error) {
	call, err := k.call(s, step)
	if err != nil {
		return nil, err
	}
	if call.WorkingDir, call.Within, err = s.directory(step, k.within); err != nil {
		return nil, err
	}
	if call.Attachments, err = k.attachments(s); err != nil {
		return nil, err
	}
	value, err := s.operate(step, operation.AgentResponse, Parameters{Agent: call}, true)
	if err != nil {
		return nil, err
	}
	if fields, _ := value.(map[string]any); fields["success"] != true {
		message, _ := fields["error"].(string)
		return value, step.errorf(operation.TypeAgent, "%s", cmp.Or(message, "the agent failed"))
	}
	return value, nil
}

// noFlag rejects a text that a program would read as a flag.
func noFlag(step *Step, text string) error {
	if strings.HasPrefix(text, "-") {
		return step.errorf(TypeUnsafe, "the value %q begins with \"-\" and would be read as a flag",
			shorten(text))
	}
	return nil
}

// commandStep starts a program.
type commandStep struct {
	operates
	args    []*Template
	list    *Expr // an input with the program and its arguments, instead of args
	within  *Template
	stdin   Value
	env     []member
	allowed []int
	json    bool
}

func (*commandStep) Name() string { return "run" }
func (*commandStep) result() map[string]*cel.Type {
	return map[string]*cel.Type{"exit_code": cel.IntType, "stdout": cel.StringType, "stderr": cel.StringType,
		"stdout_ref": cel.DynType, "json": cel.DynType, "duration_ms": cel.DoubleType}
}

func (*commandStep) detail(fields map[string]any) string {
	return fmt.Sprintf("exit code %v", fields["exit_code"])
}

func newCommand(b *builder, s *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &commandStep{allowed: []int{0}}
	k.fields(b, s, fields)
	fields["run"] = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			k.list = b.programInput(n)
			return
		}
		b.items(n, func(n *yaml.Node) { k.args = append(k.args, b.template(n)) })
		if len(k.args) == 0 {
			b.fail(n, "run needs a program", "")
		} else if _, ok := k.args[0].constant(); !ok {
			b.fail(n, "the program must not depend on expressions",
				"use steps with \"if\" to choose between programs")
		}
	}
	fields["dir"] = func(n *yaml.Node) { k.within = b.template(n) }
	fields["stdin"] = func(n *yaml.Node) { k.stdin = b.value(n) }
	fields["env"] = func(n *yaml.Node) {
		b.pairs(n, func(key, value *yaml.Node) {
			k.env = append(k.env, member{key.Value, b.template(value)})
		})
	}
	fields["allowed_exit_codes"] = func(n *yaml.Node) {
		k.allowed = nil
		if n.Kind == yaml.ScalarNode {
			b.choice(n, "any")
			return
		}
		b.items(n, func(n *yaml.Node) { k.allowed = append(k.allowed, b.number(n, 0, 255)) })
		if len(k.allowed) == 0 {
			b.fail(n, "the list of exit codes is empty", "write any to allow all")
		}
	}
	fields["json"] = func(n *yaml.Node) { k.json = b.boolean(n) }
	return k
}

// programInput reads "${{ inputs.NAME }}". Only the file or the caller of a flow may name a program, never
// the result of a step.
func (b *builder) programInput(n *yaml.Node) *Expr {
	name, ok := inputOf(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(n.Value), openMark),
		closeMark))
	if !ok || !strings.Contains(n.Value, openMark) {
		b.fail(n, "run is a list of the program and its arguments, because no shell reads it",
			"such as: run: [git, diff, --stat], or run: ${{ inputs.NAME }} with a list that the caller of the flow gives")
		return nil
	}
	b.f.programs[name] = true
	return b.expression(n, cel.ListType(cel.DynType))
}

// inputOf returns NAME if the expression is inputs.NAME.
func inputOf(text string) (string, bool) {
	name, ok := strings.CutPrefix(strings.TrimSpace(text), nameInputs+".")
	return name, ok && isName(name)
}

// arguments returns the program and its arguments.
func (k *commandStep) arguments(s *scope, step *Step) (args []string, err error) {
	if k.list != nil {
		return k.listed(s, step)
	}
	options := true // the program may still read flags
	for i, t := range k.args {
		arg, err := t.text(s)
		if err != nil {
			return nil, err
		}
		if i > 0 && options && t.literals[0] == "" && len(t.exprs) > 0 {
			if err := noFlag(step, arg); err != nil {
				return nil, err
			}
		}
		options = options && arg != "--"
		args = append(args, arg)
	}
	return args, nil
}

// listed returns the program and the arguments in an input.
func (k *commandStep) listed(s *scope, step *Step) (args []string, err error) {
	value, err := s.eval(k.list)
	if err != nil {
		return nil, err
	}
	items, _ := value.([]any)
	for _, item := range items {
		arg, ok := item.(string)
		if !ok || strings.ContainsRune(arg, 0) {
			items = nil
			break
		}
		args = append(args, arg)
	}
	if len(items) == 0 || args[0] == "" {
		return nil, step.errorf(TypeValue,
			"%s is not a list of a program and its arguments, such as [\"make\", \"test\"]",
			strings.TrimSpace(k.list.Text))
	}
	return args, nil
}

// Allows reports whether the step accepts an exit code.
func (c *CommandCall) Allows(code int) bool {
	return len(c.Allowed) == 0 || slices.Contains(c.Allowed, code)
}

func (k *commandStep) run(s *scope, step *Step) (any, error) {
	call := CommandCall{Allowed: k.allowed, JSON: k.json}
	var err error
	if call.Args, err = k.arguments(s, step); err != nil {
		return nil, err
	}
	if call.Directory, call.Within, err = s.directory(step, k.within); err != nil {
		return nil, err
	}
	for _, m := range k.env {
		value, err := m.value.(*Template).text(s)
		if err != nil {
			return nil, err
		}
		if call.Env == nil {
			call.Env = map[string]string{}
		}
		call.Env[m.name] = value
	}
	if err := k.setStdin(s, &call); err != nil {
		return nil, err
	}
	value, err := s.operate(step, operation.Action, Parameters{Command: &call}, true)
	if err != nil {
		return nil, err
	}
	fields, _ := value.(map[string]any)
	if code, ok := fields["exit_code"].(int64); ok && !call.Allows(int(code)) {
		stderr, _ := fields["stderr"].(string)
		why := fmt.Sprintf("%s ended with exit code %d: %s", call.Args[0], code, ace.LastLine(stderr))
		return value, step.errorf(TypeExit, "%s", strings.TrimSuffix(why, ": "))
	}
	return value, nil
}

// setStdin sets the standard input to a text, to an artifact, or to a value as JSON.
func (k *commandStep) setStdin(s *scope, call *CommandCall) error {
	if k.stdin == nil {
		return nil
	}
	value, err := k.stdin.eval(s)
	if err != nil {
		return err
	}
	if ref, err := refOf(value); err == nil {
		call.StdinRef = ref
		return nil
	}
	call.Stdin, err = jsonText(value)
	return err
}

// activityStep executes an activity of any worker.
type activityStep struct {
	operates
	name, queue string
	input       Value
}

func (*activityStep) Name() string { return "activity" }
func (*activityStep) result() map[string]*cel.Type {
	return map[string]*cel.Type{"result": cel.DynType}
}

func (*activityStep) detail(fields map[string]any) string { return preview(fields["result"]) }

func newActivity(b *builder, s *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &activityStep{input: literal{nil}}
	k.fields(b, s, fields)
	delete(fields, "cache")
	fields["activity"] = func(n *yaml.Node) { k.name = b.constant(n) }
	fields["queue"] = func(n *yaml.Node) { k.queue = b.constant(n) }
	fields["input"] = func(n *yaml.Node) { k.input = b.value(n) }
	return k
}

func (k *activityStep) run(s *scope, step *Step) (any, error) {
	input, err := k.input.eval(s)
	if err != nil {
		return nil, err
	}
	value, err := s.execute(step, operation.Operation{Type: operation.ExternalCall, Step: step.ID,
		Parameters: input,
		Activity:   k.name, Options: operation.Options{TaskQueue: k.queue}})
	return map[string]any{"result": value}, err
}

// blueprintStep runs a blueprint.
type blueprintStep struct {
	operates
	name       string
	parameters Value
}

func (*blueprintStep) Name() string { return "blueprint" }
func (*blueprintStep) result() map[string]*cel.Type {
	return map[string]*cel.Type{"run_id": cel.StringType, "session_id": cel.StringType,
		"status": cel.StringType,
		"output": cel.DynType, "usage": cel.DynType}
}

func (*blueprintStep) detail(fields map[string]any) string { return preview(fields["run_id"]) }

func newBlueprint(b *builder, s *Step, fields map[string]func(*yaml.Node)) Kind {
	k := &blueprintStep{parameters: object{}}
	k.fields(b, s, fields)
	fields["blueprint"] = func(n *yaml.Node) { k.name = b.constant(n) }
	fields["parameters"] = func(n *yaml.Node) { k.parameters = b.value(n) }
	return k
}

func (k *blueprintStep) run(s *scope, step *Step) (any, error) {
	parameters, err := k.parameters.eval(s)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(parameters)
	if err != nil {
		return nil, err
	}
	return s.operate(step, operation.Action, Parameters{Blueprint: &BlueprintCall{k.name, data}}, false)
}
