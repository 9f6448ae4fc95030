package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/agents/session"
	"acescope/sources/sessions"
)

// startFlags are the flags of acescope session start.
type startFlags struct {
	id, agent, dir, model, mode, otherwise string
	name, prompt, file, system             string
	allow, rules, serve                    []string
	maxTurns                               int
	budget                                 float64
	follow, detach                         bool
}

func sessionStartCommand(a *cli.App) *cobra.Command {
	var f startFlags
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a session of a coding agent that survives the death of its worker",
		Long: "Starts a session: a conversation with a coding agent (claude, codex, gemini, opencode) that is recorded turn by turn.\n" +
			"Each tool that the agent asks leave for is decided by the first --rule that matches, else by --otherwise: a person is\n" +
			"asked (in the console, or with acescope session approve) or it is denied. Where no other acescope serves the data\n" +
			"directory this one does, until the session has ended; with --detach a process in the background does.",
		Example: "acescope session start --dir ~/shop --prompt 'Tidy the till' --rule 'Bash(git *)=allow' --otherwise deny --follow\n" +
			"acescope session start --agent codex --dir . --detach --json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return sessionStart(a, cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.id, "id", "", "id of the session (default: made of the time)")
	fs.StringVar(&f.agent, "agent", "claude", "who talks: "+strings.Join(session.Agents(), ", "))
	fs.StringVar(&f.dir, "dir", "", "where it works (default: here)")
	fs.StringVar(&f.model, "model", "", "its model (default: the agent's)")
	fs.StringVar(&f.mode, "permission-mode", "", "the agent's own permission mode: default, acceptEdits, plan, dontAsk")
	fs.StringSliceVar(&f.allow, "allow-tool", nil, "tools that it may use without asking")
	fs.StringArrayVar(&f.rules, "rule", nil, "decide the calls that it asks about: 'Bash(git *)=allow', 'mcp__*=deny', 'Write=ask'; the first that matches counts")
	fs.StringVar(&f.otherwise, "otherwise", "ask", "what becomes of calls that no rule decides: ask a person, or deny")
	fs.StringSliceVar(&f.serve, "serve-tool", nil, "tools that the session itself offers, confined to the directory: read_file, write_file, run_command")
	fs.StringVar(&f.name, "name", "", "a name for lists")
	fs.StringVar(&f.prompt, "prompt", "", "the first message")
	fs.StringVar(&f.file, "prompt-file", "", "the first message, from a file; - is standard input")
	fs.StringVar(&f.system, "system-prompt", "", "added to the agent's own system prompt")
	fs.IntVar(&f.maxTurns, "max-turns", 0, "of the agent, within one turn of the session (default: the agent's)")
	fs.Float64Var(&f.budget, "budget", 0, "dollars that one turn may cost, where the agent can keep to that")
	fs.BoolVarP(&f.follow, "follow", "f", false, "show what is said, until the session ends or this is interrupted")
	fs.BoolVar(&f.detach, "detach", false, "return at once; a process in the background serves the session")
	cmd.MarkFlagsMutuallyExclusive("prompt", "prompt-file")
	cmd.MarkFlagsMutuallyExclusive("follow", "detach")
	return cmd
}

// input is what the flags ask for, without a first message.
func (f startFlags) input() (session.Input, error) {
	in := session.Input{SessionID: cmp.Or(f.id, NewSessionID(time.Now())), Name: f.name, Agent: f.agent, Model: f.model, SystemPrompt: f.system, PermissionMode: f.mode,
		AllowedTools: f.allow, Served: f.serve, MaxTurns: f.maxTurns, BudgetUSD: f.budget}
	dir, err := filepath.Abs(cmp.Or(f.dir, "."))
	if err != nil {
		return in, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return in, cli.UsageError("--dir %s: there is no such directory", f.dir)
	}
	in.WorkingDir = dir
	for _, r := range f.rules {
		rule, err := sessions.ParseToolRule(r)
		if err != nil {
			return in, cli.UsageError("--rule: %w", err)
		}
		in.Rules = append(in.Rules, rule)
	}
	switch f.otherwise {
	case "ask":
	case "deny":
		in.DefaultAction = session.Deny
	default:
		return in, cli.UsageError("--otherwise %q: give ask or deny", f.otherwise)
	}
	if f.maxTurns < 0 || f.budget < 0 {
		return in, cli.UsageError("--max-turns and --budget must not be negative")
	}
	if err := in.Check(); err != nil {
		return in, cli.UsageError("%w", err)
	}
	return in, nil
}

func sessionStart(a *cli.App, ctx context.Context, f startFlags) error {
	in, err := f.input()
	if err != nil {
		return err
	}
	first := f.prompt
	if f.file != "" {
		data, err := cli.ReadFile(f.file, maxSessionMessage)
		if err != nil {
			return err
		}
		if first = string(data); strings.TrimSpace(first) == "" {
			return cli.UsageError("--prompt-file %s: it is empty", f.file)
		}
	}
	if f.detach && a.Cluster() == nil {
		if err := runs.Spawn(a); err != nil {
			return err
		}
		defer runs.EndUnused(a)
	}
	e, done, err := speak(a, ctx)
	if err != nil {
		return err
	}
	defer done()
	if first != "" {
		m, err := SessionMessage(ctx, e, "", first, Me())
		if err != nil {
			return err
		}
		in.First = &m
	}
	runID, err := StartSession(ctx, e, in)
	if err != nil {
		return err
	}
	a.Begun = true
	if err := saidStarted(a, in, runID); err != nil {
		return err
	}
	return afterStart(a, ctx, e, in.SessionID, f.follow)
}

// SessionStarted says that a session was started.
type SessionStarted struct {
	Type       string `json:"type"` // session_started
	SessionID  string `json:"session_id"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Agent      string `json:"agent"`
	WorkDir    string `json:"work_dir"`
	MessageID  string `json:"message_id,omitempty"` // of the first message
	PID        int    `json:"pid,omitempty"`        // of the process in the background that serves it
}

func saidStarted(a *cli.App, in session.Input, runID string) error {
	if !a.JSON {
		_, err := fmt.Fprintf(a.Out, "session %s is started: %s in %s\n", in.SessionID, in.Agent, cli.SafeText(in.WorkingDir))
		return err
	}
	line := SessionStarted{Type: "session_started", SessionID: in.SessionID, WorkflowID: session.WorkflowID(in.SessionID), RunID: runID, Agent: in.Agent, WorkDir: in.WorkingDir, PID: a.Background}
	if in.First != nil {
		line.MessageID = in.First.ID
	}
	return cli.NewLines(a.Out).Write(line)
}

// afterStart shows what is said, or stays where nobody else would serve the session.
func afterStart(a *cli.App, ctx context.Context, e *engine.Engine, id string, follow bool) error {
	if follow {
		return followEngine(a, ctx, e, id, "")
	}
	if e.Mode() != engine.Embedded || a.Background != 0 {
		return nil
	}
	fmt.Fprintf(a.Err, "acescope: no other acescope serves this data directory: staying until session %s has ended; acescope serve elsewhere, or ctrl+c, and it is kept\n", id)
	var end session.State
	err := e.Client.GetWorkflow(ctx, session.WorkflowID(id), "").Get(ctx, &end)
	if err != nil && ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	if err != nil {
		return fmt.Errorf("session %s: %w", id, errors.Unwrap(err))
	}
	return nil
}
