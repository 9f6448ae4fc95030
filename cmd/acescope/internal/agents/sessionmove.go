package agents

import (
	"context"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
)

// SessionMoved is a session that was assigned to this machine.
type SessionMoved struct {
	SessionID string         `json:"session_id"`
	From      string         `json:"from,omitempty"` // name of the machine that had the session
	To        string         `json:"to"`
	WorkDir   string         `json:"work_dir"`
	Status    session.Status `json:"status"`
	Queued    int            `json:"queued"` // messages that the agent gets here
}

func sessionMoveCommand(a *cli.App) *cobra.Command {
	var dir, reason string
	cmd := &cobra.Command{
		Use:   "move SESSION",
		Short: "Continue a session on this machine, or send its queued messages again",
		Long: `Assigns a session to this machine, for example because its own machine is gone. If this machine does
not have the agent's conversation, the next turn starts another one with the recorded turns as its
context. A turn in progress is interrupted, and its messages are sent again. On the machine that has
the session already, the messages that the agent did not get are sent again.`,
		Example: `acescope session move s-20261121-1
acescope session move s-20261121-1 --dir ~/shop`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return moveSession(a, cmd.Context(), args[0], dir, reason)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "working directory on this machine (default: the session's)")
	cmd.Flags().StringVar(&reason, "reason", "", "reason, which the history keeps")
	return cmd
}

func moveSession(a *cli.App, ctx context.Context, name, dir, reason string) error {
	return withSession(a, ctx, name, func(e *engine.Engine, id string) (err error) {
		short, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		before, err := e.Describe(short, id)
		if err != nil {
			return SessionError(id, err)
		}
		if dir != "" {
			if dir, err = existingDir("--dir", dir); err != nil {
				return err
			}
		} else if !cli.IsDir(before.Input.WorkingDir) {
			return cli.UsageError("%s is not a directory on this machine; name the session's with --dir",
				cli.SafeText(before.Input.WorkingDir))
		}
		s, err := e.Move(short, id, dir, session.Note{Reason: reason, By: ace.User()})
		if err != nil {
			return SessionError(id, err)
		}
		line := SessionMoved{SessionID: id, WorkDir: s.Input.WorkingDir, Status: s.Status,
			Queued: len(s.Queue)}
		if before.Host != nil {
			line.From = before.Host.Name
		}
		switch {
		case s.Move != nil:
			line.To = s.Move.Host.Name
		case s.Host != nil:
			line.To = s.Host.Name
		}
		err = cli.Report(a, line, "session %s: moved from %s to %s; its status is %s", id, line.From, line.To,
			s.Status)
		if err != nil {
			return err
		}
		noticePaused(a, e, id)
		return nil
	})
}
