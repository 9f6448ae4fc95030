package agents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/views/console"
)

// actionBindings returns the keys that act on the selected session. view is the name of the view that has
// them.
func (a *Agents) actionBindings(view string, waiting func() *sessions.Approval) []tui.Binding {
	if a.actions == nil {
		return nil
	}
	answer := func(s tui.Shell) tea.Cmd { return a.answer(s, waiting()) }
	return []tui.Binding{
		console.MutatingKey(view+".answer", "show the pending tool call in full, then allow or deny it",
			a.short(waiting, "answer"), answer, "w"),
		console.MutatingKey(view+".message", "write a message to the session", a.short(nil, "message"),
			a.message, "i"),
		console.MutatingKey(view+".interrupt",
			"interrupt the current turn; the session continues (asks first)", "", a.interrupt, "I"),
		console.MutatingKey(view+".cancel", "stop the session (asks first)", "", a.stop, "x"),
	}
}

// short returns the label of a key for the status line, or "" if the key does nothing now.
func (a *Agents) short(waiting func() *sessions.Approval, word string) string {
	r, ok := a.Row()
	if !ok || r.Engine == nil || waiting != nil && waiting() == nil || waiting == nil && !r.Engine.Open() {
		return ""
	}
	return word
}

// waiting returns the oldest waiting tool call of the selected session, or of any session.
func (a *Agents) waiting() *sessions.Approval {
	if r, ok := a.Row(); ok && r.Engine != nil && r.Engine.Open() {
		if list := sessions.ApprovalsOf(a.state(r)); len(list) > 0 {
			return &list[0]
		}
	}
	if a.approvals != nil && len(a.approvals.Rows) > 0 {
		return &a.approvals.Rows[0]
	}
	return nil
}

// openSession returns the selected session if it is open on the engine. Otherwise it notes why not.
func (a *Agents) openSession(s tui.Shell) (sessions.Row, bool) {
	r, ok := a.Row()
	switch {
	case !ok:
		s.Note("no session is selected")
	case r.Engine == nil:
		s.Note("a transcript accepts no messages; + starts a session on the engine")
	case !r.Engine.Open():
		s.Note("the session is closed")
	default:
		return r, true
	}
	return r, false
}

// message opens the prompt for a message. It goes to the session that is selected now, even if the list
// changes.
func (a *Agents) message(s tui.Shell) tea.Cmd {
	r, ok := a.openSession(s)
	if !ok {
		return nil
	}
	id, name := r.ID, text.Safe(sessionName(r), " ")
	s.Ask(tui.Prompt{Label: "message", Lines: true, Hint: "to " + text.Cut(name, 60, "…"),
		Preview: func(string) string {
			return "enter sends it to " + name + "; ctrl+j: new line, esc: cancel"
		},
		Done: func(typed string) tea.Cmd {
			if strings.TrimSpace(typed) == "" {
				return nil
			}
			return a.send(id, typed)
		}})
	return nil
}

func (a *Agents) send(id, typed string) tea.Cmd {
	return a.pipeline.Act("send", func(ctx context.Context) (string, error) {
		n, err := a.actions.SendMessage(ctx, id, typed)
		if n > 0 {
			return "sent; " + ace.Count(n, "message") + " before it", err
		}
		return "sent", err
	})
}

func (a *Agents) interrupt(s tui.Shell) {
	r, ok := a.openSession(s)
	if !ok {
		return
	}
	if st := a.state(r); st != nil && st.Current == nil {
		s.Note("no turn is in progress")
		return
	}
	a.pipeline.Confirm(s, "interrupt", runs.Prepared{Title: "Interrupt this turn?", Lines: sessionLines(r),
		Yes: "interrupt the turn; the session continues", Do: console.Doing("asked the agent to end its turn",
			func(ctx context.Context) error { return a.actions.InterruptSession(ctx, r.ID) })})
}

func (a *Agents) stop(s tui.Shell) {
	r, ok := a.openSession(s)
	if !ok {
		return
	}
	lines := sessionLines(r)
	if st := a.state(r); st != nil {
		if st.Current != nil {
			lines = append(lines, "the turn in progress is interrupted")
		}
		if n := len(st.Queue); n > 0 {
			lines = append(lines, ace.Count(n, "queued message")+" will not reach the agent")
		}
	}
	lines = append(lines, "the session accepts no more messages; its transcript is kept")
	a.pipeline.Confirm(s, "stop", runs.Prepared{Title: "Stop this session?", Lines: lines,
		Yes: "stop the session", Do: console.Doing("asked the session to stop",
			func(ctx context.Context) error { return a.actions.StopSession(ctx, r.ID) })})
}

func sessionLines(r sessions.Row) []string {
	name := text.Cut(text.Safe(firstLine(sessionName(r)), " "), 60, "…")
	return []string{"session   " + text.Safe(r.ID, " "), "name      " + name, "directory " +
		text.Safe(r.Dir, " ")}
}

func sessionName(r sessions.Row) string { return cmp.Or(r.Name, r.ID) }

// answer shows a whole tool call and asks whether to allow it. Later calls do not replace it.
func (a *Agents) answer(s tui.Shell, w *sessions.Approval) tea.Cmd {
	if w == nil {
		s.Note("no tool call is waiting")
		return nil
	}
	call := *w
	ref := call.Call.ArgsRef
	if ref == nil {
		s.Confirm(a.question(call, nil))
		return nil
	}
	return func() tea.Msg {
		ctx, stop := context.WithTimeout(a.pipeline.Context, console.ActionTimeout)
		defer stop()
		whole, err := a.actions.Arguments(ctx, *ref)
		if err == nil {
			call.Call.ArgsRef, call.Call.Args = nil, whole
		}
		return tui.Asked(a.question(call, err))
	}
}

// question returns the dialog about a call. cut is the reason why its arguments are incomplete, or nil.
func (a *Agents) question(w sessions.Approval, cut error) tui.Question {
	risk := sessions.CallRisk(w.Call, w.Dir)
	head := []string{
		"session   " + text.Safe(w.ID, " ") + "  " + text.Cut(text.Safe(firstLine(w.Name), " "), 60, "…"),
		"agent     " + text.Safe(w.Agent, " ") + ", turn " + fmt.Sprint(w.Call.Turn),
		"where     " + text.Safe(strings.TrimSuffix(w.Dir+" on "+w.Host, " on "), " "),
		"call      " + text.Safe(w.Call.ID, " "),
		"",
	}
	lines := append(head, text.Members(w.Call.Args)...)
	if cut != nil {
		lines = append(lines, "", "THE ARGUMENTS ARE INCOMPLETE: "+text.Safe(cut.Error(), " "))
	}
	deny := tui.Choice{Key: "d", Yes: "deny", Do: func(s tui.Shell) tea.Cmd { a.deny(s, w); return nil }}
	q := tui.Question{Title: "Allow " + toolName(w) + "?", Lines: lines, Long: true, Yes: "allow",
		Do: func() tea.Cmd { return a.allow(w, risk, head) }, Others: []tui.Choice{deny}}
	if risk != "" {
		q.Warning = "it " + risk
	}
	return q
}

func toolName(w sessions.Approval) string { return text.Cut(text.Safe(w.Call.Name, " "), 30, "…") }

// allow allows a call. A risk needs a second confirmation.
func (a *Agents) allow(w sessions.Approval, risk string, head []string) tea.Cmd {
	act := func() tea.Cmd {
		return a.pipeline.Act("allow", func(ctx context.Context) (string, error) {
			return "allowed " + w.Call.Name, a.actions.DecideCall(ctx, w.ID, w.Call.ID, true, "")
		})
	}
	if risk == "" {
		return act()
	}
	lines := append(slices.Clone(head), "The tool runs on that host, as the user who serves the session.",
		"Its effects may be impossible to undo.")
	return func() tea.Msg {
		return tui.Asked(tui.Question{Title: "Allow " + toolName(w) + " despite the risk?", Lines: lines,
			Long: true, Warning: "it " + risk, Yes: "allow it", Do: act})
	}
}

func (a *Agents) deny(s tui.Shell, w sessions.Approval) {
	s.Ask(tui.Prompt{Label: "deny, reason", Hint: "a reason for the agent, may be empty",
		Preview: func(string) string {
			return "denies " + text.Safe(w.Call.Name, " ") + " in session " + text.Safe(w.ID, " ")
		},
		Done: func(reason string) tea.Cmd {
			return a.pipeline.Act("deny", func(ctx context.Context) (string, error) {
				reason = strings.TrimSpace(reason)
				return "denied " + w.Call.Name, a.actions.DecideCall(ctx, w.ID, w.Call.ID, false, reason)
			})
		}})
}

// commands returns the commands for sessions.
func (a *Agents) commands() []tui.Command {
	if a.actions == nil {
		return nil
	}
	return []tui.Command{
		{Name: "session", Args: "ID | start agent=… dir=… PROMPT | send TEXT | interrupt | stop | approve",
			Mutates: true, Help: "go to a session, start one, or act on the selected one",
			Candidates: a.verbCandidates, Complete: completeSession, Check: a.checkVerb, Do: a.command},
		{Name: "approve", Help: "allow or deny the waiting tool call", Mutates: true,
			Do: func(s tui.Shell, _ string) tea.Cmd { return a.answer(s, a.waiting()) }},
	}
}

// verbs are the words that the command for sessions may begin with, besides the ID of a session.
var verbs = []tui.Candidate{{Value: "start ", Help: "a session"},
	{Value: "send ", Help: "a message to the selected one"},
	{Value: "interrupt", Help: "its turn"}, {Value: "stop", Help: "the selected one"},
	{Value: "approve", Help: "or deny its tool call"}}

func (a *Agents) verbCandidates() []tui.Candidate {
	return append(slices.Clone(verbs), a.candidates()...)
}

func (a *Agents) checkVerb(args string) error {
	verb, _, _ := strings.Cut(args, " ")
	if slices.ContainsFunc(verbs, func(c tui.Candidate) bool { return strings.TrimSpace(c.Value) == verb }) {
		return nil
	}
	_, err := a.named(args)
	return err
}

// candidates are the sessions.
func (a *Agents) candidates() (list []tui.Candidate) {
	for _, r := range a.rows {
		list = append(list, tui.Candidate{Value: r.ID, Help: sessionName(r) + "  " + r.Dir})
	}
	return list
}

// named returns the session with an ID.
func (a *Agents) named(id string) (sessions.Row, error) {
	for _, r := range a.rows {
		if r.ID == id {
			return r, nil
		}
	}
	return sessions.Row{}, fmt.Errorf(
		"session %q not found; give an ID, start, send, interrupt, stop or approve", id)
}

func (a *Agents) show(s tui.Shell, id string) tea.Cmd {
	r, err := a.named(id)
	if err != nil {
		return console.Failed("session", err)
	}
	a.nav.OpenSession(s, r.Key)
	return nil
}

func (a *Agents) command(s tui.Shell, args string) tea.Cmd {
	verb, rest, _ := strings.Cut(args, " ")
	switch rest = strings.TrimSpace(rest); verb {
	case "start":
		if rest == "" {
			return a.askStart(s)
		}
		return a.start(s, rest)
	case "send":
		r, ok := a.openSession(s)
		if !ok || rest == "" {
			return nil
		}
		return a.send(r.ID, rest)
	case "interrupt":
		a.interrupt(s)
	case "stop":
		a.stop(s)
	case "approve":
		return a.answer(s, a.waiting())
	default:
		return a.show(s, args)
	}
	return nil
}

// runBindings returns the keys that lead to the runs and to the history of the selected session.
func (a *Agents) runBindings(view string, open func(tui.Shell) tea.Cmd) []tui.Binding {
	return []tui.Binding{
		console.Key(view+".related", "open the runs that the session started or was given; on a callback, its run", "",
			open, "O"),
		console.Key(view+".event", "show the history of the session's workflow on the timeline; esc leads back", "",
			a.openHistory, "J"),
	}
}

func (a *Agents) openHistory(s tui.Shell) {
	r, ok := a.Row()
	if !ok || r.Engine == nil {
		s.Note("a transcript has no history; only sessions on the engine do")
		return
	}
	a.nav.Show(runs.Run{WorkflowID: r.Key, RunID: r.Engine.RunID, TaskID: r.Key, Type: session.Workflow,
		Start: r.Engine.Start, Close: r.Engine.Close, Status: r.Engine.Exit})
	s.Open("timeline")
}
