package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/tui/text"
)

type EntryLine struct {
	Type      string `json:"type"` // user, text, thinking, tool, status, error
	SessionID string `json:"session_id"`
	Number    int    `json:"entry"` // counted from the first entry that was read
	transcripts.Entry
	Args       json.RawMessage `json:"args,omitempty"` // of a tool; text replaces them if they were cut
	Done       *bool           `json:"done,omitempty"` // the tool has a result
	OK         *bool           `json:"ok,omitempty"`
	DurationMS float64         `json:"duration_ms,omitempty"`
	CutBytes   int             `json:"cut_bytes,omitempty"` // missing from text, args and result
}

func newEntryLine(session string, number int, e transcripts.Entry) EntryLine {
	l := EntryLine{Type: string(e.Kind), SessionID: session, Number: number, Entry: e,
		DurationMS: cluster.Millis(e.Took), CutBytes: e.Cut + e.ResultCut}
	l.At = e.At.UTC()
	if e.Kind != transcripts.KindCall {
		return l
	}
	l.Type, l.Done = "tool", &e.Done
	if e.Done {
		l.OK = &e.OK
	}
	if args := json.RawMessage(e.Text); json.Valid(args) {
		l.Args, l.Text = args, ""
	}
	return l
}

// conversationWriter writes the entries of a conversation as they come, each one once. A tool call is written
// again when the decision on it becomes known: the agent's log can be ahead of the history.
type conversationWriter struct {
	*cli.App
	session   string
	next      int   // number of the first entry that was not written
	undecided []int // numbers of the last calls that were written without a decision
}

// maxPendingEntries bounds how many entries wait for the result of a call before them: some calls never get
// one.
const maxPendingEntries = 20

// writeEntries writes the new entries. With follow, a call without a result and the entries after it are not
// written yet.
func (w *conversationWriter) writeEntries(c transcripts.Conversation, follow bool) error {
	lines := cli.NewLines(w.App)
	end := c.First + len(c.Entries)
	if w.next > end {
		w.next, w.undecided = 0, nil // the file was replaced
	}
	if c.First > w.next && w.next == 0 && !w.JSON {
		fmt.Fprintf(lines.Buf, "\n(%s left out)\n", ace.Count(c.First, "earlier entry"))
	}
	put := func(n int, e *transcripts.Entry) {
		if w.JSON {
			lines.Put(newEntryLine(w.session, n, *e))
		} else {
			printEntry(lines.Buf, e)
		}
	}
	undecided := w.undecided
	w.undecided = nil
	for _, n := range undecided {
		switch e := entryAt(c, n); {
		case e == nil:
		case e.Note == "":
			w.undecided = append(w.undecided, n)
		default:
			put(n, e)
		}
	}
	for n := max(w.next, c.First); n < end; n++ {
		e := entryAt(c, n)
		pending := e.Kind == transcripts.KindCall && !e.Done && end-n <= maxPendingEntries
		if follow && (e.Open || pending) {
			break
		}
		w.next = n + 1
		put(n, e)
		if follow && e.Kind == transcripts.KindCall && e.Note == "" {
			w.undecided = append(w.undecided[max(0, len(w.undecided)-maxPendingEntries):], n)
		}
	}
	return lines.Flush()
}

// entryAt returns the entry with a number, or nil if the conversation no longer has it.
func entryAt(c transcripts.Conversation, n int) *transcripts.Entry {
	if n < c.First || n >= c.First+len(c.Entries) {
		return nil
	}
	return c.Entries[n-c.First]
}

func printEntry(out io.Writer, e *transcripts.Entry) {
	at := "        "
	if !e.At.IsZero() {
		at = e.At.Local().Format(time.TimeOnly)
	}
	title, content := string(e.Kind), e.Text
	switch {
	case e.Kind == transcripts.KindCall:
		title = e.Name + " " + callState(e)
		content += "\n" + e.Result
	case e.Callback:
		title = "callback " + e.Name
	case e.Name != "":
		title += " " + e.Name
	}
	if e.Note != "" {
		title += ", " + e.Note
	}
	fmt.Fprintf(out, "\n%s %s\n", at, cli.SafeText(title))
	for _, l := range text.Lines(strings.TrimSpace(content)) {
		fmt.Fprintln(out, "         "+l)
	}
	if cut := e.Cut + e.ResultCut; cut > 0 {
		fmt.Fprintf(out, "         (%s)\n", ace.Count(cut, "more byte"))
	}
}

func callState(e *transcripts.Entry) string {
	switch {
	case e.Waits:
		return "(waits for approval)"
	case !e.Done:
		return "(no result yet)"
	case e.Denied:
		return "(denied)"
	case !e.OK:
		return "(failed)"
	}
	return ""
}

const transcriptInterval = 200 * time.Millisecond

// writeTranscript writes the conversation of a transcript. With follow it continues until it is interrupted.
func writeTranscript(a *cli.App, ctx context.Context, s *transcripts.Session, follow bool) error {
	w := conversationWriter{App: a, session: s.ID}
	f := transcripts.Follow(s.Path)
	for {
		if f.Read(ctx) {
			c := f.Conversation()
			if c.Err != "" && !follow {
				return errors.New(c.Err)
			}
			if err := w.writeEntries(c, follow); err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		if cluster.Sleep(ctx, transcriptInterval) != nil {
			return cli.ErrInterrupted
		}
	}
}

// SessionChange is a changed state of a session.
type SessionChange struct {
	SessionID string         `json:"session_id"`
	State     session.Status `json:"state"`
	Turn      int            `json:"turn,omitempty" jsonschema:"turn under way"`
	Waiting   int            `json:"waiting" jsonschema:"tool calls that wait"`
	Queued    int            `json:"queued" jsonschema:"messages that wait"`
	From      runs.Origin    `json:"from"`
}

// DeltaLine is a part of a text that is being written. The complete text follows its parts.
type DeltaLine struct {
	SessionID string `json:"session_id"`
	Entry     int    `json:"entry"`
	Text      string `json:"text"`
}

// followSession writes the conversation of a session until the session, or the turn with the message, has
// ended.
func followSession(a *cli.App, ctx context.Context, e *engine.Engine, id, messageID string) error {
	w := &sessionFollower{conversationWriter: conversationWriter{App: a, session: id}, open: -1}
	turn, err := watchSession(ctx, e, id, messageID, func(d *sessions.Detail, turn *sessions.Turn) error {
		if messageID == "" || turn != nil {
			return w.write(ctx, e, d, turn)
		}
		return nil
	})
	if err != nil || turn == nil {
		return err
	}
	return turnError(*turn.Record)
}

// watchSession calls each with every change of a session, until the session or the turn with the message, ""
// for none, has ended. It returns that turn, whose record is not nil. The error of a session that has ended
// without the turn says why.
func watchSession(
	ctx context.Context, e *engine.Engine, id, messageID string,
	each func(*sessions.Detail, *sessions.Turn) error,
) (turn *sessions.Turn, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	over := false
	sessions.Follow(ctx, sessionDeps(e), session.WorkflowID(id), func(d *sessions.Detail) {
		if over {
			return
		}
		turn = d.TurnOf(messageID)
		err = each(d, turn)
		if err == nil && d.Err != "" {
			err = fmt.Errorf("session %s: %s", id, d.Err)
		}
		over = err != nil || d.Closed || turn != nil && !turn.Ended.IsZero()
		if over {
			stop()
		}
		if over && err == nil && (turn == nil || turn.Record == nil) {
			turn, err = nil, endError(d.State, id, messageID)
		}
	})
	if !over {
		err = cli.ErrInterrupted
	}
	return turn, err
}

// sessionFollower writes a session on the engine, and its conversation as it comes.
type sessionFollower struct {
	conversationWriter
	started bool
	state   SessionChange // as it was last written
	open    int           // number of the entry whose parts are being written
	written int           // bytes of its text
}

// write writes what is new: in the session, or only in one turn if it is not nil.
func (w *sessionFollower) write(
	ctx context.Context, e *engine.Engine, d *sessions.Detail, turn *sessions.Turn,
) error {
	if d.State == nil || len(d.Turns) == 0 && d.Events == 0 {
		return nil // not read yet
	}
	c := *d.Conversation
	c.Entries = c.Entries[:len(c.Entries)-c.Queued] // queued messages are written when their turn starts
	if !w.started {
		w.started = true
		if turn != nil {
			w.next = c.First + max(0, slices.IndexFunc(c.Entries, func(e *transcripts.Entry) bool {
				return e.Kind == transcripts.KindUser && e.At.Equal(turn.Began)
			}))
		} else if err := writeEngineSession(w.App, ctx, e, d); err != nil {
			return err
		}
	}
	if err := w.writeState(d); err != nil {
		return err
	}
	open := !d.Closed && (turn == nil || turn.Ended.IsZero())
	if err := w.writeEntries(c, open); err != nil {
		return err
	}
	return w.writeDelta(c)
}

// writeState writes the state of the session if it has changed.
func (w *sessionFollower) writeState(d *sessions.Detail) error {
	s, before := d.State, w.state
	now := SessionChange{SessionID: w.session, State: s.Status, Waiting: len(s.Pending),
		Queued: len(s.Queue), From: d.From}
	if s.Current != nil {
		now.Turn = s.Current.Turn
	}
	w.state = now
	if before.From = now.From; before == now {
		return nil
	}
	if w.JSON {
		return cli.NewLines(w.App).Write(now)
	}
	if len(s.Pending) > 0 && before.Waiting != now.Waiting {
		_, err := fmt.Fprintf(w.Out, "\n         %s\n", approvalHint(s.Pending[0], w.session))
		return err
	}
	return nil
}

func approvalHint(r session.ToolRequest, id string) string {
	return cli.SafeText(fmt.Sprintf(`%s waits for approval; run "acescope session approve %s"`, r.Name, id))
}

// writeDelta writes the new part of a text that is being written.
func (w *sessionFollower) writeDelta(c transcripts.Conversation) error {
	n := w.next - c.First
	if !w.JSON || n < 0 || n >= len(c.Entries) || !c.Entries[n].Open {
		return nil
	}
	if w.open != w.next {
		w.open, w.written = w.next, 0
	}
	content := c.Entries[n].Text
	if len(content) <= w.written {
		return nil
	}
	part := content[w.written:]
	w.written = len(content)
	return cli.NewLines(w.App).Write(DeltaLine{w.session, w.next, part})
}

type TurnLine struct {
	SessionID string `json:"session_id"`
	session.TurnRecord
}

// awaitTurn waits for the end of the turn with a message and writes the answer.
func awaitTurn(a *cli.App, ctx context.Context, e *engine.Engine, id, messageID string) error {
	hinted := ""
	turn, err := watchSession(ctx, e, id, messageID, func(d *sessions.Detail, _ *sessions.Turn) error {
		if d.State != nil && len(d.State.Pending) > 0 && d.State.Pending[0].ID != hinted {
			hinted = d.State.Pending[0].ID
			cli.Warn(a, "%s", approvalHint(d.State.Pending[0], id))
		}
		return nil
	})
	if err != nil {
		return err
	}
	r := *turn.Record
	if turn.Result != nil {
		r.Text = turn.Result.Text
	}
	if a.JSON {
		if err := cli.NewLines(a).Write(TurnLine{id, r}); err != nil {
			return err
		}
	} else if r.Text != "" {
		fmt.Fprintln(a.Out, r.Text)
	}
	return turnError(r)
}

// turnError returns the error of a turn that was not completed, or nil.
func turnError(r session.TurnRecord) error {
	kept := ""
	if r.Kept {
		kept = "; the message stays in the queue"
	}
	switch {
	case r.Status == session.TurnCompleted:
		return nil
	case r.Failure != nil:
		return fmt.Errorf("turn %d %s: %s%s", r.Turn, r.Status, r.Failure.Message, kept)
	}
	return fmt.Errorf("turn %d was %s", r.Turn, r.Status)
}
