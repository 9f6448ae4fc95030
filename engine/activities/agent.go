package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/store/artifact"
)

// agents are the activities that call an agent or read the log of a call.
type agents struct {
	*inputs
	calls *agentcall.Runner
}

// agentCLI calls an agent. It returns an error only if a retry may help: the type is the exit
// class and the details are the result. Every other end of the call is a result.
func (g *agents) agentCLI(ctx context.Context, in ace.AgentCall) (ace.AgentResult, error) {
	instruction, taskID, err := g.instruction(ctx, in)
	if err != nil {
		return ace.AgentResult{}, permanent(err)
	}
	call := newCall(ctx, in.Provider, in.ActivityName, in.SequenceNumber)
	in.Instruction = instruction
	setCall(&call, in)
	end, err := g.callAgent(ctx, call)
	if err != nil {
		return ace.AgentResult{}, err
	}
	end.TaskID = taskID
	return end.AgentResult, nil
}

// setCall copies the fields of the input to a call.
func setCall(call *agentcall.Call, in ace.AgentCall) {
	call.Instruction = in.Instruction
	call.WorkingDir = in.WorkingDir
	call.Resume = in.SessionID
	call.Model = in.Model
	call.Permission = agentcli.Permission(in.PermissionMode)
	call.AllowedTools = in.AllowedTools
	call.DisallowedTools = in.DisallowedTools
	call.SystemPrompt = in.SystemPrompt
	call.MaxTurns = in.MaxTurns
	call.MaxBudgetUSD = in.MaxBudgetUSD
	call.Timeout = time.Duration(in.TimeoutMS) * time.Millisecond
}

// newCall returns a call with the fields that depend on the activity: its identity and its log.
func newCall(ctx context.Context, provider, name string, seq *int) agentcall.Call {
	info := activity.GetInfo(ctx)
	n, err := strconv.Atoi(info.ActivityID)
	if err != nil || n < 0 {
		n = 0
	}
	if seq != nil {
		n = *seq
	}
	run := info.WorkflowExecution
	return agentcall.Call{
		CLI:      agentcli.CLI(cmp.Or(provider, string(agentcli.Claude))),
		ID:       session.UUID(run.ID, run.RunID, info.ActivityID),
		Progress: &agentcall.Progress{},
		Log: artifact.LogName{WorkflowID: run.ID, RunID: run.RunID,
			Activity: cmp.Or(name, info.ActivityType.Name),
			Seq:      n, Attempt: info.Attempt},
	}
}

// elsewhereDelay is the delay before another worker may take a call whose agent is missing here.
const elsewhereDelay = time.Second

// callAgent calls an agent and reports its progress in heartbeats.
func (g *agents) callAgent(ctx context.Context, c agentcall.Call) (*agentcall.Result, error) {
	if c.WorkingDir == "" {
		return nil, permanent(
			errors.New("working_dir is missing: set the directory in which the agent works"))
	}
	if c.Timeout < 0 {
		return nil, permanent(errors.New("timeout_ms is negative"))
	}
	defer heartbeat(ctx, func() any { return c.Progress.Now() })()
	end := g.calls.Run(ctx, c)
	class := agentcli.Class(end.ExitClass)
	switch {
	case class == agentcall.ClassCanceled && ctx.Err() != nil:
		return end, temporal.NewCanceledError(end.AgentResult)
	case end.Retry:
		message := end.Error
		if end.LogPath != "" {
			message += " (log: " + end.LogPath + ")"
		}
		o := temporal.ApplicationErrorOptions{Details: []any{end.AgentResult}}
		if end.Elsewhere() {
			o.NextRetryDelay = elsewhereDelay
		}
		return end, temporal.NewApplicationErrorWithOptions(message, string(class), o)
	}
	return end, nil
}

// instruction returns the instruction of a call, including its task.
func (g *agents) instruction(ctx context.Context, in ace.AgentCall) (text, taskID string, err error) {
	text, err = g.resolve(ctx, "instruction", in.Instruction, in.InstructionRef)
	if err != nil || in.Task == nil {
		return text, "", err
	}
	task, err := g.task(ctx, *in.Task)
	if err != nil {
		return "", "", err
	}
	detail, err := taskText(task)
	if err != nil || text == "" {
		return detail, task.ID, err
	}
	return text + "\n\n" + detail, task.ID, nil
}

// readLog reads the log of a call by its reference. Workflows read logs only through this
// activity, so that their decisions are recorded.
func (g *agents) readLog(ctx context.Context, in ace.ReadLogInput) (ace.LogContent, error) {
	defer heartbeat(ctx)()
	f, err := g.artifacts.Open(ctx, in.Log)
	if err != nil {
		return ace.LogContent{}, permanent(fmt.Errorf("log: %w", err))
	}
	defer f.Close()
	defer context.AfterFunc(ctx, func() { f.Close() })() // ends the reading
	limit := int64(min(max(in.Limit, 0), ace.MaxLogPage))
	var out ace.LogContent
	l, err := agentcall.ReadLog(f, func(n int64, e agentcli.Event) {
		switch {
		case n < in.From || limit == 0:
		case n < in.From+limit:
			out.Page = append(out.Page, logEvent(n, e))
		case n == in.From+limit:
			out.Next = n
		}
	})
	switch {
	case ctx.Err() != nil:
		return ace.LogContent{}, ctx.Err()
	case err != nil:
		return ace.LogContent{}, permanent(fmt.Errorf("log: %w", err))
	}
	out.Provider = l.Header.Provider
	out.Events = l.Events
	out.SessionID = l.Outcome.SessionID
	out.Success = l.Outcome.OK
	out.ExitClass = string(l.Outcome.Class)
	out.CostUSD = l.Outcome.Usage.CostUSD
	if !l.Outcome.OK {
		out.Error = l.Outcome.Sentence
	}
	if e := l.End; e != nil {
		out.Success = e.Success
		out.ExitClass = e.ExitClass
		out.Error = e.Error
		out.CostUSD = e.CostUSD
		out.DurationMS = e.DurationMS
		out.SessionID = cmp.Or(e.SessionID, out.SessionID)
	}
	out.Result = l.Outcome.Text
	if len(out.Result) > ace.MaxLogResult {
		ref, err := g.artifacts.PutBytes(ctx, []byte(out.Result), "text/plain; charset=utf-8")
		if err != nil {
			return ace.LogContent{}, err
		}
		out.Result = ace.Cut(out.Result, ace.MaxLogResult)
		out.ResultRef = &ref
	}
	return out, nil
}

// logEvent truncates an event for a page.
func logEvent(n int64, e agentcli.Event) ace.LogEvent {
	out := ace.LogEvent{N: n, Kind: string(e.Kind), Name: e.Name, Text: ace.Cut(e.Text, ace.PreviewBytes)}
	if e.Tool != nil {
		out.Name, out.Text = e.Tool.Name, string(ace.Preview(e.Tool.Args))
		if e.Kind == agentcli.KindToolResult {
			out.OK, out.Text = new(e.Tool.OK), string(ace.Preview(e.Tool.Result))
		}
	}
	if e.Result != nil {
		out.Name, out.Text = e.Result.Subtype, ace.Cut(e.Result.Text, ace.PreviewBytes)
	}
	return out
}

// task returns the text of one task of a breakdown.
func (g *agents) task(ctx context.Context, pick ace.TaskPick) (task ace.BreakdownTask, err error) {
	data, err := g.artifacts.Get(ctx, pick.Breakdown, maxBreakdown)
	if err != nil {
		return task, fmt.Errorf("breakdown: %w", err)
	}
	var b ace.Breakdown
	if err := json.Unmarshal(data, &b); err != nil {
		return task, fmt.Errorf("breakdown: %w", err)
	}
	if pick.Index < 0 || pick.Index >= len(b.Tasks) {
		return task, fmt.Errorf("breakdown: task %d is out of range: it has %s", pick.Index,
			ace.Count(len(b.Tasks), "task"))
	}
	return b.Tasks[pick.Index], nil
}
