package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/agents/session"
	"acescope/sources/sessions"
	"acescope/views/agents"
	"acescope/views/console"
)

func sessionSendCommand(a *cli.App) *cobra.Command {
	var id string
	var wait, follow bool
	cmd := &cobra.Command{
		Use:   "send ID TEXT|-",
		Short: "Give a session a message; - reads it from standard input",
		Long: "Gives a session a message. It is kept until the agent has answered it; while a turn is under way it waits. With --id\n" +
			"it is taken once however often it is sent, so that a script may send it again when it does not know.",
		Example: "acescope session send s-20261121-1 'And now the tests' --wait\ngit diff | acescope session send review-1 - --id \"$(git rev-parse HEAD)\" --follow",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sessionSend(a, cmd.Context(), args[0], args[1], id, wait, follow)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "id of the message, by which it is taken once")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the agent has answered, and print the answer")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show what is said until the agent has answered")
	cmd.MarkFlagsMutuallyExclusive("wait", "follow")
	return cmd
}

// SentLine says that a session took a message.
type SentLine struct {
	Type      string `json:"type"` // sent
	SessionID string `json:"session_id"`
	session.Receipt
}

func sessionSend(a *cli.App, ctx context.Context, name, said, messageID string, wait, follow bool) error {
	if said == "-" {
		data, err := cli.ReadFile("-", maxSessionMessage)
		if err != nil {
			return err
		}
		said = string(data)
	}
	if strings.TrimSpace(said) == "" {
		return cli.UsageError("the message is empty")
	}
	if len(messageID) > 200 {
		return cli.UsageError("--id: longer than 200 bytes")
	}
	return withSession(a, ctx, name, func(e *engine.Engine, id string) error {
		m, err := SessionMessage(ctx, e, messageID, said, Me())
		if err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, askWithin)
		r, err := e.Send(short, id, m)
		cancel()
		if err != nil {
			return Unheard(id, err)
		}
		if err := saidSent(a, id, r); err != nil {
			return err
		}
		switch {
		case follow:
			return followEngine(a, ctx, e, id, m.ID)
		case wait:
			return awaitTurn(a, ctx, e, id, m.ID)
		}
		leaves(a, e, id)
		return nil
	})
}

// withSession connects, finds the session that is named, and does something with it.
func withSession(a *cli.App, ctx context.Context, name string, do func(*engine.Engine, string) error) error {
	e, done, err := speak(a, ctx)
	if err != nil {
		return err
	}
	defer done()
	id, err := mustSession(ctx, e, name)
	if err != nil {
		return err
	}
	return do(e, id)
}

// leaves tells that a session stands still when this process has gone.
func leaves(a *cli.App, e *engine.Engine, id string) {
	if e.Mode() == engine.Embedded {
		fmt.Fprintf(a.Err, "acescope: no other acescope serves this data directory: session %s goes on when one does (acescope serve)\n", id)
	}
}

func saidSent(a *cli.App, id string, r session.Receipt) error {
	if a.JSON {
		return cli.NewLines(a.Out).Write(SentLine{"sent", id, r})
	}
	said := "sent"
	switch {
	case r.Duplicate:
		said = "was sent before"
	case r.Waiting > 0:
		said += fmt.Sprintf("; %d wait before it", r.Waiting)
	}
	_, err := fmt.Fprintln(a.Err, "acescope: "+said)
	return err
}

// TurnLine is how a turn ended.
type TurnLine struct {
	Type      string `json:"type"` // turn
	SessionID string `json:"session_id"`
	session.TurnRecord
}

// awaitTurn waits for the end of the turn that has a message, and prints the answer.
func awaitTurn(a *cli.App, ctx context.Context, e *engine.Engine, id, messageID string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var got *sessions.SessionTurn
	closed, waits := false, ""
	sessions.FollowSession(ctx, sessionDeps(a, e), session.WorkflowID(id), func(t *sessions.Talk) {
		if got = t.TurnOf(messageID); got != nil && !got.Ended.IsZero() || t.Closed {
			closed = t.Closed
			stop()
			return
		}
		if t.State != nil && len(t.State.Pending) > 0 && t.State.Pending[0].ID != waits {
			waits = t.State.Pending[0].ID
			fmt.Fprintf(a.Err, "acescope: %s waits for leave: acescope session approve %s\n", cli.SafeText(t.State.Pending[0].Name), id)
		}
	})
	switch {
	case got == nil && closed:
		return fmt.Errorf("session %s has ended without an answer to this message", id)
	case got == nil || got.Ended.IsZero():
		return cli.ErrInterrupted
	}
	r := got.Outcome()
	if got.Result != nil {
		r.Text = got.Result.Text
	}
	if a.JSON {
		if err := cli.NewLines(a.Out).Write(TurnLine{"turn", id, r}); err != nil {
			return err
		}
	} else if r.Text != "" {
		for _, l := range strings.Split(r.Text, "\n") {
			fmt.Fprintln(a.Out, cli.SafeText(l))
		}
	}
	return turnError(r)
}

// turnError is the error of a turn that was not completed.
func turnError(r session.TurnRecord) error {
	switch {
	case r.Status == session.TurnCompleted:
		return nil
	case r.Failure != nil:
		return fmt.Errorf("turn %d %s: %s", r.Turn, r.Status, r.Failure.Message)
	}
	return fmt.Errorf("turn %d was %s", r.Turn, r.Status)
}

func sessionApproveCommand(a *cli.App) *cobra.Command {
	var allow, deny, yes bool
	var reason string
	cmd := &cobra.Command{
		Use:   "approve ID [CALL]",
		Short: "List the tool calls of a session that wait for a person, or allow or deny one",
		Long: "Without --allow and --deny it lists what waits, with arguments. CALL may be left out where one call waits. On a terminal\n" +
			"it asks again before it allows what looks as if it could not be undone.",
		Example: "acescope session approve s-1 --json | jq .args\nacescope session approve s-1 toolu_01 --deny --reason 'not in this directory'",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if reason != "" && !allow && !deny {
				return cli.UsageError("--reason goes with --allow or --deny")
			}
			call := ""
			if len(args) == 2 {
				call = args[1]
			}
			return sessionApprove(a, cmd.Context(), args[0], call, allow, deny, reason, yes)
		},
	}
	cmd.Flags().BoolVar(&allow, "allow", false, "let the agent make the call")
	cmd.Flags().BoolVar(&deny, "deny", false, "do not let it")
	cmd.Flags().StringVar(&reason, "reason", "", "why; the agent is told")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.MarkFlagsMutuallyExclusive("allow", "deny")
	return cmd
}

// ApprovalLine is a tool call that waits for a person, or what was decided of it.
type ApprovalLine struct {
	Type      string         `json:"type"` // approval
	SessionID string         `json:"session_id"`
	CallID    string         `json:"call_id"`
	Tool      string         `json:"tool"`
	Args      any            `json:"args,omitempty"`
	ArgsCut   bool           `json:"args_cut,omitempty"` // they are larger than is shown
	Turn      int            `json:"turn"`
	WorkDir   string         `json:"work_dir,omitempty"`
	Risk      string         `json:"risk,omitempty"`
	Decision  session.Action `json:"decision,omitempty"`
	Reason    string         `json:"reason,omitempty"`
}

func sessionApprove(a *cli.App, ctx context.Context, name, call string, allow, deny bool, reason string, yes bool) error {
	return withSession(a, ctx, name, func(e *engine.Engine, id string) error {
		talk, err := sessions.ShowSession(ctx, sessionDeps(a, e), session.WorkflowID(id))
		if err != nil {
			return err
		}
		waiting := sessions.ApprovalsOf(session.WorkflowID(id), talk.State)
		if !allow && !deny {
			return listApprovals(a, e, id, call, waiting)
		}
		one, err := chosenApproval(id, call, waiting)
		if err != nil {
			return err
		}
		if risk := sessions.CallRisk(one.Call, one.Dir); allow && risk != "" {
			q := console.Prepared{Title: "Allow " + one.Call.Name + "? It " + risk + ".", Lines: []string{"session  " + id, "in       " + one.Dir, "call     " + string(one.Call.Args)}, Yes: "allow it"}
			if err := a.ConfirmOnTerminal(ctx, q, yes); err != nil {
				return err
			}
		}
		short, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		d := Decision(one.Call.ID, allow, reason)
		if _, err := e.Decide(short, id, d); err != nil {
			return Unheard(id, err)
		}
		line := lineOfApproval(e, one)
		line.Decision, line.Reason = d.Action, reason
		if a.JSON {
			return cli.NewLines(a.Out).Write(line)
		}
		_, err = fmt.Fprintf(a.Out, "%s: %s %s\n", map[bool]string{true: "allowed", false: "denied"}[allow], cli.SafeText(one.Call.Name), cli.SafeText(one.Call.ID))
		leaves(a, e, id)
		return err
	})
}

// chosenApproval is the call that is meant.
func chosenApproval(id, call string, waiting []sessions.Approval) (one sessions.Approval, err error) {
	for _, w := range waiting {
		if w.Call.ID == call || call == "" && len(waiting) == 1 {
			return w, nil
		}
	}
	switch {
	case len(waiting) == 0 && call == "":
		return one, &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("no tool call waits in session %s", id)}
	case call != "":
		return one, &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("no tool call %s waits in session %s", call, id)}
	}
	return one, cli.UsageError("%d tool calls wait in session %s: name one; without --allow or --deny they are listed", len(waiting), id)
}

func listApprovals(a *cli.App, e *engine.Engine, id, call string, waiting []sessions.Approval) error {
	out := cli.NewLines(a.Out)
	shown := 0
	for _, w := range waiting {
		if call != "" && w.Call.ID != call {
			continue
		}
		shown++
		line := lineOfApproval(e, w)
		if a.JSON {
			if err := out.Put(line); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(out.Buf, "%s  %s, turn %d, in %s\n", cli.SafeText(line.CallID), cli.SafeText(line.Tool), line.Turn, cli.SafeText(line.WorkDir))
		if line.Risk != "" {
			fmt.Fprintf(out.Buf, "  it %s\n", line.Risk)
		}
		for _, l := range agents.Arguments(w.Call.Args) {
			fmt.Fprintln(out.Buf, "  "+l)
		}
	}
	if shown == 0 && call != "" {
		return &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("no tool call %s waits in session %s", call, id)}
	}
	if shown == 0 {
		fmt.Fprintf(a.Err, "acescope: no tool call waits in session %s\n", id)
	}
	return out.Flush()
}

// lineOfApproval is a call as JSON, with its arguments whole where they can be had.
func lineOfApproval(e *engine.Engine, w sessions.Approval) ApprovalLine {
	l := ApprovalLine{Type: "approval", SessionID: w.ID, CallID: w.Call.ID, Tool: w.Call.Name, Turn: w.Call.Turn, WorkDir: w.Dir, Risk: sessions.CallRisk(w.Call, w.Dir)}
	args := w.Call.Args
	if ref := w.Call.ArgsRef; ref != nil {
		whole, err := e.Artifacts.Get(*ref, MaxArguments)
		if l.ArgsCut = err != nil; err == nil {
			args = whole
		}
	}
	if len(args) > 0 {
		l.Args = args
	}
	return l
}

func sessionInterruptCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "interrupt ID",
		Short: "End the turn under way; the session goes on",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sessionNote(a, cmd.Context(), args[0], "interrupt", reason, false, true)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the history keeps it")
	return cmd
}

func sessionStopCommand(a *cli.App) *cobra.Command {
	var reason string
	var yes, wait bool
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop a session, with the turn under way; its transcript stays",
		Long:  "Asks the session to end. On a terminal it asks whether this is meant.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sessionNote(a, cmd.Context(), args[0], "stop", reason, wait, yes)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the history keeps it")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it has ended")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// SessionAsked says that a session was asked to do something.
type SessionAsked struct {
	Type      string         `json:"type"` // session_interrupt, session_stop
	SessionID string         `json:"session_id"`
	Status    session.Status `json:"status"`
	Reason    string         `json:"reason,omitempty"`
}

func sessionNote(a *cli.App, ctx context.Context, name, what, reason string, wait, yes bool) error {
	return withSession(a, ctx, name, func(e *engine.Engine, id string) error {
		if !yes {
			q := console.Prepared{Title: "Stop session " + id + "?", Lines: []string{"it takes no more messages then"}, Yes: "stop it"}
			if err := a.ConfirmOnTerminal(ctx, q, yes); err != nil {
				return err
			}
		}
		short, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		ask := e.Interrupt
		if what == "stop" {
			ask = e.Stop
		}
		s, err := ask(short, id, session.Note{Reason: reason, By: Me()})
		if err != nil {
			return Unheard(id, err)
		}
		if wait {
			_ = e.Client.GetWorkflow(ctx, session.WorkflowID(id), "").Get(ctx, nil) // how it ended is told below
			if ctx.Err() != nil {
				return cli.ErrInterrupted
			}
			if s, err = e.Describe(ctx, id); err != nil {
				return err
			}
		}
		if a.JSON {
			return cli.NewLines(a.Out).Write(SessionAsked{"session_" + what, id, s.Status, reason})
		}
		_, err = fmt.Fprintf(a.Out, "session %s: %s asked for; it is %s\n", id, what, s.Status)
		return err
	})
}

func sessionReceiveCommand(a *cli.App) *cobra.Command {
	var r session.Receive
	cmd := &cobra.Command{
		Use:   "receive ID",
		Short: "Take what came out of a session after a cursor, and acknowledge what was taken",
		Long: "Gives what the agent said and did after a cursor, at most --limit of it, and where to go on. What --ack names is let go\n" +
			"of; what is not acknowledged is kept until 500 others have come. Nothing is lost unsaid: \"lost\" counts it.",
		Example: "acescope session receive s-1 --after 0 --wait --json | jq .next\nacescope session receive s-1 --after 12 --ack 12 --json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return sessionReceive(a, cmd.Context(), args[0], r) },
	}
	cmd.Flags().Int64Var(&r.After, "after", 0, "cursor behind which it begins")
	cmd.Flags().Int64Var(&r.Ack, "ack", 0, "cursor up to which everything was taken")
	cmd.Flags().IntVar(&r.Limit, "limit", 0, "at most so many (default 100)")
	cmd.Flags().BoolVar(&r.Wait, "wait", false, "wait until there is something, or the session has ended")
	return cmd
}

// ReceivedLine is what came out of a session.
type ReceivedLine struct {
	Type      string `json:"type"` // received
	SessionID string `json:"session_id"`
	session.Received
}

func sessionReceive(a *cli.App, ctx context.Context, name string, r session.Receive) error {
	if r.After < 0 || r.Ack < 0 || r.Limit < 0 {
		return cli.UsageError("--after, --ack and --limit must not be negative")
	}
	return withSession(a, ctx, name, func(e *engine.Engine, id string) error {
		got, err := receiveOnce(a, ctx, e, id, r)
		for r.Wait && err == nil && got.Continued && len(got.Messages) == 0 {
			got, err = receiveOnce(a, ctx, e, id, r)
		}
		if errors.Is(err, engine.ErrEnded) {
			var end session.State // what was not taken is in what it left
			if end, err = e.Describe(ctx, id); err == nil {
				got = end.After(r.After, r.Limit)
			}
		}
		if err != nil {
			return Unheard(id, err)
		}
		if a.JSON {
			return cli.NewLines(a.Out).Write(ReceivedLine{"received", id, got})
		}
		for _, m := range got.Messages {
			what := string(m.Kind)
			if m.Tool != "" {
				what += " " + m.Tool
			}
			fmt.Fprintf(a.Out, "%d\tturn %d\t%s\t%s\n", m.Cursor, m.Turn, cli.SafeText(what), cli.SafeText(strings.TrimSpace(m.Text+" "+string(m.Args))))
		}
		fmt.Fprintf(a.Err, "acescope: the session is %s; go on with --after %d --ack %d\n", got.Status, got.Next, got.Next)
		return nil
	})
}

func receiveOnce(a *cli.App, ctx context.Context, e *engine.Engine, id string, r session.Receive) (session.Received, error) {
	if r.Wait {
		return e.Receive(ctx, id, r)
	}
	short, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return e.Receive(short, id, r)
}
