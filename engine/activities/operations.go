package activities

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/internal/process"
	"acescope/engine/learning/model"
	"acescope/engine/tasks/blueprint"
	"acescope/engine/tasks/run"
	"acescope/engine/temporal/operation"
)

// Bounds of the operations of flows.
const (
	maxStdout     = 4 << 20 // bytes that an artifact keeps
	maxStdoutTail = 64 << 10
	cacheEntries  = 10_000
	cacheBytes    = 256 << 20
)

// RegisterOperations registers only the operations of flows.
func (a *Activities) RegisterOperations(r operation.Registry) error {
	have := func(ref ace.Ref) bool {
		ok, err := a.Artifacts.Renew(context.Background(), ref)
		return ok && err == nil
	}
	in := a.inputs()
	o := operations{inputs: in, agents: agents{in, a.Agents}, recordings: recordings{in, a.NoCallRecords},
		runs: a.Runs, withheld: a.Withheld, self: a.Self}
	h := &operation.Handlers{Put: a.Artifacts.PutBytes, Have: have}
	if a.CacheDir != "" {
		cache, err := operation.OpenFileCache(a.CacheDir, cacheEntries, cacheBytes)
		if err != nil {
			return err
		}
		h.Cache = cache
	}
	for _, t := range []operation.Type{operation.AgentResponse, operation.Action} {
		if err := h.Handle(t, "", "1", operation.Typed(o.operate)); err != nil {
			return err
		}
	}
	h.Register(r)
	return nil
}

// operations execute the operations of flows.
type operations struct {
	*inputs
	agents
	recordings
	runs     run.Service // nil if blueprints are not available
	withheld string      // see [Activities.Withheld]
	self     []string    // see [Activities.Self]
}

// operate executes an operation of a flow.
func (o operations) operate(ctx context.Context, p flow.Parameters) (any, error) {
	switch {
	case p.Prompt != nil:
		return o.prompt(ctx, *p.Prompt)
	case p.Agent != nil:
		return o.agent(ctx, *p.Agent)
	case p.Command != nil:
		return o.command(ctx, *p.Command)
	case p.Blueprint != nil:
		return o.blueprintRun(ctx, *p.Blueprint)
	}
	return nil, permanent(errors.New("the operation has no prompt, agent, command or blueprint"))
}

// prompt asks a model.
func (o operations) prompt(ctx context.Context, c flow.PromptCall) (flow.Answer, error) {
	p, err := o.provider(c.Provider)
	if err != nil {
		return flow.Answer{}, err
	}
	asked, ok := p.(model.Answerer)
	if !ok {
		return flow.Answer{}, permanent(fmt.Errorf(
			"provider %q answers no prompts; name a model server, see \"acescope doctor\"", c.Provider))
	}
	text, err := o.attach(ctx, c.Prompt, c.Attachments)
	if err != nil {
		return flow.Answer{}, err
	}
	schema, err := compileAnswer(c.Schema)
	if err != nil {
		return flow.Answer{}, permanent(err)
	}
	begun := time.Now()
	var found json.RawMessage
	recorded, recorder := o.recording(withPlace(ctx))
	reply, err := asked.Answer(recorded,
		model.Question{Model: c.Model, System: c.System, Prompt: schema.ask(text),
			Accept: func(text string) (err error) {
				found, err = schema.find(text)
				return err
			}})
	log := o.store(ctx, recorder)
	if err != nil {
		return flow.Answer{}, o.stepError(ctx, err, log)
	}
	out := flow.Answer{AgentResult: ace.AgentResult{Success: true, Provider: c.Provider, Model: reply.Model,
		Usage:   *reply.Usage,
		CostUSD: reply.Usage.CostUSD, DurationMS: float64(time.Since(begun).Milliseconds())}, JSON: found,
		Calls: log}
	return out, o.setText(ctx, &out, reply.Text)
}

// agent asks an agent's CLI.
func (o operations) agent(ctx context.Context, c flow.AgentCall) (flow.Answer, error) {
	schema, err := compileAnswer(c.Schema)
	if err != nil {
		return flow.Answer{}, permanent(err)
	}
	text, err := o.attach(ctx, c.Instruction, c.Attachments)
	if err != nil {
		return flow.Answer{}, err
	}
	c.Instruction = schema.ask(text)
	if c.WorkingDir, err = insideOf(c.WorkingDir, c.Within); err != nil {
		return flow.Answer{}, permanent(err)
	}
	op := operation.CallOf(ctx)
	name := op.Step
	if op.Branch != "" {
		name += "." + strings.ReplaceAll(op.Branch, "/", ".")
	}
	call := newCall(ctx, c.Provider, name, new(op.Occurrence-1))
	setCall(&call, c.AgentCall)
	end, err := o.callAgent(ctx, call)
	if err != nil {
		return flow.Answer{}, err
	}
	out := flow.Answer{AgentResult: end.AgentResult}
	if end.Success {
		if out.JSON, err = schema.find(end.Text); err != nil {
			out.Success = false
			out.ExitClass = ClassBadAnswer
			out.Error = "the agent's answer: " + err.Error()
		}
	}
	return out, o.setText(ctx, &out, end.Text)
}

// ClassBadAnswer is the exit class of an answer that does not fit the schema of its step.
const ClassBadAnswer = "bad_answer"

// setText sets the text of an answer, without secrets.
func (o operations) setText(ctx context.Context, out *flow.Answer, text string) (err error) {
	out.Text, out.TextRef, err = o.bounded(ctx, o.secrets.String(text))
	if len(out.JSON) > flow.MaxJSON {
		return permanent(fmt.Errorf("the answer has %d KB of JSON, and %d are allowed; ask for less",
			len(out.JSON)>>10, flow.MaxJSON>>10))
	}
	out.JSON = json.RawMessage(o.secrets.Line(out.JSON))
	return err
}

// bounded truncates a text for a history, and stores a truncated one as an artifact.
func (o operations) bounded(ctx context.Context, text string) (string, *ace.Ref, error) {
	if len(text) <= flow.MaxOutput {
		return text, nil, nil
	}
	ref, err := o.artifacts.PutBytes(ctx, []byte(text), "text/plain; charset=utf-8")
	return ace.Cut(text, flow.MaxOutput), &ref, err
}

// attach appends artifacts to a prompt.
func (o operations) attach(ctx context.Context, text string, refs []ace.Ref) (string, error) {
	for i := range refs {
		content, err := o.resolve(ctx, "attachment", "", &refs[i])
		if err != nil {
			return "", permanent(err)
		}
		text += "\n\n" + content
	}
	return text, nil
}

// answerSchema checks that an answer contains JSON that fits a schema. A nil answerSchema accepts any text.
type answerSchema struct {
	raw    json.RawMessage
	schema *blueprint.Schema
}

func compileAnswer(raw json.RawMessage) (*answerSchema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	wrapped, err := json.Marshal(map[string]any{"type": "object",
		"properties": map[string]json.RawMessage{"answer": raw}})
	if err != nil {
		return nil, err
	}
	s, err := blueprint.Compile(wrapped, run.StdinJSON)
	return &answerSchema{raw, s}, err
}

// ask adds the schema to a prompt.
func (s *answerSchema) ask(prompt string) string {
	if s == nil {
		return prompt
	}
	return prompt + "\n\nAnswer with JSON that fits this JSON Schema, and nothing else:\n" + string(s.raw)
}

// find returns the last JSON in an answer that fits the schema.
func (s *answerSchema) find(text string) (json.RawMessage, error) {
	if s == nil {
		return nil, nil
	}
	err := errors.New("it contains no JSON")
	for _, c := range slices.Backward(findJSON(text)) {
		wrapped, _ := json.Marshal(map[string]json.RawMessage{"answer": c})
		if _, err = s.schema.Check(wrapped); err == nil {
			return c, nil
		}
		err = errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "parameters: "), "$.answer", "$"))
	}
	return nil, err
}

// inheritedEnv lists the environment variables that programs of flows and graders inherit from this process.
var inheritedEnv = []string{"PATH", "HOME", "LANG", "LC_*", "TZ", "TMPDIR", "USER", "SystemRoot", "PATHEXT",
	"COMSPEC",
	"USERPROFILE", "TEMP", "TMP"}

// command runs a program. Its exit code is part of the result.
func (o operations) command(ctx context.Context, c flow.CommandCall) (flow.CommandResult, error) {
	if o.withheld != "" {
		return flow.CommandResult{}, permanent(fmt.Errorf("%s is not started: %s", c.Args[0], o.withheld))
	}
	dir, err := insideOf(c.Directory, c.Within)
	if err != nil {
		return flow.CommandResult{}, permanent(err)
	}
	stdin, err := o.resolve(ctx, "stdin", c.Stdin, c.StdinRef)
	if err != nil {
		return flow.CommandResult{}, permanent(err)
	}
	names, env := inheritedEnv, []string{"ACESCOPE_OPERATION_KEY=" + operation.CallOf(ctx).Key}
	if c.Args[0] == self {
		names = slices.Concat(names, selfEnv)
		env = append(env, o.self...)
	}
	for name, value := range c.Env {
		env = append(env, name+"="+value)
	}
	stdout, stderr := process.NewTail(maxStdout, maxStdoutTail),
		process.NewTail(flow.MaxOutput/2, flow.MaxOutput/2)
	exit := process.Run(ctx, process.Spec{Argv: program(c.Args), Dir: dir,
		Env:   process.Environ(names, nil, env),
		Input: []byte(stdin), Stdout: stdout, Stderr: stderr, DieWithParent: true})
	switch {
	case ctx.Err() != nil:
		return flow.CommandResult{}, ctx.Err()
	case exit.Err != nil:
		return flow.CommandResult{}, permanent(exit.Err)
	case exit.Class != process.Exited:
		return flow.CommandResult{}, fmt.Errorf("%s was ended by signal %s", c.Args[0], exit.Signal)
	}
	out := flow.CommandResult{ExitCode: exit.Code, Stderr: o.secrets.String(stderr.String()),
		DurationMS: float64(exit.Duration.Microseconds()) / 1000}
	whole := o.secrets.String(stdout.String())
	if c.JSON && c.Allows(exit.Code) {
		if !json.Valid([]byte(whole)) || len(whole) > flow.MaxJSON {
			return out, permanent(fmt.Errorf("the output of %s is not JSON of at most %d KB: %s", c.Args[0],
				flow.MaxJSON>>10, ace.Cut(whole, 80)))
		}
		out.JSON = json.RawMessage(whole)
		return out, nil
	}
	out.Stdout, out.StdoutRef, err = o.bounded(ctx, whole)
	return out, err
}

// self is the program name in a step that stands for the executable of this process. It connects to the
// server of the flow, with [Activities.Self] and the environment variables selfEnv.
const self = "acescope"

var selfEnv = []string{"ACESCOPE_*", "TEMPORAL_*", "XDG_*"}

func program(args []string) []string {
	if args[0] != self {
		return args
	}
	path, err := os.Executable()
	if err != nil {
		return args
	}
	return append([]string{path}, args[1:]...)
}

// insideOf returns the directory within, which is relative to dir. It fails if symbolic links lead out of
// dir.
func insideOf(dir, within string) (string, error) {
	if within == "" {
		return dir, nil
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	path, err := filepath.EvalSymlinks(filepath.Join(root, filepath.FromSlash(within)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("directory %s not found in %s", within, dir)
	}
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(root, path); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("the directory %s leaves %s", within, dir)
	}
	return path, nil
}

// blueprintRun runs a blueprint and waits for its end. A retry finds the run that an earlier attempt started.
func (o operations) blueprintRun(ctx context.Context, c flow.BlueprintCall) (flow.BlueprintResult, error) {
	if o.runs == nil {
		return flow.BlueprintResult{}, permanent(errors.New("this worker has no blueprints"))
	}
	info := activity.GetInfo(ctx)
	key := operation.CallOf(ctx).Key
	q := run.Request{RunID: fmt.Sprintf("%s%x", run.StepPrefix,
		sha256.Sum256([]byte(key)))[:len(run.StepPrefix)+16], AgentName: c.Name, Parameters: c.Parameters,
		Mode: run.Sync,
		By:   "the flow " + info.WorkflowExecution.ID}
	if _, err := o.runs.Start(ctx, q); err != nil {
		if errors.Is(err, run.ErrNoBlueprint) || errors.Is(err, run.ErrBadRequest) {
			err = permanent(err)
		}
		return flow.BlueprintResult{}, err
	}
	r, err := o.runs.Await(ctx, q.RunID)
	if err != nil {
		return flow.BlueprintResult{}, err
	}
	out := flow.BlueprintResult{RunID: q.RunID, SessionID: r.SessionID, Status: string(r.Status),
		Output: r.Output, Usage: r.Usage}
	if r.Status != run.Completed {
		return out, operation.AgentFailure(fmt.Errorf("run %s of blueprint %s ended as %s: %s", q.RunID,
			c.Name, r.Status, r.Error))
	}
	return out, nil
}
