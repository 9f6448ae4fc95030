package agents

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/sessions"
	"acescope/tui/text"
)

// withSession connects and calls do with the id of the session that a name means.
func withSession(a *cli.App, ctx context.Context, name string,
	do func(e *engine.Engine, id string) error) error {
	e, err := openToServe(a, ctx)
	if err != nil {
		return err
	}
	id, err := findSession(ctx, e, name)
	if err == nil && id == "" {
		err = engine.ErrNoSession.Of(name)
	}
	if err != nil {
		return err
	}
	return do(e, id)
}

// SessionError gives the error of a request to a session its exit code, and explains a missing answer.
func SessionError(id string, err error) error {
	if errors.Is(err, engine.ErrNoSession) {
		return engine.ErrNoSession.Of(id)
	}
	return answerError("session "+id, err)
}

// noticePaused says that the session pauses when this process exits, if this process is the only one that
// serves.
func noticePaused(a *cli.App, e *engine.Engine, id string) {
	if e.Mode() == engine.Embedded {
		cli.Warn(a, `no other process runs workers for this data directory: session %s continues when one does; `+
			`start one with "acescope serve"`, id)
	}
}

const maxSessionMessage = 8 << 20 // bytes

// sessionMessage returns a message of the user with an id. A long text is stored as an artifact.
func sessionMessage(ctx context.Context, e *engine.Engine, id, content string) (session.Message, error) {
	m := session.Message{ID: cmp.Or(id, "m-"+rand.Text()), Text: content, From: ace.User()}
	if len(content) > maxSessionMessage {
		return m, cli.UsageError("the message has %s, at most %s are allowed",
			ace.Count(len(content), "byte"), ace.Number(maxSessionMessage))
	}
	if len(content) > session.MaxText {
		ref, err := e.Artifacts.PutBytes(ctx, []byte(content), "text/plain; charset=utf-8")
		if err != nil {
			return m, err
		}
		m.Text, m.Ref = "", &ref
	}
	return m, nil
}

func SendMessage(ctx context.Context, e *engine.Engine, id, messageID, content string) (r session.Receipt,
	err error) {
	m, err := sessionMessage(ctx, e, messageID, content)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	r, err = e.Send(ctx, id, m)
	return r, SessionError(id, err)
}

// SentLine is a message that a session has accepted.
type SentLine struct {
	SessionID string `json:"session_id"`
	session.Receipt
}

func sessionSendCommand(a *cli.App) *cobra.Command {
	var id string
	var wait, follow bool
	cmd := &cobra.Command{
		Use:   "send SESSION TEXT|-",
		Short: "Send a message to a session; - reads it from standard input",
		Long: `Sends a message to a session. The message waits while a turn is in progress, and is kept until the
agent has answered it. With --id the session accepts it only once, so a script may repeat the
command.`,
		Example: `acescope session send s-20261121-1 'And now the tests' --wait
git diff | acescope session send review-1 - --id "$(git rev-parse HEAD)" --follow`,
		RunE: func(cmd *cobra.Command, args []string) error {
			content := args[1]
			if content == "-" {
				data, err := cli.ReadFile(cmd.Context(), "-", maxSessionMessage)
				if err != nil {
					return err
				}
				content = string(data)
			}
			if strings.TrimSpace(content) == "" {
				return cli.UsageError("the message is empty")
			}
			if len(id) > session.MaxID {
				return cli.UsageError("--id: %s, at most %d are allowed", ace.Count(len(id), "byte"),
					session.MaxID)
			}
			return sendMessage(a, cmd.Context(), args[0], content, id, wait, follow)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "id of the message, which the session accepts once")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the agent's answer and print it")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show the conversation until the agent has answered")
	cmd.MarkFlagsMutuallyExclusive("wait", "follow")
	return cmd
}

func sendMessage(a *cli.App, ctx context.Context, name, content, messageID string, wait, follow bool) error {
	send := func() error { return sendAndWait(a, ctx, name, content, messageID, wait, follow) }
	if wait || follow || a.Served() || !reachable(a) {
		return send()
	}
	return runs.HandOver(a, ctx, send) // the process that served the session may have become idle
}

func sendAndWait(a *cli.App, ctx context.Context, name, content, messageID string, wait, follow bool) error {
	return withSession(a, ctx, name, func(e *engine.Engine, id string) error {
		r, err := SendMessage(ctx, e, id, messageID, content)
		if err != nil {
			return err
		}
		switch {
		case a.JSON:
			err = cli.NewLines(a).Write(SentLine{id, r})
		case r.Duplicate:
			cli.Warn(a, "the message was sent before")
		case r.Waiting > 0:
			cli.Warn(a, "sent; %s before it", ace.Count(r.Waiting, "message"))
		default:
			cli.Warn(a, "sent")
		}
		switch {
		case err != nil:
			return err
		case follow:
			return followSession(a, ctx, e, id, r.MessageID)
		case wait:
			return awaitTurn(a, ctx, e, id, r.MessageID)
		}
		a.Begun = true
		return nil
	})
}

// ApprovalLine is a tool call that waits for the user, or the decision on it.
type ApprovalLine struct {
	sessions.Approval
	Risk     string         `json:"risk,omitempty" jsonschema:"why the call looks irreversible"`
	Decision session.Action `json:"decision,omitempty" jsonschema:"decision"`
	Reason   string         `json:"reason,omitempty"`
}

// MaxArguments bounds the arguments of a call that are shown, in bytes.
const MaxArguments = 4 << 20

// newApprovalLine returns the line of a call with its complete arguments, if their artifact can be read.
func newApprovalLine(ctx context.Context, e *engine.Engine, w sessions.Approval) ApprovalLine {
	if ref := w.Call.ArgsRef; ref != nil {
		if args, err := e.Artifacts.Get(ctx, *ref, MaxArguments); err == nil {
			w.Call.Args, w.Call.ArgsRef = args, nil
		}
	}
	return ApprovalLine{Approval: w, Risk: sessions.CallRisk(w.Call, w.Dir)}
}

// approval is the decision that session approve makes. The zero value lists the calls.
type approval struct {
	call        string // "" for the only one
	allow, deny bool
	reason      string
	yes         bool
}

func sessionApproveCommand(a *cli.App) *cobra.Command {
	var f approval
	cmd := &cobra.Command{
		Use:   "approve SESSION [CALL]",
		Short: "List the tool calls of a session that wait for the user, or allow or deny one",
		Long: `Without --allow and --deny it lists the waiting calls with their arguments. CALL can be omitted if
one call waits. On a terminal it asks for confirmation before it allows a call that looks
irreversible.`,
		Example: `acescope session approve s-1 --json | jq .call.args
acescope session approve s-1 toolu_01 --deny --reason 'not in this directory'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.reason != "" && !f.allow && !f.deny {
				return cli.UsageError("--reason needs --allow or --deny")
			}
			f.call = cli.Arg(args, 1)
			return approve(a, cmd.Context(), args[0], f)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.allow, "allow", false, "allow the call")
	fs.BoolVar(&f.deny, "deny", false, "deny the call")
	fs.StringVar(&f.reason, "reason", "", "reason, which the agent gets")
	fs.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	cmd.MarkFlagsMutuallyExclusive("allow", "deny")
	return cmd
}

func Decision(call string, allow bool, reason string) session.Decision {
	d := session.Decision{ID: call, Action: session.Deny, Reason: reason, By: ace.User()}
	if allow {
		d.Action = session.Allow
	}
	return d
}

func approve(a *cli.App, ctx context.Context, name string, f approval) error {
	return withSession(a, ctx, name, func(e *engine.Engine, id string) error {
		detail, err := sessions.Show(ctx, sessionDeps(e), session.WorkflowID(id))
		if err != nil {
			return err
		}
		waiting := sessions.ApprovalsOf(detail.State)
		if f.call != "" {
			waiting = slices.DeleteFunc(waiting, func(w sessions.Approval) bool {
				return w.Call.ID != f.call
			})
		}
		decide := f.allow || f.deny
		switch {
		case len(waiting) == 0 && (decide || f.call != ""):
			return cli.NotFound("no tool call %swaits in session %s", strings.TrimLeft(f.call+" ", " "), id)
		case !decide:
			return listApprovals(a, ctx, e, id, waiting)
		case len(waiting) > 1:
			return cli.UsageError(
				"%d tool calls wait in session %s: name one; without --allow and --deny they are listed",
				len(waiting), id)
		}
		w := waiting[0]
		if risk := sessions.CallRisk(w.Call, w.Dir); f.allow && risk != "" {
			err := a.Ask(ctx, f.yes, "Allow "+w.Call.Name+"? It "+risk+".", "allow",
				"session    "+id, "directory  "+w.Dir, "call       "+string(w.Call.Args))
			if err != nil {
				return err
			}
		}
		short, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		d := Decision(w.Call.ID, f.allow, f.reason)
		if _, err := e.Decide(short, id, d); err != nil {
			return SessionError(id, err)
		}
		line := newApprovalLine(ctx, e, w)
		line.Decision, line.Reason = d.Action, f.reason
		decided := map[bool]string{true: "allowed", false: "denied"}[f.allow]
		if err := cli.Report(a, line, "%s: %s %s", decided, line.Call.Name, line.Call.ID); err != nil {
			return err
		}
		noticePaused(a, e, id)
		return nil
	})
}

func listApprovals(a *cli.App, ctx context.Context, e *engine.Engine, id string,
	waiting []sessions.Approval) error {
	if len(waiting) == 0 {
		cli.Warn(a, "no tool call waits in session %s", id)
	}
	out := cli.NewLines(a)
	for _, w := range waiting {
		l := newApprovalLine(ctx, e, w)
		out.Line(l, "%s  %s, turn %d, in %s", l.Call.ID, l.Call.Name, l.Call.Turn, l.Dir)
		if a.JSON {
			continue
		}
		if l.Risk != "" {
			out.Printf("  it %s", l.Risk)
		}
		for _, arg := range text.Members(l.Call.Args) {
			out.Printf("  %s", arg)
		}
	}
	return out.Flush()
}

type SessionAsked struct {
	Action    string         `json:"action"` // interrupt or stop
	SessionID string         `json:"session_id"`
	Status    session.Status `json:"status"`
	Reason    string         `json:"reason,omitempty"`
}

func sessionInterruptCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "interrupt SESSION",
		Short: "Interrupt the current turn; the session continues",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return withSession(a, ctx, args[0], func(e *engine.Engine, id string) error {
				short, cancel := context.WithTimeout(ctx, answerTimeout)
				defer cancel()
				s, err := e.Interrupt(short, id, session.Note{Reason: reason, By: ace.User()})
				if err != nil {
					return SessionError(id, err)
				}
				return cli.Report(a, SessionAsked{"interrupt", id, s.Status, reason},
					"session %s: interrupt requested; its status is %s", id, s.Status)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, which the history keeps")
	return cmd
}

func sessionStopCommand(a *cli.App) *cobra.Command {
	var reason string
	var yes, wait bool
	cmd := &cobra.Command{
		Use:   "stop SESSION",
		Short: "Stop a session and its current turn; its transcript is kept",
		Long:  "Asks the session to end. On a terminal it asks for confirmation.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return withSession(a, ctx, args[0], func(e *engine.Engine, id string) error {
				err := a.Ask(ctx, yes, "Stop session "+id+"?", "stop", "It accepts no more messages.")
				if err != nil {
					return err
				}
				s, err := stopSession(ctx, e, id, reason, wait)
				if err != nil {
					return err
				}
				return cli.Report(a, SessionAsked{"stop", id, s.Status, reason},
					"session %s: stop requested; its status is %s", id, s.Status)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, which the history keeps")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the session has ended")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}

func stopSession(ctx context.Context, e *engine.Engine, id, reason string, wait bool) (session.State, error) {
	short, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	s, err := e.Stop(short, id, session.Note{Reason: reason, By: ace.User()})
	if err != nil || !wait {
		return s, SessionError(id, err)
	}
	_ = e.Client.GetWorkflow(ctx, session.WorkflowID(id), "").Get(ctx, nil) // Describe returns the outcome
	if ctx.Err() != nil {
		return s, cli.ErrInterrupted
	}
	return e.Describe(ctx, id)
}

type ReceivedLine struct {
	SessionID string `json:"session_id"`
	session.Received
}

func sessionReceiveCommand(a *cli.App) *cobra.Command {
	var r session.Receive
	cmd := &cobra.Command{
		Use:   "receive SESSION",
		Short: "Receive the output of a session after a cursor, and acknowledge earlier output",
		Long: `Prints at most --limit messages of the session after a cursor, and the next cursor. Acknowledged
messages are deleted; others are kept until 500 newer ones exist. "lost" counts the messages that
were deleted unacknowledged.`,
		Example: `acescope session receive s-1 --after 0 --wait --json | jq .next
acescope session receive s-1 --after 12 --ack 12 --json`,
		RunE: func(cmd *cobra.Command, args []string) error { return receive(a, cmd.Context(), args[0], r) },
	}
	fs := cmd.Flags()
	const most = 1<<31 - 1
	intVar(fs, &r.After, "after", 0, most, "only messages after this cursor")
	intVar(fs, &r.Ack, "ack", 0, most, "acknowledge the messages up to this cursor")
	intVar(fs, &r.Limit, "limit", 0, most, "maximum number of messages (default 100)")
	fs.BoolVar(&r.Wait, "wait", false, "wait until there is a message or the session has ended")
	return cmd
}

func receive(a *cli.App, ctx context.Context, name string, r session.Receive) error {
	return withSession(a, ctx, name, func(e *engine.Engine, id string) error {
		got, err := receiveMessages(ctx, e, id, r)
		if err != nil {
			return SessionError(id, err)
		}
		if a.JSON {
			return cli.NewLines(a).Write(ReceivedLine{id, got})
		}
		for _, m := range got.Messages {
			kind := strings.TrimSpace(string(m.Kind) + " " + m.Tool)
			content := strings.TrimSpace(m.Text + " " + string(m.Args))
			fmt.Fprintf(a.Out, "%d\tturn %d\t%s\t%s\n", m.Cursor, m.Turn, cli.SafeText(kind),
				cli.SafeText(content))
		}
		cli.Warn(a, "the session is %s; continue with --after %d --ack %d", got.Status, got.Next, got.Next)
		return nil
	})
}

// receiveMessages receives messages once. If the session continues as new while it waits, it receives again.
func receiveMessages(ctx context.Context, e *engine.Engine, id string, r session.Receive) (
	got session.Received, err error,
) {
	if !r.Wait {
		short, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		ctx = short
	}
	for {
		got, err = e.Receive(ctx, id, r)
		if !r.Wait || err != nil || !got.Continued || len(got.Messages) > 0 {
			break
		}
	}
	if errors.Is(err, engine.ErrEnded) { // the final state has the remaining messages
		end, err := e.Describe(ctx, id)
		return end.After(r.After, r.Limit), err
	}
	return got, err
}

// SessionMoved is a session that was assigned to this machine.
type SessionMoved struct {
	SessionID string         `json:"session_id"`
	From      string         `json:"from,omitempty"` // name of the machine that had the session
	To        string         `json:"to" jsonschema:"this machine"`
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
