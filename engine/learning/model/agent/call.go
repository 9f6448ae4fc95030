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
	"acescope/engine/agents/session"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/llm"
	"acescope/engine/store/artifact"
)

type completer struct {
	runner *agentcall.Runner
	cli    agentcli.CLI
}

// Complete implements [llm.Completer] with one call of the agent. A second request of a step
// resumes the same session.
func (c *completer) Complete(ctx context.Context, r llm.Request, onDelta func(string)) (llm.Response, error) {
	s := r.Step
	end := c.runner.Run(ctx, c.call(r, func(e agentcli.Event) {
		recordCall(ctx, s.Tools, e)
		if e.Kind == agentcli.KindText && e.ParentID == "" {
			onDelta(e.Text)
		} else {
			onDelta("")
		}
	}))
	if err := failure(ctx, end); err != nil {
		return llm.Response{}, err
	}
	s.Session = end.SessionID
	return llm.Response{Text: end.Text, Stop: llm.StopEnd, Model: end.Model, ID: end.SessionID,
		Usage: &end.Usage}, nil
}

// call returns the arguments of the agent for a request.
func (c *completer) call(r llm.Request, each func(agentcli.Event)) agentcall.Call {
	s := r.Step
	at := s.Caller
	seq := at.Next()
	call := agentcall.Call{CLI: c.cli, OnEvent: each,
		Call: agentcli.Call{WorkingDir: c.runner.Agent(c.cli).Dir, SystemPrompt: r.SystemText()},
		ID:   session.UUID("step", at.WorkflowID, at.RunID, at.ActivityID, strconv.Itoa(seq), s.Task.TaskID),
		Log: artifact.LogName{WorkflowID: at.WorkflowID, RunID: at.RunID, Activity: at.Activity, Seq: seq,
			Attempt: at.Attempt}}
	if r.Model != DefaultModel {
		call.Model = r.Model
	}
	if s.Tools != nil {
		call.Permission = agentcli.Permission(s.Task.SkillsConfig.PermissionMode)
		call.AllowedTools = s.Task.SkillsConfig.AllowedTools
	}
	if s.Session != "" && len(r.Messages) > 1 {
		call.Resume, call.Instruction = s.Session, r.Messages[len(r.Messages)-1].Text
		return call
	}
	call.Instruction = conversation(r.Messages)
	if len(call.SystemPrompt) > maxSystem {
		call.Instruction, call.SystemPrompt = call.SystemPrompt+"\n\n"+call.Instruction, ""
	}
	return call
}

// maxSystem is the number of bytes of a system prompt that is passed as an argument. A longer
// one precedes the instruction.
const maxSystem = 64 << 10

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
func recordCall(ctx context.Context, tools model.Toolbox, e agentcli.Event) {
	w, ok := tools.(model.CallRecorder)
	if !ok || e.Tool == nil {
		return
	}
	switch e.Kind {
	case agentcli.KindToolUse:
		w.Begun(ctx, e.Tool.ID, e.Tool.Name, valid(e.Tool.Args))
	case agentcli.KindToolResult:
		end := model.CallEnd{Result: valid(e.Tool.Result), Accepted: !e.Tool.Denied, OK: e.Tool.OK,
			Took: e.Tool.Duration}
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
	if end.Elsewhere() {
		e.Kind = model.NoAgent
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
