package agent

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/price"
	"acescope/engine/agents/session"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
	"acescope/engine/store/artifact"
)

// step is the execution of one phase. It is not safe for concurrent use.
type step struct {
	task    ace.TaskContext
	caller  *model.Caller
	tools   model.Toolbox // nil if the phase has no tools
	session string        // the agent's session, once it exists
	usage   ace.Usage
}

type stepKey struct{}

func (p *provider) newStep(ctx context.Context, task ace.TaskContext, tools model.Toolbox) (context.Context, *step) {
	s := &step{task: task, tools: tools, caller: model.CallerOf(ctx)}
	if s.caller == nil {
		s.caller = &model.Caller{WorkflowID: task.WorkflowID, RunID: task.RunID, Activity: "step",
			ActivityID: session.UUID(time.Now().String()), Attempt: 1}
	}
	return context.WithValue(ctx, stepKey{}, s), s
}

func (s *step) used() *ace.Usage { return new(s.usage) }

// Complete implements [llm.Completer] with one call of the agent. A second request of a step
// resumes the same session.
func (p *provider) Complete(ctx context.Context, r llm.Request, onDelta func(string)) (llm.Response, error) {
	s, ok := ctx.Value(stepKey{}).(*step)
	if !ok {
		return llm.Response{}, model.Errorf(model.BadRequest, "%s: Complete was called outside of a phase", p.cli)
	}
	end := p.runner.Run(ctx, p.call(s, r, func(e agentcli.Event) {
		s.recordCall(ctx, e)
		if e.Kind == agentcli.KindText && e.ParentID == "" {
			onDelta(e.Text)
		} else {
			onDelta("")
		}
	}))
	s.usage = s.usage.Add(end.Usage)
	if err := failure(ctx, end); err != nil {
		return llm.Response{}, err
	}
	s.session = end.SessionID
	u := end.Usage
	return llm.Response{Text: end.Text, Stop: llm.StopEnd, Model: end.Model, ID: end.SessionID,
		Tokens: price.Tokens{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadTokens}}, nil
}

// call returns the arguments of the agent for a request.
func (p *provider) call(s *step, r llm.Request, each func(agentcli.Event)) agentcall.Call {
	at := s.caller
	seq := at.Next()
	c := agentcall.Call{CLI: p.cli, WorkingDir: p.runner.Agent(p.cli).Dir, Model: r.Model, OnEvent: each, SystemPrompt: system(r),
		ID:  session.UUID("step", at.WorkflowID, at.RunID, at.ActivityID, strconv.Itoa(seq), s.task.TaskID),
		Log: artifact.LogName{WorkflowID: at.WorkflowID, RunID: at.RunID, Activity: at.Activity, Seq: seq, Attempt: at.Attempt}}
	if c.Model == DefaultModel {
		c.Model = ""
	}
	if s.tools != nil {
		c.Permission, c.AllowedTools = s.task.SkillsConfig.PermissionMode, s.task.SkillsConfig.AllowedTools
	}
	if s.session != "" && len(r.Messages) > 1 {
		c.Resume, c.Instruction = s.session, r.Messages[len(r.Messages)-1].Text
		return c
	}
	c.Instruction = conversation(r.Messages)
	if len(c.SystemPrompt) > maxSystem {
		c.Instruction, c.SystemPrompt = c.SystemPrompt+"\n\n"+c.Instruction, ""
	}
	return c
}

// maxSystem is the number of bytes of a system prompt that is passed as an argument. A longer
// one precedes the instruction.
const maxSystem = 64 << 10

func system(r llm.Request) string {
	var parts []string
	for _, b := range r.System {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n\n")
}

// conversation formats messages as one text.
func conversation(list []llm.Message) string {
	var parts []string
	for _, m := range list {
		switch {
		case m.Text == "":
		case m.Role == llm.Assistant:
			parts = append(parts, "You answered before:\n\n"+m.Text)
		default:
			parts = append(parts, m.Text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// recordCall passes a tool call to the toolbox.
func (s *step) recordCall(ctx context.Context, e agentcli.Event) {
	w, ok := s.tools.(model.CallRecorder)
	if !ok || e.Tool == nil {
		return
	}
	switch e.Kind {
	case agentcli.KindToolUse:
		w.Begun(ctx, e.Tool.ID, e.Tool.Name, valid(e.Tool.Args))
	case agentcli.KindToolResult:
		end := model.CallEnd{Result: valid(e.Tool.Result), Accepted: !e.Tool.Denied, OK: e.Tool.OK, Took: e.Tool.Duration}
		if !end.OK {
			end.Error = errorText(end.Result)
		}
		w.Ended(ctx, e.Tool.ID, end)
	}
}

func valid(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		return nil
	}
	return raw
}

// maxError is the number of bytes recorded of a tool's error.
const maxError = 500

// errorText returns the result of a failed tool as text.
func errorText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return ace.Cut(text, maxError)
}

// retryAfter is the wait before the next attempt of the activity after a failure of the agent's
// service. The next attempt knows what this one did.
const retryAfter = 10 * time.Second

// failure returns the error of a failed call. Unless it can be retried, its kind is the class
// of the failure.
func failure(ctx context.Context, end *agentcall.Result) error {
	class := agentcli.Class(end.ExitClass)
	switch {
	case end.Success:
		return nil
	case class == agentcall.ClassCanceled && ctx.Err() != nil:
		return ctx.Err()
	}
	text := end.Error
	if end.LogPath != "" {
		text += " (log: " + end.LogPath + ")"
	}
	e := &model.Error{Kind: model.ErrorKind(class), Message: end.Provider + ": " + text}
	if class == agentcli.ClassRefusal {
		e.Kind = model.Refused
	}
	if !end.Retry {
		return e
	}
	e.RetryAfter = retryAfter
	switch class {
	case agentcli.ClassRateLimited:
		e.Kind = model.RateLimited
	case agentcli.ClassOverloaded:
		e.Kind = model.Overloaded
	case agentcli.ClassAPIError:
		e.Kind = model.ServerError
	default:
		e.Kind = model.Network
	}
	return e
}
