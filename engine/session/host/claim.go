package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	"acescope/engine/agentcli"
	"acescope/engine/process"
	"acescope/engine/session"
)

// Types of the failures by which a session is not taken, and of those of turns that are not
// the agent's.
const (
	TypeAgentMissing = "AgentMissing"
	TypeAgentTooOld  = "AgentTooOld"
	TypeBadDirectory = "BadDirectory"
	TypeRefused      = "Refused" // by policy, or because the agent has no way for it
	TypeLogBroken    = "LogBroken"
	TypeSessionInUse = "SessionInUse"
	TypeHostGone     = "HostGone"
	TypeCallLost     = "CallLost"
)

// versionWithin is how long an agent may take to tell its version.
const versionWithin = 20 * time.Second

func refused(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}

// claim takes a session, where it can live here.
func (h *Host) claim(ctx context.Context, in session.Input) (session.Host, error) {
	h.at("claim")
	if err := in.Check(); err != nil {
		return session.Host{}, refused(TypeRefused, "%v", err)
	}
	version, err := h.vet(ctx, session.TurnInput{SessionID: in.SessionID, Agent: in.Agent, Model: in.Model, WorkingDir: in.WorkingDir,
		SystemPrompt: in.SystemPrompt, PermissionMode: in.PermissionMode, AllowedTools: in.AllowedTools, Served: in.Served,
		MaxTurns: in.MaxTurns, BudgetUSD: in.BudgetUSD, MCPServers: in.MCPServers})
	if err != nil {
		return session.Host{}, err
	}
	h.log.Info("session is taken", "session", in.SessionID, "agent", in.Agent, "version", version.String(), "queue", h.queue)
	return session.Host{Name: h.name, Queue: h.queue, Version: version.String()}, nil
}

// vet looks whether a session can live here, and gives the version of its agent.
func (h *Host) vet(ctx context.Context, in session.TurnInput) (version agentcli.Version, err error) {
	info, err := os.Stat(in.WorkingDir)
	if err != nil || !info.IsDir() {
		return version, refused(TypeBadDirectory, "%s: there is no such directory on %s", in.WorkingDir, h.name)
	}
	for _, tool := range in.Served {
		if !slices.Contains(ServedTools(), tool) {
			return version, refused(TypeRefused, "tool %q is none that sessions serve; those are %v", tool, ServedTools())
		}
	}
	adapter, err := agentcli.For(agentcli.CLI(in.Agent))
	if err != nil {
		return version, refused(TypeRefused, "%v", err)
	}
	if len(in.Served) > 0 && !adapter.Features().MCP {
		return version, refused(TypeRefused, "%s has no way to be given the tools of a session", in.Agent)
	}
	// The command is made only to see whether there is a way.
	call, _, err := h.equipped(in, h.call(adapter, in, "x", ""))
	if err == nil {
		_, err = adapter.Command(call)
	}
	if err != nil {
		return version, refused(TypeRefused, "%v", err)
	}
	return h.version(ctx, adapter)
}

// vet does the same at the first turn of a session that nobody claimed. What speaks against
// it is the turn's result.
func (r *run) vet() (refusal session.TurnResult, fine bool, err error) {
	if !r.in.Unclaimed {
		return refusal, true, nil
	}
	version, err := r.h.vet(r.give, r.in)
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		r.version = version.String()
		return refusal, true, nil
	case errors.As(err, &app) && app.NonRetryable():
		return r.refusal(app.Type(), errors.New(app.Message())), false, nil
	}
	return refusal, false, err
}

// version asks an agent for its version.
func (h *Host) version(ctx context.Context, adapter agentcli.Adapter) (agentcli.Version, error) {
	out, errs := process.NewTail(4<<10, 0), process.NewTail(4<<10, 0)
	exit := process.Run(ctx, process.Spec{Argv: adapter.VersionArgv(h.o.Binaries[adapter.CLI()]), Env: h.environ(adapter, agentcli.Command{}),
		Stdout: out, Stderr: errs, Timeout: versionWithin})
	if err := ctx.Err(); err != nil {
		return agentcli.Version{}, err
	}
	var none agentcli.Version
	switch {
	case process.IsStart(exit.Err, process.NotFound):
		return none, refused(TypeAgentMissing, "%s is not installed on %s; get it by: %s", adapter.CLI(), h.name, adapter.InstallHint())
	case exit.Err != nil:
		return none, refused(TypeAgentMissing, "%v", exit.Err)
	}
	version, ok := agentcli.ParseVersion(out.String() + "\n" + errs.String())
	switch {
	case exit.Class == process.TimedOut:
		return none, errors.New(string(adapter.CLI()) + " did not tell its version in time")
	case !ok:
		return none, refused(TypeAgentMissing, "%s does not tell its version; it may not be the agent that is meant", adapter.CLI())
	case version.Before(adapter.Oldest()):
		return none, refused(TypeAgentTooOld, "%s %s on %s is too old: %s or newer is needed; get it by: %s",
			adapter.CLI(), version, h.name, adapter.Oldest(), adapter.InstallHint())
	}
	return version, nil
}

// environ is the environment of an agent's process.
func (h *Host) environ(adapter agentcli.Adapter, cmd agentcli.Command) []string {
	return process.Environ(adapter.Inherit(), cmd.Unset, append(slices.Clone(cmd.Env), "MCP_TOOL_TIMEOUT=86400000"))
}

// serverName is what the agent knows the session's own tools by.
const serverName = session.ServedName

// call is how the agent is called for a turn. The id is that of a conversation that begins,
// unless it is one that is resumed; an agent that takes turns over standard input is given
// none here.
func (h *Host) call(adapter agentcli.Adapter, in session.TurnInput, instruction, resume string) agentcli.Call {
	can := adapter.Features()
	c := agentcli.Call{Binary: h.o.Binaries[adapter.CLI()], WorkingDir: in.WorkingDir, Model: in.Model, Resume: resume,
		Permission: agentcli.Permission(in.PermissionMode), AllowFull: h.o.AllowFull[agentcli.CLI(in.Agent)], AllowedTools: slices.Clone(in.AllowedTools),
		MaxTurns: in.MaxTurns, MaxBudgetUSD: in.BudgetUSD, SystemPrompt: in.SystemPrompt}
	if !can.Streaming {
		c.Instruction = instruction
	} else {
		c.Streaming, c.AskPermission, c.Deltas = true, true, true
	}
	if can.SessionID && resume == "" {
		c.SessionID = agentSession(in)
	}
	if len(in.Served) > 0 {
		c.HostServer = serverName
		for _, tool := range in.Served {
			c.AllowedTools = append(c.AllowedTools, "mcp__"+serverName+"__"+tool)
		}
	}
	return c
}

// agentSession is the agent's id of a conversation, where it lets others choose.
func agentSession(in session.TurnInput) string {
	if in.AgentSessionID != "" {
		return in.AgentSessionID
	}
	return session.UUID("agent", in.SessionID)
}
