package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/agentcli"
	"acescope/engine/agentrun"
	"acescope/engine/artifact"
	"acescope/engine/session"
)

// agentCLI calls an agent. What another attempt may mend is an error, whose type is the
// class and whose details are the result; every other end is a result.
func (a *Activities) agentCLI(ctx context.Context, in ace.AgentCall) (ace.AgentResult, error) {
	instruction, err := a.instruction(in)
	if err != nil {
		return ace.AgentResult{}, permanent(err)
	}
	call := callOf(ctx, in.Provider, in.ActivityName, in.SequenceNumber)
	call.Instruction, call.WorkingDir, call.Resume, call.Model = instruction, in.WorkingDir, in.SessionID, in.Model
	call.Permission, call.AllowedTools, call.DisallowedTools = in.PermissionMode, in.AllowedTools, in.DisallowedTools
	call.SystemPrompt, call.MaxTurns, call.MaxBudgetUSD = in.SystemPrompt, in.MaxTurns, in.MaxBudgetUSD
	call.Timeout = time.Duration(in.TimeoutMS) * time.Millisecond
	end, err := a.callAgent(ctx, call)
	if err != nil {
		return ace.AgentResult{}, err
	}
	return end.AgentResult, nil
}

// callOf is the part of a call that the activity itself decides: who it is, and where its
// log lies.
func callOf(ctx context.Context, provider, name string, seq *int) agentrun.Call {
	info := activity.GetInfo(ctx)
	if provider == "" {
		provider = string(agentcli.Claude)
	}
	if name == "" {
		name = info.ActivityType.Name
	}
	n, err := strconv.Atoi(info.ActivityID)
	if err != nil || n < 0 {
		n = 0
	}
	if seq != nil {
		n = *seq
	}
	run := info.WorkflowExecution
	return agentrun.Call{CLI: agentcli.CLI(provider), ID: session.UUID(run.ID, run.RunID, info.ActivityID), Progress: &agentrun.Progress{},
		Log: artifact.LogName{WorkflowID: run.ID, RunID: run.RunID, Activity: name, Seq: n, Attempt: info.Attempt}}
}

// callAgent makes a call, with heartbeats that tell how far it is.
func (a *Activities) callAgent(ctx context.Context, c agentrun.Call) (*agentrun.End, error) {
	if c.WorkingDir == "" {
		return nil, permanent(errors.New("working_dir is missing: say in which directory the agent works"))
	}
	if c.Timeout < 0 {
		return nil, permanent(fmt.Errorf("timeout_ms is below 0"))
	}
	stop := beatWith(ctx, func() []any { return []any{c.Progress.Now()} })
	defer stop()
	end := a.Agents.Run(ctx, c)
	return end, agentError(ctx, end)
}

// agentError is the error of a call that is to be made again, or that was cancelled.
func agentError(ctx context.Context, end *agentrun.End) error {
	class := agentcli.Class(end.ExitClass)
	switch {
	case class == agentrun.ClassCancelled && ctx.Err() != nil:
		return temporal.NewCanceledError(end.AgentResult)
	case end.Retry:
		return temporal.NewApplicationError(withLog(end), string(class), end.AgentResult)
	}
	return nil
}

// withLog is what went wrong, and where to read more of it.
func withLog(end *agentrun.End) string {
	if end.LogPath == "" {
		return end.Error
	}
	return end.Error + " (log: " + end.LogPath + ")"
}

// instruction is the text that an agent is given.
func (a *Activities) instruction(in ace.AgentCall) (string, error) {
	text, err := a.textOf("instruction", in.Instruction, in.InstructionRef)
	if err != nil || in.Task == nil {
		return text, err
	}
	task, err := a.task(*in.Task)
	if err != nil {
		return "", err
	}
	if text != "" {
		text += "\n\n"
	}
	return text + task, nil
}

// textOf is a text that is given in place or by reference.
func (a *Activities) textOf(what, text string, ref *ace.Ref) (string, error) {
	if ref == nil {
		return text, nil
	}
	data, err := a.Artifacts.Get(*ref, maxPrompt)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return string(data), nil
}

// readLog reads the log of a call, by its reference only. What it holds decides a workflow's
// way only through this activity, whose result is recorded.
func (a *Activities) readLog(ctx context.Context, in ace.ReadLogInput) (ace.LogContent, error) {
	defer beat(ctx)()
	f, err := a.Artifacts.Open(in.Log)
	if err != nil {
		return ace.LogContent{}, permanent(fmt.Errorf("log: %w", err))
	}
	defer f.Close()
	limit := int64(min(max(in.Limit, 0), ace.MaxLogPage))
	var out ace.LogContent
	l, err := agentrun.ReadLog(contextReader{ctx, f}, func(n int64, e agentcli.Event) {
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
	out.Provider, out.Events, out.SessionID = l.Header.Provider, l.Events, l.Outcome.SessionID
	out.Success, out.ExitClass, out.CostUSD = l.Outcome.OK, string(l.Outcome.Class), l.Outcome.Usage.CostUSD
	if !l.Outcome.OK {
		out.Error = l.Outcome.Sentence
	}
	if e := l.End; e != nil {
		out.Success, out.ExitClass, out.Error, out.CostUSD, out.DurationMS = e.Success, e.ExitClass, e.Error, e.CostUSD, e.DurationMS
		if e.SessionID != "" {
			out.SessionID = e.SessionID
		}
	}
	out.Result = l.Outcome.Text
	if len(out.Result) > ace.MaxLogResult {
		ref, err := a.Artifacts.PutBytes(ctx, []byte(out.Result), "text/plain; charset=utf-8")
		if err != nil {
			return ace.LogContent{}, err
		}
		out.Result, out.ResultRef = ace.Cut(out.Result, ace.MaxLogResult), &ref
	}
	return out, nil
}

// logEvent is an event as a page shows it.
func logEvent(n int64, e agentcli.Event) ace.LogEvent {
	out := ace.LogEvent{N: n, Kind: string(e.Kind), Name: e.Name, Text: ace.Cut(e.Text, ace.PreviewBytes)}
	if e.Tool != nil {
		out.Name, out.Text = e.Tool.Name, string(ace.Preview(e.Tool.Args))
		if e.Kind == agentcli.KindToolResult {
			ok := e.Tool.OK
			out.OK, out.Text = &ok, string(ace.Preview(e.Tool.Result))
		}
	}
	if e.Result != nil {
		out.Name, out.Text = e.Result.Subtype, ace.Cut(e.Result.Text, ace.PreviewBytes)
	}
	return out
}

// task is the text of one task of a breakdown.
func (a *Activities) task(pick ace.TaskPick) (string, error) {
	data, err := a.Artifacts.Get(pick.Breakdown, maxBreakdown)
	if err != nil {
		return "", fmt.Errorf("breakdown: %w", err)
	}
	var b ace.Breakdown
	if err := json.Unmarshal(data, &b); err != nil {
		return "", fmt.Errorf("breakdown: %w", err)
	}
	if pick.Index < 0 || pick.Index >= len(b.Tasks) {
		return "", fmt.Errorf("breakdown: there is no task %d, it has %d", pick.Index, len(b.Tasks))
	}
	return taskText(b.Tasks[pick.Index])
}
