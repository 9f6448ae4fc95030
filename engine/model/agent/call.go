package agent

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/agentrun"
	"acescope/engine/artifact"
	"acescope/engine/model"
	"acescope/engine/model/llm"
	"acescope/engine/price"
	"acescope/engine/session"
)

// step is one step that is being served. It is for one goroutine.
type step struct {
	task    ace.TaskContext
	place   *model.Place
	tools   model.Toolbox // nil of a step that has none
	session string        // of the agent, once it has one
	usage   ace.Usage
}

type stepKey struct{}

func (p *provider) enter(ctx context.Context, task ace.TaskContext, tools model.Toolbox) (context.Context, *step) {
	s := &step{task: task, tools: tools, place: model.PlaceOf(ctx)}
	if s.place == nil {
		s.place = &model.Place{WorkflowID: task.WorkflowID, RunID: task.RunID, Activity: "step", ActivityID: session.UUID(time.Now().String()), Attempt: 1}
	}
	return context.WithValue(ctx, stepKey{}, s), s
}

func (s *step) used() *ace.Usage {
	u := s.usage
	return &u
}

// Complete implements [llm.Completer]: the agent is called once. A second question of a step
// goes to the same session.
func (p *provider) Complete(ctx context.Context, r llm.Request, onDelta func(string)) (llm.Response, error) {
	s, ok := ctx.Value(stepKey{}).(*step)
	if !ok {
		return llm.Response{}, model.Errorf(model.BadRequest, "%s: it is called outside a step", p.cli)
	}
	end := p.runner.Run(ctx, p.call(s, r, func(e agentcli.Event) {
		s.witness(ctx, e)
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

// call is how the agent is called for a request.
func (p *provider) call(s *step, r llm.Request, each func(agentcli.Event)) agentrun.Call {
	seq := s.place.Next()
	at := s.place
	c := agentrun.Call{CLI: p.cli, WorkingDir: p.runner.Agent(p.cli).Dir, Model: r.Model, Each: each, SystemPrompt: system(r),
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

// maxSystem is how long a system prompt may be to be given as such, in bytes: it is an
// argument. A longer one comes before the instruction.
const maxSystem = 64 << 10

func system(r llm.Request) string {
	var parts []string
	for _, b := range r.System {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n\n")
}

// conversation is messages as one text.
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

// witness has the toolbox take note of a tool call.
func (s *step) witness(ctx context.Context, e agentcli.Event) {
	w, ok := s.tools.(model.Witness)
	if !ok || e.Tool == nil {
		return
	}
	switch e.Kind {
	case agentcli.KindToolUse:
		w.Begun(ctx, e.Tool.ID, e.Tool.Name, valid(e.Tool.Args))
	case agentcli.KindToolResult:
		end := model.CallEnd{Result: valid(e.Tool.Result), Accepted: !e.Tool.Denied, OK: e.Tool.OK, Took: e.Tool.Duration}
		if !end.OK {
			end.Error = said(end.Result)
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

// maxError is how much is told of a tool's error, in bytes.
const maxError = 500

// said is what a failed tool gave, as a text.
func said(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "") + "…"
	}
	return text
}

// later is after which time a call is made again that what the agent runs on has failed: by
// the activity's next attempt, which knows what this one did.
const later = 10 * time.Second

// failure is the error of a call that did not go well. Its kind is the class of the end,
// where no retry mends it.
func failure(ctx context.Context, end *agentrun.End) error {
	class := agentcli.Class(end.ExitClass)
	switch {
	case end.Success:
		return nil
	case class == agentrun.ClassCancelled && ctx.Err() != nil:
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
	e.RetryAfter = later
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
