package main

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

	"acescope/engine"
	"acescope/engine/session"
	"acescope/sources"
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

func (a *app) sessionStartCommand() *cobra.Command {
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
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sessionStart(cmd.Context(), f) },
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
	in := session.Input{SessionID: cmp.Or(f.id, newSessionID(time.Now())), Name: f.name, Agent: f.agent, Model: f.model, SystemPrompt: f.system, PermissionMode: f.mode,
		AllowedTools: f.allow, Served: f.serve, MaxTurns: f.maxTurns, BudgetUSD: f.budget}
	dir, err := filepath.Abs(cmp.Or(f.dir, "."))
	if err != nil {
		return in, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return in, usage("--dir %s: there is no such directory", f.dir)
	}
	in.WorkingDir = dir
	for _, r := range f.rules {
		rule, err := sources.ParseToolRule(r)
		if err != nil {
			return in, usage("--rule: %w", err)
		}
		in.Rules = append(in.Rules, rule)
	}
	switch f.otherwise {
	case "ask":
	case "deny":
		in.Otherwise = session.Deny
	default:
		return in, usage("--otherwise %q: give ask or deny", f.otherwise)
	}
	if f.maxTurns < 0 || f.budget < 0 {
		return in, usage("--max-turns and --budget must not be negative")
	}
	if err := in.Check(); err != nil {
		return in, usage("%w", err)
	}
	return in, nil
}

func (a *app) sessionStart(ctx context.Context, f startFlags) error {
	in, err := f.input()
	if err != nil {
		return err
	}
	first := f.prompt
	if f.file != "" {
		data, err := readFile(f.file, maxSessionMessage)
		if err != nil {
			return err
		}
		if first = string(data); strings.TrimSpace(first) == "" {
			return usage("--prompt-file %s: it is empty", f.file)
		}
	}
	if f.detach && a.cluster() == nil {
		if err := a.spawn(); err != nil {
			return err
		}
		defer a.endUnused()
	}
	e, done, err := a.speak(ctx)
	if err != nil {
		return err
	}
	defer done()
	if first != "" {
		m, err := sessionMessage(ctx, e, "", first, me())
		if err != nil {
			return err
		}
		in.First = &m
	}
	runID, err := startSession(ctx, e, in)
	if err != nil {
		return err
	}
	a.begun = true
	if err := a.saidStarted(in, runID); err != nil {
		return err
	}
	return a.afterStart(ctx, e, in.SessionID, f.follow)
}

// sessionStarted says that a session was started.
type sessionStarted struct {
	Type       string `json:"type"` // session_started
	SessionID  string `json:"session_id"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Agent      string `json:"agent"`
	WorkDir    string `json:"work_dir"`
	MessageID  string `json:"message_id,omitempty"` // of the first message
	PID        int    `json:"pid,omitempty"`        // of the process in the background that serves it
}

func (a *app) saidStarted(in session.Input, runID string) error {
	if !a.json {
		_, err := fmt.Fprintf(a.out, "session %s is started: %s in %s\n", in.SessionID, in.Agent, safe(in.WorkingDir))
		return err
	}
	line := sessionStarted{Type: "session_started", SessionID: in.SessionID, WorkflowID: session.WorkflowID(in.SessionID), RunID: runID, Agent: in.Agent, WorkDir: in.WorkingDir, PID: a.background}
	if in.First != nil {
		line.MessageID = in.First.ID
	}
	return newLines(a.out).write(line)
}

// afterStart shows what is said, or stays where nobody else would serve the session.
func (a *app) afterStart(ctx context.Context, e *engine.Engine, id string, follow bool) error {
	if follow {
		return a.followEngine(ctx, e, id, "")
	}
	if e.Mode() != engine.Embedded || a.background != 0 {
		return nil
	}
	fmt.Fprintf(a.err, "acescope: no other acescope serves this data directory: staying until session %s has ended; acescope serve elsewhere, or ctrl+c, and it is kept\n", id)
	var end session.State
	err := e.Client.GetWorkflow(ctx, session.WorkflowID(id), "").Get(ctx, &end)
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return fmt.Errorf("session %s: %w", id, errors.Unwrap(err))
	}
	return nil
}
