package agents

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/agents/session/host"
	"acescope/sources/sessions"
)

type sessionStartFlags struct {
	in             session.Input // the values that flags set directly
	rules          []string
	prompt, file   string
	follow, detach bool
	anyAgent       bool // --agent is not set
}

func sessionStartCommand(a *cli.App) *cobra.Command {
	var f sessionStartFlags
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a durable session of a coding agent",
		Long: `Starts a session: a conversation with a coding agent (claude, codex, gemini, opencode) that is
recorded turn by turn and survives the death of its worker. Rules decide tool calls, in any order: deny
wins over ask, ask over allow. If no rule matches the whole of a call that the agent asks about,
--otherwise applies: the user decides (in the console, or with acescope session approve), or the call
is denied. If no other process serves the data directory, this one does until the session has ended;
with --detach a background process does.`,
		Example: `acescope session start --dir ~/shop --prompt 'Tidy the till' \
    --rule 'Bash(git *)=allow' --otherwise deny --follow
acescope session start --agent codex --dir . --detach --json
acescope session start --resume 5e551011 --prompt 'And now the tests' --follow`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.anyAgent = !cmd.Flags().Changed("agent")
			return startSession(a, cmd.Context(), f)
		},
	}
	fs, in := cmd.Flags(), &f.in
	in.Agent, in.DefaultAction = "claude", session.Ask
	fs.StringVar(&in.SessionID, "id", "", "id of the session (default: derived from the time)")
	choiceVar(fs, &in.Agent, "agent", ace.Agents(), "agent: "+cli.Join(ace.Agents()))
	fs.StringVar(&in.WorkingDir, "dir", "", "working directory (default: the current one)")
	fs.StringVar(&in.AgentSessionID, "resume", "",
		"continue an existing conversation of an agent by its id, or by the beginning of the id if its transcript "+
			"is on this machine; then --agent and --dir default to those of the conversation; end the agent first")
	fs.StringVar(&in.Model, "model", "", "model (default: the agent's)")
	fs.StringVar(&in.PermissionMode, "permission-mode", "",
		"the agent's own permission mode: default, acceptEdits, plan, dontAsk")
	fs.StringSliceVar(&in.AllowedTools, "allow-tool", nil, "tools that the agent may use without asking")
	fs.StringArrayVar(&f.rules, "rule", nil, "rule for tool calls, such as 'Bash(git *)=allow', "+
		"'mcp__*=deny' or 'Write=ask'; the strictest matching rule decides; can be repeated")
	choiceVar(fs, &in.DefaultAction, "otherwise", []session.Action{session.Ask, session.Deny},
		"decision on calls without a matching rule: ask the user, or deny")
	fs.StringSliceVar(&in.Served, "serve-tool", nil,
		"tools that the session itself offers, confined to the directory: read_file, write_file, run_command")
	fs.StringVar(&in.Name, "name", "", "name for lists")
	fs.StringVar(&f.prompt, "prompt", "", "first message")
	fs.StringVar(&f.file, "prompt-file", "", "file with the first message; - is standard input")
	fs.StringVar(&in.SystemPrompt, "system-prompt", "", "text appended to the agent's system prompt")
	intVar(fs, &in.MaxTurns, "max-turns", 0, 1<<31-1,
		"the agent's turns within a turn of the session (default: the agent's)")
	fs.Float64Var(&in.BudgetUSD, "budget", 0, "maximum cost of a turn in dollars, if the agent supports it")
	fs.BoolVarP(&f.follow, "follow", "f", false,
		"show the conversation until the session ends or is interrupted")
	fs.BoolVar(&f.detach, "detach", false, "return at once; a background process serves the session")
	cmd.MarkFlagsMutuallyExclusive("prompt", "prompt-file")
	cmd.MarkFlagsMutuallyExclusive("follow", "detach")
	return cmd
}

// input returns the input of the session, without a first message.
func (f sessionStartFlags) input(a *cli.App, ctx context.Context) (in session.Input, err error) {
	in = f.in
	in.SessionID = cmp.Or(in.SessionID, cli.NewID("s"))
	if f.anyAgent && in.AgentSessionID != "" {
		in.Agent = ""
	}
	if err := Adopt(a, ctx, &in); err != nil {
		return in, err
	}
	if in.WorkingDir, err = existingDir("--dir", in.WorkingDir); err != nil {
		return in, err
	}
	for _, r := range f.rules {
		rule, err := sessions.ParseRule(r)
		if err != nil {
			return in, cli.UsageError("--rule: %w", err)
		}
		in.Rules = append(in.Rules, rule)
	}
	if in.DefaultAction == session.Ask {
		in.DefaultAction = "" // the contract's value for asking the user
	}
	if in.BudgetUSD < 0 {
		return in, cli.UsageError("--budget must not be negative")
	}
	agent := a.Agents()[agentcli.CLI(in.Agent)]
	agent.AllowFull = agent.AllowFull || a.Cluster() != nil // the machine that takes the session decides
	if err := host.CheckInput(in, agent); err != nil {
		return in, cli.UsageError("%w", err)
	}
	return in, nil
}

// Adopt completes the input of a session that continues an existing conversation from its transcript on this
// machine. If the input names no agent, the transcript may be that of any agent. Claude Code finds a
// conversation only in the directory where it began.
func Adopt(a *cli.App, ctx context.Context, in *session.Input) error {
	if in.AgentSessionID == "" {
		return nil
	}
	in.Resume = true
	agent := agentcli.CLI(in.Agent)
	s, err := findTranscript(a, ctx, agent, in.AgentSessionID)
	if cli.ExitCode(err) == cli.ExitNotFound && agent != "" && agent != agentcli.Claude {
		return nil // the agent knows
	}
	if err != nil {
		return err
	}
	in.Agent, in.AgentSessionID = string(s.Agent), s.ID
	in.Name = cmp.Or(in.Name, s.Name())
	if in.WorkingDir == "" && filepath.IsAbs(s.Dir()) {
		in.WorkingDir = s.Dir()
	}
	return nil
}

func startSession(a *cli.App, ctx context.Context, f sessionStartFlags) error {
	in, err := f.input(a, ctx)
	if err != nil {
		return err
	}
	first := f.prompt
	if f.file != "" {
		data, err := readInput(ctx, "--prompt-file", f.file, maxSessionMessage)
		if err != nil {
			return err
		}
		first = string(data)
	}
	if f.detach {
		return runs.HandOver(a, ctx, func() error { return f.start(a, ctx, in, first) })
	}
	return f.start(a, ctx, in, first)
}

// start starts a session with a first message, which may be "".
func (f sessionStartFlags) start(a *cli.App, ctx context.Context, in session.Input, first string) error {
	e, err := openToServe(a, ctx)
	if err != nil {
		return err
	}
	in, runID, err := StartSession(ctx, e, in, first)
	if err != nil {
		return err
	}
	a.Begun = true
	line := SessionStarted{SessionID: in.SessionID, WorkflowID: session.WorkflowID(in.SessionID),
		RunID: runID, Agent: in.Agent, WorkDir: in.WorkingDir, PID: a.Background}
	if in.First != nil {
		line.MessageID = in.First.ID
	}
	if err := cli.Report(a, line, "session %s started: %s in %s", in.SessionID, in.Agent,
		in.WorkingDir); err != nil {
		return err
	}
	if f.follow {
		return followSession(a, ctx, e, in.SessionID, "")
	}
	return serveSession(a, ctx, e, in.SessionID)
}

// StartSession starts a session with a first message, which may be "", and returns the completed input. A
// session without an id gets one.
func StartSession(ctx context.Context, e *engine.Engine, in session.Input, first string) (
	started session.Input, runID string, err error,
) {
	in.SessionID = cmp.Or(in.SessionID, cli.NewID("s"))
	if first != "" {
		m, err := sessionMessage(ctx, e, "", first)
		if err != nil {
			return in, "", err
		}
		in.First = &m
	}
	runID, err = e.StartSession(ctx, in)
	return in, runID, err
}

type SessionStarted struct {
	SessionID  string `json:"session_id"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Agent      string `json:"agent"`
	WorkDir    string `json:"work_dir"`
	MessageID  string `json:"message_id,omitempty"` // of the first message
	PID        int    `json:"pid,omitempty"`        // of the background process that serves the session
}

// serveSession waits until the session has ended if no other process serves it.
func serveSession(a *cli.App, ctx context.Context, e *engine.Engine, id string) error {
	if e.Mode() != engine.Embedded || a.Background != 0 {
		return nil
	}
	cli.Warn(a, `no other process runs workers for this data directory: this one runs session %s until it has ended; `+
		`after ctrl+c it is kept and continues with "acescope serve"`, id)
	err := e.Client.GetWorkflow(ctx, session.WorkflowID(id), "").Get(ctx, nil)
	if err != nil && ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	end, err := e.Describe(ctx, id)
	return cmp.Or(err, endError(&end, id, ""))
}

// endError returns why a session that has ended did not complete, or did not answer a message, "" for none.
func endError(s *session.State, id, messageID string) error {
	err := runs.ClosedError("session "+id, s.Exit, s.Failure)
	if err == nil && messageID != "" {
		err = fmt.Errorf("session %s has ended without an answer to this message", id)
	}
	return err
}
