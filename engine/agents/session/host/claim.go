package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"acescope/engine/agents/agentcall"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/internal/process"
)

// Failure types of a session that is not claimed, and of turns that fail outside the agent.
const (
	TypeAgentMissing = "AgentMissing"
	TypeAgentTooOld  = "AgentTooOld"
	TypeBadDirectory = "BadDirectory"
	TypeRefused      = "Refused" // by policy, or not supported by the agent
	TypeLogBroken    = "LogBroken"
	TypeSessionInUse = "SessionInUse"
	TypeHostGone     = "HostGone"
	TypeCallLost     = "CallLost"
	TypeUnreadable   = "HistoryUnreadable"
)

func refused(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}

// elsewhere returns the error of a claim that another worker of the task queue may make.
func elsewhere(kind, message string) error {
	return temporal.NewApplicationErrorWithOptions(message, kind,
		temporal.ApplicationErrorOptions{NextRetryDelay: 500 * time.Millisecond})
}

// RegisterNoClaim registers a claim_session that leaves every session to another worker.
func RegisterNoClaim(r worker.ActivityRegistry, why string) {
	claim := func(context.Context, session.Input) (session.Host, error) {
		return session.Host{}, elsewhere(TypeAgentMissing, process.Hostname()+": "+why)
	}
	r.RegisterActivityWithOptions(claim, activity.RegisterOptions{Name: session.ActivityClaim})
}

// claim executes claim_session: it accepts a session that can run on this host.
func (h *Host) claim(ctx context.Context, in session.Input) (session.Host, error) {
	h.step("claim")
	if err := CheckInput(in, h.o.Agents[agentcli.CLI(in.Agent)]); err != nil {
		return session.Host{}, refused(TypeRefused, "%v", err)
	}
	version, err := h.check(ctx, turnInput(in))
	if err != nil {
		return session.Host{}, err
	}
	h.log.Info("session claimed", "session", in.SessionID, "agent", in.Agent, "version", version.String(),
		"queue", h.queue)
	return session.Host{Name: h.name, Queue: h.queue, Version: version.String()}, nil
}

// CheckInput returns why no machine with this configuration of the agent can run the session, or nil.
func CheckInput(in session.Input, agent agentcall.Agent) error {
	if err := in.Check(); err != nil {
		return err
	}
	adapter, err := agentcli.For(agentcli.CLI(in.Agent))
	if err != nil {
		return err
	}
	if !adapter.Features.Streaming && (len(in.Rules) > 0 || in.DefaultAction != "") {
		return &agentcli.CallError{CLI: adapter.CLI,
			Reason: "it does not ask before it uses a tool, so rules have no effect"}
	}
	return checkCall(turnInput(in), adapter, agent)
}

// checkCall returns why the agent cannot be called for a turn, or nil.
func checkCall(in session.TurnInput, adapter agentcli.Adapter, agent agentcall.Agent) error {
	for _, tool := range in.Served {
		if !slices.Contains(ServedTools(), tool) {
			return errors.New(unknownTool(tool))
		}
	}
	if len(in.Served) > 0 && !adapter.Features.MCP {
		return &agentcli.CallError{CLI: adapter.CLI, Reason: "it does not support served tools"}
	}
	call := agentCall(agent, adapter, in, "x", "")
	if len(in.MCPServers) > 0 {
		call.MCPConfig = "{}"
	}
	_, err := adapter.Command(call)
	return err
}

// turnInput returns what a session's input says about each of its turns.
func turnInput(in session.Input) session.TurnInput {
	return session.TurnInput{
		SessionID: in.SessionID, Agent: in.Agent, Model: in.Model, WorkingDir: in.WorkingDir,
		SystemPrompt: in.SystemPrompt, PermissionMode: in.PermissionMode, AllowedTools: in.AllowedTools,
		Served: in.Served, MaxTurns: in.MaxTurns, BudgetUSD: in.BudgetUSD, MCPServers: in.MCPServers,
	}
}

// check checks whether a session can run on this host and returns the version of its agent.
func (h *Host) check(ctx context.Context, in session.TurnInput) (version agentcli.Version, err error) {
	if err := h.checkDir(in.WorkingDir); err != nil {
		return version, err
	}
	adapter, err := agentcli.For(agentcli.CLI(in.Agent))
	if err == nil {
		err = checkCall(in, adapter, h.o.Agents[adapter.CLI])
	}
	if err == nil {
		_, _, err = h.addServers(in, agentcli.Call{})
	}
	if err != nil {
		return version, refused(TypeRefused, "%v", err)
	}
	return h.version(ctx, adapter)
}

func (h *Host) checkDir(dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return refused(TypeBadDirectory, "%s: no such directory on %s", dir, h.name)
	}
	return nil
}

// checkHost checks the working directory, and the whole host at the first turn of a session that no
// host claimed. If the session cannot run here, ok is false and refusal is the turn's result, unless
// err is set.
func (t *attempt) checkHost() (refusal session.TurnResult, ok bool, err error) {
	if t.in.Unclaimed {
		var version agentcli.Version
		if version, err = t.h.check(t.life, t.in); err == nil {
			t.version = version.String()
		}
	} else {
		err = t.h.checkDir(t.in.WorkingDir)
	}
	if err == nil {
		return refusal, true, nil
	}
	if app, isApp := errors.AsType[*temporal.ApplicationError](err); isApp {
		return t.refuse(app.Type(), errors.New(app.Message())), false, nil
	}
	return refusal, false, err
}

func (h *Host) version(ctx context.Context, adapter agentcli.Adapter) (agentcli.Version, error) {
	argv, env := adapter.VersionArgv(h.o.Agents[adapter.CLI].Command), h.environ(adapter, agentcli.Command{})
	version, failed := agentcall.AskVersion(ctx, adapter, argv, env)
	switch {
	case failed == nil:
		return version, nil
	case ctx.Err() != nil:
		return version, ctx.Err()
	case !failed.Elsewhere():
		return version, errors.New(failed.Error)
	case failed.ExitClass == string(agentcli.ClassTooOld):
		return version, elsewhere(TypeAgentTooOld, h.name+": "+failed.Error)
	}
	return version, elsewhere(TypeAgentMissing, h.name+": "+failed.Error)
}

// environ returns the environment of an agent's process. A call of a served tool may wait a day for the user.
func (h *Host) environ(adapter agentcli.Adapter, cmd agentcli.Command) []string {
	cmd.Env = append(slices.Clone(cmd.Env), "MCP_TOOL_TIMEOUT=86400000")
	return h.o.Agents[adapter.CLI].Environ(adapter, cmd)
}

// agentCall returns the call of the agent for a turn. resume is the id of the conversation to
// resume, or "" to start one. A streaming agent gets the prompt later, over standard input.
func agentCall(
	agent agentcall.Agent, adapter agentcli.Adapter, in session.TurnInput, prompt, resume string,
) agentcli.Call {
	features := adapter.Features
	c := agentcli.Call{
		Binary: agent.Command, WorkingDir: in.WorkingDir, Model: cmp.Or(in.Model, agent.Model),
		Resume:     resume,
		Permission: agentcli.Permission(in.PermissionMode), AllowFull: agent.AllowFull,
		AllowedTools: slices.Clone(in.AllowedTools), SystemPrompt: in.SystemPrompt,
		MaxTurns: in.MaxTurns, MaxBudgetUSD: in.BudgetUSD,
		Streaming: features.Streaming,
	}
	if !features.Streaming {
		c.Instruction = prompt
	}
	if features.SessionID && resume == "" {
		c.SessionID = agentSession(in)
	}
	if len(in.Served) > 0 {
		c.HostServer = session.ToolServerName
		for _, tool := range in.Served {
			c.AllowedTools = append(c.AllowedTools, session.ToolPrefix+tool)
		}
	}
	return c
}

// agentSession returns the id of the conversation, for agents that accept an id. It is unique to the
// session's run, so a session with the same id in another data directory has another conversation.
func agentSession(in session.TurnInput) string {
	return cmp.Or(in.AgentSessionID, session.UUID("agent", in.RunID))
}

// addServers adds the session's MCP servers to a call and returns the environment variables that
// they need. Secrets are passed by the environment and expanded by the agent, because every user
// of the machine can read arguments.
func (h *Host) addServers(in session.TurnInput, call agentcli.Call) (agentcli.Call, []string, error) {
	if len(in.MCPServers) == 0 {
		return call, nil, nil
	}
	cli := agentcli.CLI(in.Agent)
	if err := session.CheckServers(in.MCPServers, len(in.Served) > 0); err != nil {
		return call, nil, &agentcli.CallError{CLI: cli, Reason: err.Error()}
	}
	servers, env := map[string]json.RawMessage{}, []string{}
	for name, raw := range in.MCPServers {
		expanded, vars, err := h.expandServer(in.SessionID, raw)
		if err != nil {
			return call, nil, &agentcli.CallError{CLI: cli, Reason: fmt.Sprintf("mcp_servers.%s: %v", name,
				err)}
		}
		servers[name] = expanded
		env = append(env, vars...)
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return call, nil, err
	}
	call.MCPConfig = string(config)
	slices.Sort(env)
	return call, slices.Compact(env), nil
}

// expandServer returns a server's configuration for the agent, and the variables that it needs.
func (h *Host) expandServer(sessionID string, raw json.RawMessage) (json.RawMessage, []string, error) {
	var s struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, nil, err
	}
	if s.Type == session.ServerType {
		args := append(slices.Clone(h.o.MCPCommand[1:]), "--session", sessionID)
		own, err := json.Marshal(map[string]any{"type": "stdio", "command": h.o.MCPCommand[0], "args": args})
		return own, nil, err
	}
	var env []string
	for _, m := range session.EnvReference.FindAllSubmatch(raw, -1) {
		name := string(m[1])
		value, ok := os.LookupEnv(name)
		if !ok {
			return nil, nil, fmt.Errorf("environment variable %s is not set on %s", name, h.name)
		}
		env = append(env, name+"="+value)
	}
	raw = session.EnvReference.ReplaceAll(raw, []byte("$${$1}"))
	placeholders := map[string]string{session.PlaceholderSessionID: sessionID,
		session.PlaceholderDataDir: h.o.DataDir}
	for placeholder, value := range placeholders {
		quoted, err := json.Marshal(value)
		if err != nil {
			return nil, nil, err
		}
		raw = bytes.ReplaceAll(raw, []byte(placeholder), quoted[1:len(quoted)-1])
	}
	return raw, env, nil
}
