package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/agents/transcript"
	"acescope/engine/agents/transcript/copies"
	"acescope/engine/store/artifact"
	"acescope/sources/cluster"
	"acescope/sources/runs"
	"acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/tui/text"
)

func SessionCommand(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "session",
		Short: "Sessions of agents, on the engine and in transcripts on this machine",
	},
		sessionStartCommand(a), sessionSendCommand(a), sessionShowCommand(a), sessionListCommand(a),
		sessionApproveCommand(a), sessionInterruptCommand(a), sessionStopCommand(a), sessionMoveCommand(a),
		sessionReceiveCommand(a))
}

type sessionListFlags struct {
	limit               int
	project             string
	engine, transcripts bool
}

func sessionListCommand(a *cli.App) *cobra.Command {
	var f sessionListFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions of agents, the newest first",
		Long: `Lists the sessions on the engine and the transcripts of Claude Code, Codex, Gemini and OpenCode on
this machine, with their tool calls, tokens and cost. A session on the engine and its transcript are
one line. The sessions on the engine need a server: the command starts one if none runs for the data
directory, unless nothing was ever stored there. With --transcripts it needs none.`,
		Example: `acescope session list --limit 20
acescope session list --engine --json | jq 'select(.waiting > 0) | .id'
acescope session list --transcripts --json | jq -s 'map(.cost_usd // 0) | add'`,
		RunE: func(cmd *cobra.Command, _ []string) error { return listSessions(a, cmd.Context(), f) },
	}
	fs := cmd.Flags()
	intVar(fs, &f.limit, "limit", 0, 1<<31-1, "maximum number of sessions (default: all)")
	fs.StringVar(&f.project, "project", "", "only sessions whose directory contains this text")
	fs.BoolVar(&f.engine, "engine", false, "only sessions on the engine")
	fs.BoolVar(&f.transcripts, "transcripts", false, "only transcripts")
	cmd.MarkFlagsMutuallyExclusive("engine", "transcripts")
	return cmd
}

func listSessions(a *cli.App, ctx context.Context, f sessionListFlags) error {
	onEngine, err := listEngineSessions(a, ctx, f)
	if err != nil {
		return err
	}
	files, err := readTranscripts(a, ctx, f.engine || len(onEngine) > 0)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(sessions.Rows(slices.Collect(cli.Mapped(files, sessions.RowOf)), onEngine),
		func(s sessions.Row) bool {
			return f.engine && s.Engine == nil || !strings.Contains(s.Dir, f.project)
		})
	if f.limit > 0 {
		list = list[:min(f.limit, len(list))]
	}
	now := time.Now()
	lines := cli.Mapped(list, func(r sessions.Row) SessionLine { return newSessionLine(r.Brief(), now) })
	return cli.WriteRows(a, lines, "ID\tAGENT\tSTATE\tAGE\tTURNS\tTOOLS\tTOKENS\tCOST\tPROJECT\tSESSION",
		func(s SessionLine) []any {
			return []any{s.ID, s.Agent, stateText(s.Row, now), text.Span(now.Sub(s.Last)), s.Turns, s.Calls,
				ace.Number(s.Tokens.Total()), costText(s.Totals), filepath.Base(s.Dir),
				text.Cut(cli.SafeText(s.Name), 60, "…")}
		})
}

// listEngineSessions returns the sessions on the engine, unless the flags exclude them or the data directory
// is unused.
func listEngineSessions(a *cli.App, ctx context.Context, f sessionListFlags) ([]*sessions.EngineSession,
	error) {
	if f.transcripts || !f.engine && !reachable(a) {
		return nil, nil
	}
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return nil, err
	}
	mirrorTranscripts(a, ctx, e)
	list, more, err := sessions.List(ctx, e.Client, e.Namespace(), sessions.MaxEngineSessions)
	if more {
		cli.Warn(a, "only the newest %d sessions on the engine are listed", sessions.MaxEngineSessions)
	}
	return list, err
}

// mirrorTranscripts copies the transcripts of other machines to this one. An error is not fatal: fewer
// sessions are listed.
func mirrorTranscripts(a *cli.App, ctx context.Context, e *engine.Engine) {
	if mirror := cluster.TranscriptMirror(engine.TranscriptMirror(e)); mirror.Once(ctx) != nil {
		cli.Warn(a, "the transcripts of other machines cannot be read from the shared store")
	}
}

func sessionShowCommand(a *cli.App) *cobra.Command {
	var follow, summary bool
	cmd := &cobra.Command{
		Use:   "show SESSION|FILE",
		Short: "Show a session of an agent: its state, tools, turns and conversation",
		Long: `Shows the session with an id, or the beginning of one, on the engine or among the transcripts, or a
transcript by its file; and the newest 5,000 entries of its conversation, with long texts cut. With
--follow it continues with new entries; for a session on the engine that is served on this machine,
parts of a text appear while it is written.`,
		Example: `acescope session show 5e551011
acescope session show s-20261121-1 --follow --json | jq -rj 'select(.type == "delta").text'
acescope session show 5e551011 --json | jq 'select(.type == "tool" and .ok == false)'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return showSession(a, cmd.Context(), args[0], follow, summary)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false,
		"continue until interrupted or until the session has ended")
	cmd.Flags().BoolVar(&summary, "summary", false, "leave out the conversation")
	cmd.MarkFlagsMutuallyExclusive("follow", "summary")
	return cmd
}

func showSession(a *cli.App, ctx context.Context, name string, follow, summary bool) error {
	if name == "" {
		return engine.ErrNoSession.Of(name)
	}
	if transcript.FormatOf(name) == nil && reachable(a) {
		if found, err := showEngineSession(a, ctx, name, follow, summary); found || err != nil {
			return err
		}
	}
	s, err := findTranscript(a, ctx, "", name)
	if err != nil {
		return err
	}
	if err := writeSession(a, sessions.RowOf(s)); err != nil || summary {
		return err
	}
	return writeTranscript(a, ctx, s, follow)
}

// showEngineSession shows a session on the engine. found is false if no session has the name.
func showEngineSession(a *cli.App, ctx context.Context, name string, follow, summary bool) (found bool,
	err error) {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return false, err
	}
	id, err := findSession(ctx, e, name)
	if err != nil {
		return false, err
	}
	if id == "" {
		mirrorTranscripts(a, ctx, e)
		return false, nil
	}
	if follow {
		return true, followSession(a, ctx, e, id, "")
	}
	detail, err := sessions.Show(ctx, sessionDeps(e), session.WorkflowID(id))
	if err != nil {
		return true, err
	}
	if err := writeEngineSession(a, ctx, e, detail); err != nil || summary {
		return true, err
	}
	w := conversationWriter{App: a, session: id}
	return true, w.writeEntries(*detail.Conversation, false)
}

// writeEngineSession writes a session on the engine, with the usage in its transcript as in the list.
func writeEngineSession(a *cli.App, ctx context.Context, e *engine.Engine, d *sessions.Detail) error {
	row := &sessions.EngineSession{WorkflowID: d.WorkflowID, RunID: d.RunID, ID: session.IDOf(d.WorkflowID),
		State: d.State, From: d.From}
	if described, err := e.Client.DescribeWorkflowExecution(ctx, d.WorkflowID, ""); err == nil {
		info := described.GetWorkflowExecutionInfo()
		row.Start = info.GetStartTime().AsTime()
		row.Last = row.Start
		if info.GetCloseTime() != nil {
			row.Close = info.GetCloseTime().AsTime()
			row.Last = row.Close
		}
	}
	if d.State != nil {
		row.Status, row.Exit = d.State.Status, d.State.Exit
	}
	if n := len(d.Turns); n > 0 && d.Turns[n-1].Ended.After(row.Last) {
		row.Last = d.Turns[n-1].Ended
	}
	var files []*transcripts.Session
	if s := d.State; s != nil && (s.Turns > 0 || s.Input.Resume) { // it has a transcript
		mirrorTranscripts(a, ctx, e)
		var err error
		if files, err = readTranscripts(a, ctx, true); err != nil {
			return err
		}
	}
	rows := sessions.Rows(slices.Collect(cli.Mapped(files, sessions.RowOf)), []*sessions.EngineSession{row})
	return writeSession(a, rows[slices.IndexFunc(rows, func(r sessions.Row) bool { return r.Engine == row })])
}

// findSession returns the id of the session on the engine with an id, the beginning of an id, or a workflow
// id. It returns "" if no session matches.
func findSession(ctx context.Context, e *engine.Engine, name string) (string, error) {
	id := cmp.Or(session.IDOf(name), name)
	if id == "" {
		return "", nil
	}
	_, err := e.Client.DescribeWorkflowExecution(ctx, session.WorkflowID(id), "")
	if err == nil {
		return id, nil
	}
	if !cluster.NotFound(err) {
		return "", err
	}
	var found []string
	err = runs.List(ctx, e.Client, sessions.Query, sessions.MaxEngineSessions, func(r runs.Run) error {
		if known := session.IDOf(r.WorkflowID); strings.HasPrefix(known, id) {
			found = append(found, known)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], checkUnique(name, found)
}

// findTranscript returns the session of an agent, "" for all, with an id, the beginning of an id, or a file.
func findTranscript(
	a *cli.App, ctx context.Context, agent agentcli.CLI, name string,
) (*transcripts.Session, error) {
	list, err := readTranscripts(a, ctx, true)
	if err != nil {
		return nil, err
	}
	isOther := func(s *transcripts.Session) bool { return agent != "" && s.Agent != agent }
	list = slices.DeleteFunc(slices.Clone(list), isOther)
	found := transcripts.Find(list, name)
	switch {
	case len(found) == 0 && transcript.FormatOf(name) != nil:
		s, err := transcripts.File(ctx, name, cli.Prices(a.Settings.File))
		if errors.Is(err, os.ErrNotExist) {
			return nil, cli.NotFound("%s: no such file", name)
		}
		return s, err
	case len(found) == 0:
		return nil, engine.ErrNoSession.Of(name)
	}
	var ids []string
	for _, s := range found {
		ids = append(ids, s.ID)
	}
	return found[0], checkUnique(name, ids)
}

// checkUnique rejects a name that is the beginning of several ids.
func checkUnique(name string, ids []string) error {
	if len(ids) == 1 {
		return nil
	}
	return cli.UsageError("%q is the beginning of %d session ids: %s", name, len(ids),
		strings.Join(ids[:min(len(ids), 5)], ", "))
}

// Local returns the directories, prices and cache with which the transcripts on this machine are read.
func Local(a *cli.App) (l sessions.Local, err error) {
	if l.Roots, err = transcripts.Roots(a.Settings.Transcripts, os.Getenv, cli.Home); err != nil {
		return l, cli.UsageError("%w", err)
	}
	dir, err := a.DataDir()
	if err != nil {
		return l, err
	}
	for _, r := range copies.Roots(dir) {
		l.Roots = append(l.Roots, transcripts.Root{Format: r.Format, Dir: r.Dir, Copies: true})
	}
	l.Prices = cli.Prices(a.Settings.File)
	state, err := cli.StatePath()
	l.Cache = filepath.Join(filepath.Dir(state), "transcripts.cache")
	return l, err
}

// readTranscripts reads all transcripts on this machine. Unless quiet, it says if it finds no transcript.
func readTranscripts(a *cli.App, ctx context.Context, quiet bool) ([]*transcripts.Session, error) {
	l, err := Local(a)
	if err != nil {
		return nil, err
	}
	x := transcripts.New(transcripts.Options{Roots: l.Roots, Prices: l.Prices, Cache: l.Cache})
	if err := x.Once(ctx); err != nil {
		if errors.Is(err, context.Canceled) {
			err = cli.ErrInterrupted
		}
		return nil, err
	}
	list, p := x.Sessions()
	if p.Trouble != "" {
		cli.Warn(a, "%s", p.Trouble)
	}
	if p.Dropped > 0 {
		cli.Warn(a, "%s not read", ace.Count(p.Dropped, "older transcript"))
	}
	switch {
	case len(list) > 0 || quiet:
	case len(l.Roots) == 0:
		cli.Warn(a, "%s", transcripts.NoHome)
	default:
		cli.Warn(a, "no transcripts in %s", strings.Join(l.Dirs(), ", "))
	}
	return list, nil
}

// sessionDeps returns the dependencies of the readers of sessions.
func sessionDeps(e *engine.Engine) cluster.Deps {
	return cluster.Deps{Client: e.Client, Namespace: e.Namespace(), DataDir: e.DataDir(),
		Artifact: e.Artifacts.Get, TurnLog: TurnLog(e.DataDir(), e), Mirror: engine.LogMirror(e)}
}

// TurnLog returns a function that locates the log of a turn on this machine.
func TurnLog(dir string, e *engine.Engine) func(workflowID, runID string, turn int, attempt int32) string {
	logs := artifact.NewLogs(dir, e.Artifacts)
	return func(workflowID, runID string, turn int, attempt int32) string {
		return logs.Find(artifact.LogName{
			WorkflowID: workflowID, RunID: runID, Activity: session.ActivityTurn, Seq: turn, Attempt: attempt,
		})
	}
}

type SessionLine struct {
	Type  string `json:"type"`  // session, or transcript for one that is not on the engine
	State string `json:"state"` // of a transcript: live, idle, ended
	sessions.Row
}

func newSessionLine(r sessions.Row, now time.Time) SessionLine {
	if r.Engine != nil {
		return SessionLine{"session", string(r.Engine.Status), r}
	}
	return SessionLine{"transcript", string(r.Activity(now)), r}
}

// writeSession writes a session without its conversation.
func writeSession(a *cli.App, r sessions.Row) error {
	now := time.Now()
	return cli.Show(a, newSessionLine(r, now), func() error {
		if r.Engine != nil {
			return PrintSession(a.Out, r, now)
		}
		return transcriptDetails(r, now).print(a.Out)
	})
}

func PrintSession(to io.Writer, r sessions.Row, now time.Time) error {
	return engineDetails(r, now).print(to)
}

func transcriptDetails(r sessions.Row, now time.Time) (d details) {
	s := r.Transcript
	d.add("session", "%s", s.ID)
	d.add("agent", "%s %s", r.Agent, s.Version)
	d.add("name", "%s", r.Name)
	d.add("state", "%s", stateText(r, now))
	d.add("directory", "%s", r.Dir)
	d.add("machine", "%s", s.Machine)
	d.add("file", "%s", s.Path)
	d.add("branch", "%s", s.Branch)
	if !s.Started.IsZero() {
		d.add("started", "%s, active for %s", formatTime(s.Started), text.Span(s.Summary.Last.Sub(s.Started)))
	}
	d.add("content", "%s, %s, %s", ace.Count(s.Turns, "turn"), ace.Count(s.Messages, "message"),
		ace.Count(s.Compactions, "compaction"))
	d.usage(r)
	if s.ForkedFrom != "" {
		d.add("forked", "from %s, %s", s.ForkedFrom, ace.Count(s.Shared, "line"))
	}
	if s.Errors > 0 {
		d.add("errors", "%d, the last: %s", s.Errors, s.LastError)
	}
	for _, u := range s.Tools {
		d.add("tool", "%-24s %s, %d failed, %d denied, %s on average", u.Name, ace.Count(u.Calls, "call"),
			u.Failed, u.Denied, text.Duration(cluster.Milliseconds(u.MeanMS())))
	}
	for _, g := range s.Agents {
		d.add("subagent", "%s %s %s: %s, %s, %s", g.ID, g.Type, g.Description,
			ace.Count(g.Calls, "call"), ace.Count(g.Tokens.Total(), "token"), costText(g.Totals))
	}
	return d
}

// usage adds the tokens and the cost of a session, as the list of sessions shows them.
func (d *details) usage(r sessions.Row) {
	t := r.Totals.Tokens
	d.add("tokens", "%s: %s in, %s out, cache %s read, %s written", ace.Number(t.Total()),
		ace.Number(t.Input), ace.Number(t.Output), ace.Number(t.CacheRead), ace.Number(t.CacheWrite()))
	d.add("cost", "%s %s", costText(r.Totals), r.CostSource())
}

func engineDetails(r sessions.Row, now time.Time) (d details) {
	d.add("session", "%s", r.ID)
	d.add("name", "%s", r.Name)
	d.add("state", "%s (%s)", stateText(r, now), r.Engine.From)
	s := r.Engine.State
	if s == nil {
		return d
	}
	if s.Failure != nil {
		d.add("failure", "%s: %s", s.Failure.Type, s.Failure.Message)
	}
	d.add("blocked", "%s", sessions.BlockedText(s))
	d.add("agent", "%s", sessions.AgentText(s))
	d.add("moved", "%s", sessions.MovedText(s))
	d.add("model", "%s", r.Model)
	d.add("directory", "%s", r.Dir)
	d.add("started", "%s", formatTime(r.Engine.Start))
	d.add("started by", "%s", s.Input.By)
	d.add("turns", "%d", s.Turns)
	d.usage(r)
	for _, q := range s.Queue {
		d.add("queued", "%s, %s: %s", sessions.SenderText(q), q.ID, text.Cut(q.Text, 80, "…"))
	}
	d.add("reports", "%s", sessions.ReportsText(s))
	for _, p := range s.Pending {
		d.add("approval", "%s %s: %s", p.ID, p.Name, text.Cut(string(p.Args), 100, "…"))
	}
	for _, c := range s.Tools {
		d.add("tool", "%-24s asked %d, allowed %d, denied %d, failed %d", c.Name, c.Asked, c.Allowed,
			c.Denied, c.Failed)
	}
	return d
}

// stateText returns the state of a session: "waiting (2)", "failed", "idle, unfinished", "idle, last turn
// failed".
func stateText(r sessions.Row, now time.Time) string {
	e := r.Engine
	switch {
	case e == nil:
		state := r.Activity(now)
		if r.Unfinished && state != transcripts.Live {
			return string(state) + ", unfinished"
		}
		return string(state)
	case e.Status == session.Ended && e.Exit != "" && e.Exit != ace.Completed:
		return string(e.Exit)
	case r.Waiting > 0:
		return fmt.Sprintf("%s (%d)", e.Status, r.Waiting)
	case r.LastTurnFailed():
		return string(e.Status) + ", last turn failed"
	}
	return cmp.Or(string(e.Status), "?")
}

// costText returns a cost, or a dash without tokens.
func costText(t transcript.Totals) string {
	if t.Tokens.Total() == 0 {
		return "-"
	}
	return t.Usage().Cost()
}
