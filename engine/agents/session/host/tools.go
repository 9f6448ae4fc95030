package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/internal/sleep"
)

// servedTool is a tool that sessions offer to their agents. It is confined to a directory.
type servedTool struct {
	name, description string
	schema            json.RawMessage
	// run returns the tool's result. The error is the tool's own failure, for the agent.
	run func(ctx context.Context, dir string, args json.RawMessage) (string, error)
	// argv returns the program that a call runs, if it runs one.
	argv func(args json.RawMessage) ([]string, error)
}

var servedTools = []servedTool{
	{"read_file", "Reads a text file below the working directory. Read a long file in parts with offset.",
		json.RawMessage(`{
		"type":"object","required":["path"],"additionalProperties":false,"properties":{
		"path":{"type":"string","description":"relative to the working directory"},
		"offset":{"type":"integer","minimum":0,"description":"the first byte to read"},
		"limit":{"type":"integer","minimum":1,"description":"maximum number of bytes"}}}`), readFile, nil},
	{"write_file", "Writes a whole file below the working directory, atomically. Creates missing directories.", json.RawMessage(`{
		"type":"object","required":["path","content"],"additionalProperties":false,"properties":{
		"path":{"type":"string","description":"relative to the working directory"},
		"content":{"type":"string"}}}`), writeFile, nil},
	{"run_command", "Runs a program in the working directory, without a shell: no pipes, redirections or variables.", json.RawMessage(`{
		"type":"object","additionalProperties":false,"properties":{
		"command":{"type":"string","description":"the program and its arguments, quoted as for a shell"},
		"argv":{"type":"array","items":{"type":"string"},"description":"the program and its arguments, instead of command"},
		"timeout_seconds":{"type":"integer","minimum":1,"maximum":3600}}}`), runCommand, commandArgv},
}

// prepare returns a call of a tool with valid, normalized arguments, and what rules match.
func (t servedTool) prepare(dir string, raw json.RawMessage) (json.RawMessage, session.Call, error) {
	args, err := session.NormalizeArgs(raw)
	if err != nil {
		return nil, session.Call{}, err
	}
	if err := validate(t.schema, args); err != nil {
		return nil, session.Call{}, fmt.Errorf("malformed arguments: %w", err)
	}
	var argv []string
	if t.argv != nil {
		if argv, err = t.argv(args); err != nil {
			return nil, session.Call{}, err
		}
	}
	return args, session.NewServedCall(dir, t.name, args, argv), nil
}

func validate(schema, args json.RawMessage) error {
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(args, &fields); err != nil {
		return err
	}
	return resolved.Validate(fields)
}

func findTool(name string) (servedTool, bool) {
	i := slices.IndexFunc(servedTools, func(t servedTool) bool { return t.name == name })
	if i < 0 {
		return servedTool{}, false
	}
	return servedTools[i], true
}

// ServedTools returns the names of the tools that sessions can offer.
func ServedTools() (names []string) {
	for _, t := range servedTools {
		names = append(names, t.name)
	}
	return names
}

func unknownTool(name string) string {
	return fmt.Sprintf("unknown served tool %q; use %s", name, strings.Join(ServedTools(), ", "))
}

// pendingCall is a call of a served tool whose agent waits. It has the unredacted arguments and
// result; those in the history are redacted.
type pendingCall struct {
	args    json.RawMessage
	started atomic.Bool
	output  atomic.Pointer[toolOutput] // nil until the call has finished
}

type toolOutput struct {
	text   string
	failed bool
}

// callTool answers an agent's call of a served tool: the session decides, and executes the call
// with an activity.
func (a *agent) callTool(ctx context.Context, id, tool string, args json.RawMessage) (text string,
	failed bool) {
	a.mu.Lock()
	t := a.attempt
	a.mu.Unlock()
	if t == nil {
		return "the turn has ended", true
	}
	served, known := findTool(tool)
	if !known {
		return unknownTool(tool), true
	}
	args, matched, err := served.prepare(t.in.WorkingDir, args)
	if err != nil {
		return err.Error(), true
	}
	if id == "" {
		id = t.newCallID()
	}
	call := &pendingCall{args: args}
	if _, pending := a.h.calls.LoadOrStore(id, call); pending {
		return "this call is already in progress", true
	}
	request := session.ToolRequest{ID: id, Name: tool, Args: args, Served: true}
	answer, err := t.requestTool(ctx, request, matched)
	a.h.calls.Delete(id)
	output := call.output.Load()
	switch {
	case err != nil:
		return "the session cannot be asked: " + err.Error(), true
	case output != nil:
		return output.text, output.failed
	case answer.Action != session.Allow:
		return denial(answer), true
	case answer.Result != nil:
		return answer.Result.Text, answer.Result.Error
	case answer.Failed != nil:
		return answer.Failed.Message, true
	}
	return "the call has no result", true
}

// runTool executes run_session_tool. The call fails if its agent no longer waits: the result
// would be lost, and the agent requests the call again.
func (h *Host) runTool(ctx context.Context, in session.ToolCall) (session.ToolResult, error) {
	h.step("tool")
	heartbeat, stop := context.WithCancel(ctx)
	defer stop()
	go sleep.Every(heartbeat, heartbeatInterval, func() { activity.RecordHeartbeat(heartbeat) })
	return h.executeCall(ctx, in)
}

func (h *Host) executeCall(ctx context.Context, in session.ToolCall) (session.ToolResult, error) {
	v, _ := h.calls.Load(in.ID)
	call, ok := v.(*pendingCall)
	if !ok || !call.started.CompareAndSwap(false, true) {
		return session.ToolResult{}, refused(TypeCallLost, "the agent no longer waits for this call")
	}
	tool, known := findTool(in.Name)
	if !known {
		return session.ToolResult{}, refused(TypeRefused, "%s", unknownTool(in.Name))
	}
	began := time.Now()
	text, err := tool.run(ctx, in.WorkingDir, call.args)
	if ctx.Err() != nil {
		return session.ToolResult{}, temporal.NewCanceledError()
	}
	if err != nil {
		text = err.Error()
	}
	call.output.Store(&toolOutput{text, err != nil})
	h.step("tool_ran")
	h.log.Info("tool executed", "session", in.SessionID, "tool", in.Name, "call", in.ID,
		"failed", err != nil, "duration", time.Since(began))
	return h.toolResult(ctx, text, err != nil)
}

// toolResult returns the result for the history: redacted, and as an artifact if it is long.
func (h *Host) toolResult(ctx context.Context, text string, failed bool) (session.ToolResult, error) {
	text = h.redact.String(text)
	r := session.ToolResult{Text: ace.Cut(text, 8*ace.PreviewBytes), Error: failed}
	if r.Text == text {
		return r, nil
	}
	ref, err := h.o.Artifacts.PutBytes(ctx, []byte(text), "text/plain; charset=utf-8")
	if err != nil {
		return r, fmt.Errorf("store the tool's result: %w", err)
	}
	r.Ref = &ref
	return r, nil
}
