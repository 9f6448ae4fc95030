package agents

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"acescope/cmd/acescope/internal/cli"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/tui/text"
)

// talkWriter writes a session, and what was said in it as it comes.
type talkWriter struct {
	out     io.Writer
	json    bool
	session string
	next    int // number of the first entry that was not written
}

// EntryLine is one thing that was said or done in a session.
type EntryLine struct {
	Type       string          `json:"type"` // user, text, thinking, tool, status, error
	SessionID  string          `json:"session_id"`
	Entry      int             `json:"entry"` // its number from the first that was read
	At         *time.Time      `json:"at,omitempty"`
	Name       string          `json:"name,omitempty"`
	Model      string          `json:"model,omitempty"`
	Text       string          `json:"text,omitempty"`
	CallID     string          `json:"call_id,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Result     string          `json:"result,omitempty"`
	Done       *bool           `json:"done,omitempty"` // of a tool: it has a result
	OK         *bool           `json:"ok,omitempty"`
	Denied     bool            `json:"denied,omitempty"`
	DurationMS float64         `json:"duration_ms,omitempty"`
	CutBytes   int             `json:"cut_bytes,omitempty"` // that text, args and result lack
	Note       string          `json:"note,omitempty"`      // who decided a call, or why a message waits
	Callback   bool            `json:"callback,omitempty"`  // what was said is the report of another run, which name names
	Waits      bool            `json:"waits,omitempty"`     // a call that waits for a person, a message that waits for the agent
}

func (w *talkWriter) summary(s *transcripts.Session) error {
	if w.json {
		return cli.NewLines(w.out).Write(sessionOf(s, time.Now(), true))
	}
	out := bufio.NewWriter(w.out)
	sum, t := s.Summary, s.Totals()
	fact := func(name, format string, args ...any) {
		if said := cli.SafeText(fmt.Sprintf(format, args...)); said != "" {
			fmt.Fprintf(out, "%-10s %s\n", name, said)
		}
	}
	fact("session", "%s", s.ID)
	fact("about", "%s", s.Name())
	fact("state", "%s", stateWord(s, time.Now()))
	fact("directory", "%s", s.Dir())
	fact("file", "%s", s.Path)
	fact("git", "%s", sum.Branch)
	if !sum.Started.IsZero() {
		fact("began", "%s, over %s", sum.Started.Format("2006-01-02 15:04:05 MST"), text.Span(sum.Last.Sub(sum.Started)))
	}
	fact("said", "%d turns, %d messages, %d compactions", sum.Turns, sum.Messages, sum.Compactions)
	fact("tokens", "%s in, %s out, cache %s read, %s written", text.Count(t.Tokens.Input), text.Count(t.Tokens.Output), text.Count(t.Tokens.CacheRead), text.Count(t.Tokens.CacheWrite()))
	fact("cost", "%s at list prices", costWord(t))
	if s.ForkedFrom != "" {
		fact("forked", "from %s, %d lines", s.ForkedFrom, s.Shared)
	}
	if sum.Errors > 0 {
		fact("errors", "%d, the last: %s", sum.Errors, sum.LastError)
	}
	for _, u := range sum.Tools {
		fact("tool", "%-24s %d calls, %d failed, %d denied, %s on average", u.Name, u.Calls, u.Failed, u.Denied, text.Took(u.Mean()))
	}
	for _, a := range s.Agents {
		fact("subagent", "%s %s %s: %d calls, %s tokens, %s", a.ID, a.Type, a.Description, a.Summary.Calls, text.Count(a.Summary.Tokens.Total()), costWord(a.Summary.Totals))
	}
	return out.Flush()
}

// entries writes what was not written yet, each entry once. While it follows, calls wait for
// their results, and what comes after them waits with them.
func (w *talkWriter) entries(c transcripts.Conversation, follow bool) error {
	lines := cli.NewLines(w.out)
	end := c.First + len(c.Entries)
	if w.next > end {
		w.next = 0 // the file is another one
	}
	if c.First > w.next && w.next == 0 && !w.json {
		fmt.Fprintf(lines.Buf, "\n(%d earlier entries are left out)\n", c.First)
	}
	for n := max(w.next, c.First); n < end; n++ {
		e := c.Entries[n-c.First]
		if follow && (e.Open || e.Kind == sessions.EntryTool && !e.Done && end-n <= maxWaiting) {
			break
		}
		w.next = n + 1
		if err := w.put(lines, n, e); err != nil {
			return err
		}
	}
	return lines.Flush()
}

// maxWaiting bounds how many entries wait for the result of a call before them: some calls
// never get one.
const maxWaiting = 20

func (w *talkWriter) put(lines *cli.Lines, n int, e *transcripts.Entry) error {
	if !w.json {
		return w.print(lines.Buf, e)
	}
	l := EntryLine{Type: string(e.Kind), SessionID: w.session, Entry: n, At: timeOf(e.At), Name: e.Name, Model: e.Model, Text: e.Text, CutBytes: e.Cut + e.ResultCut, Note: e.Note, Waits: e.Waits, Callback: e.Callback}
	if e.Kind == sessions.EntryTool {
		l.Type, l.Text, l.CallID, l.Result, l.Denied, l.Done = "tool", "", e.CallID, e.Result, e.Denied, &e.Done
		if l.DurationMS = cli.Millis(e.Took); e.Done {
			l.OK = &e.OK
		}
		if json.Valid([]byte(e.Text)) {
			l.Args = json.RawMessage(e.Text)
		} else {
			l.Text = e.Text // they were cut
		}
	}
	return lines.Put(l)
}

func (w *talkWriter) print(out io.Writer, e *transcripts.Entry) error {
	at := "        "
	if !e.At.IsZero() {
		at = e.At.Local().Format("15:04:05")
	}
	who := string(e.Kind)
	switch {
	case e.Kind == sessions.EntryUser && e.Callback:
		who = "callback"
	case e.Kind == sessions.EntryUser:
		who = "person"
	}
	said := e.Text
	if e.Kind == sessions.EntryTool {
		who = e.Name + " " + callWord(e)
		said += "\n" + e.Result
	} else if e.Name != "" {
		who += " " + e.Name
	}
	if e.Note != "" {
		who += ", " + e.Note
	}
	if _, err := fmt.Fprintf(out, "\n%s %s\n", at, cli.SafeText(who)); err != nil {
		return err
	}
	for _, l := range text.Lines(strings.TrimSpace(said)) {
		if _, err := fmt.Fprintln(out, "         "+l); err != nil {
			return err
		}
	}
	if cut := e.Cut + e.ResultCut; cut > 0 {
		_, err := fmt.Fprintf(out, "         (%d more bytes)\n", cut)
		return err
	}
	return nil
}

func callWord(e *transcripts.Entry) string {
	switch {
	case e.Waits:
		return "(waits for leave)"
	case !e.Done:
		return "(no result yet)"
	case e.Denied:
		return "(denied)"
	case !e.OK:
		return "(failed)"
	}
	return ""
}
