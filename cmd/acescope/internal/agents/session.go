// Package agents holds the commands on agent sessions, blueprint runs, runners, MCP and observation.
package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/agents/price"
	"acescope/engine/agents/transcript"
	sessionspkg "acescope/sources/sessions"
	"acescope/sources/transcripts"
	"acescope/tui/text"
)

// SessionCommand is about the sessions of agents.
func SessionCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Sessions of agents: on the engine, where they survive their worker, and the transcripts on this machine",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return cli.UsageError("session what? start, send, show, list, approve, interrupt, stop or receive")
		},
	}
	cmd.AddCommand(sessionStartCommand(a), sessionSendCommand(a), sessionShowCommand(a), sessionListCommand(a), sessionApproveCommand(a),
		sessionInterruptCommand(a), sessionStopCommand(a), sessionReceiveCommand(a))
	return cmd
}

// listedSessions are the flags of acescope session list.
type listedSessions struct {
	limit               int
	project             string
	engine, transcripts bool
}

func sessionListCommand(a *cli.App) *cobra.Command {
	var f listedSessions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions of agents, the newest first",
		Long: "Lists the sessions on the engine, and the transcripts that Claude Code keeps on this machine, with what each has called,\n" +
			"spent and cost. A session on the engine that has its transcript here is one line. Transcripts need no server; those on\n" +
			"the engine are listed where a server runs for the data directory, and with --engine in any case.",
		Example: "acescope session list --limit 20\nacescope session list --engine --json | jq 'select(.waiting > 0) | .id'\n" +
			"acescope session list --transcripts --json | jq -s 'map(.cost_usd // 0) | add'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return sessionList(a, cmd.Context(), f) },
	}
	cmd.Flags().IntVar(&f.limit, "limit", 0, "at most so many (default all)")
	cmd.Flags().StringVar(&f.project, "project", "", "only those whose directory holds this text")
	cmd.Flags().BoolVar(&f.engine, "engine", false, "only those on the engine")
	cmd.Flags().BoolVar(&f.transcripts, "transcripts", false, "only transcripts")
	cmd.MarkFlagsMutuallyExclusive("engine", "transcripts")
	return cmd
}

func sessionShowCommand(a *cli.App) *cobra.Command {
	var follow, quiet bool
	cmd := &cobra.Command{
		Use:   "show ID|FILE",
		Short: "Show a session of an agent: state, facts, tools, turns, conversation",
		Long: "Shows the session with an id, or the begin of one, on the engine or among the transcripts, or a transcript by its file,\n" +
			"and what was said in it: the newest 5,000 entries, long texts cut. With --follow it goes on with what is added, as it is\n" +
			"written: for a session on the engine that is served on this machine also the parts of a text to come.",
		Example: "acescope session show 5e551011\nacescope session show s-20261121-1 --follow --json | jq -rj 'select(.type == \"delta\").text'\n" +
			"acescope session show 5e551011 --json | jq 'select(.type == \"tool\" and .ok == false)'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return sessionShow(a, cmd.Context(), args[0], follow, quiet)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is added, until interrupted or the session has ended")
	cmd.Flags().BoolVar(&quiet, "summary", false, "leave out the conversation")
	cmd.MarkFlagsMutuallyExclusive("follow", "summary")
	return cmd
}

// Local is what is read on this machine.
func Local(a *cli.App) (sessionspkg.Local, error) {
	l := sessionspkg.Local{Roots: transcriptRoots(a), Prices: price.Shipped()}
	var own []price.Price
	for _, p := range a.Settings.File.Prices {
		own = append(own, price.Price{Models: []string{p.Model}, Input: p.Input, Output: p.Output, CacheRead: p.CacheRead,
			CacheWrite5m: p.CacheWrite5m, CacheWrite1h: p.CacheWrite1h})
	}
	prices, err := l.Prices.With(own)
	if err != nil {
		return l, err
	}
	l.Prices = prices
	state, err := cli.StatePath()
	l.Cache = filepath.Join(filepath.Dir(state), "transcripts.cache")
	return l, err
}

func transcriptRoots(a *cli.App) (roots []string) {
	if a.Settings.Transcripts == "" {
		return transcripts.Roots(os.Getenv)
	}
	for _, dir := range filepath.SplitList(a.Settings.Transcripts) {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			if home, err := os.UserHomeDir(); err == nil {
				dir = filepath.Join(home, rest)
			}
		}
		if dir != "" && !slices.Contains(roots, dir) {
			roots = append(roots, dir)
		}
	}
	return roots
}

// sessions reads all transcripts of this machine.
// Where there are none it says so, unless quiet.
func sessionReader(a *cli.App, ctx context.Context, quiet bool) ([]*transcripts.Session, error) {
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
		fmt.Fprintln(a.Err, "acescope: "+cli.SafeText(p.Trouble))
	}
	if p.Dropped > 0 {
		fmt.Fprintf(a.Err, "acescope: %d older transcripts are left out\n", p.Dropped)
	}
	if len(list) == 0 && !quiet {
		fmt.Fprintln(a.Err, "acescope: no transcripts in "+cli.SafeText(strings.Join(l.Roots, ", ")))
	}
	return list, nil
}

func sessionList(a *cli.App, ctx context.Context, f listedSessions) error {
	if f.limit < 0 {
		return cli.UsageError("--limit must not be negative")
	}
	engine, err := engineSessions(a, ctx, f)
	if err != nil {
		return err
	}
	var files []sessionspkg.AgentSession
	if !f.engine {
		list, err := sessionReader(a, ctx, len(engine) > 0)
		if err != nil {
			return err
		}
		for _, s := range list {
			files = append(files, sessionspkg.RowOf(s))
		}
	}
	rows := sessionspkg.AgentRows(files, engine)
	if f.project != "" {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r sessionspkg.AgentSession) bool { return !strings.Contains(r.Dir, f.project) })
	}
	if f.limit > 0 {
		rows = rows[:min(f.limit, len(rows))]
	}
	now := time.Now()
	if a.JSON {
		out := cli.NewLines(a.Out)
		for _, r := range rows {
			if err := out.Put(rowLine(r, now)); err != nil {
				return err
			}
		}
		return out.Flush()
	}
	return printSessions(a.Out, rows, now)
}

// rowLine is a session as JSON, in short.
func rowLine(r sessionspkg.AgentSession, now time.Time) any {
	if r.Engine != nil {
		return engineLineOf(r, r.Engine.State, r.Engine.From, false)
	}
	return sessionOf(r.Transcript, now, false)
}

func printSessions(to io.Writer, rows []sessionspkg.AgentSession, now time.Time) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tAGE\tTURNS\tTOOLS\tTOKENS\tCOST\tPROJECT\tSESSION")
	for _, r := range rows {
		state := ""
		if r.Engine != nil {
			state = engineWord(r)
		} else {
			state = stateWord(r.Transcript, now)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", cli.SafeText(r.ID), state, text.Span(now.Sub(r.Last)), r.Turns, r.Totals.Calls,
			text.Count(r.Totals.Tokens.Total()), costWord(r.Totals), cli.SafeText(filepath.Base(r.Dir)), text.Cut(cli.SafeText(r.Name), 60, "…"))
	}
	return w.Flush()
}

func stateWord(s *transcripts.Session, now time.Time) string {
	state := s.State(now)
	if s.Summary.Unfinished && state != transcripts.Live {
		return string(state) + ", open"
	}
	return string(state)
}

// costWord is a cost, "?" where no price is known and with a plus where some is not.
func costWord(t transcript.Totals) string {
	switch {
	case t.Tokens.Total() == 0:
		return "-"
	case t.Priced == 0:
		return "?"
	case t.Unpriced > 0:
		return fmt.Sprintf("$%.4f+", t.CostUSD)
	}
	return fmt.Sprintf("$%.4f", t.CostUSD)
}

// findSession is the session that a name means: a file that is there is one by itself.
func findSession(a *cli.App, ctx context.Context, name string) (*transcripts.Session, error) {
	if strings.HasSuffix(name, transcript.Ext) {
		return sessionFile(a, ctx, name)
	}
	list, err := sessionReader(a, ctx, false)
	if err != nil {
		return nil, err
	}
	found := transcripts.Find(list, name)
	switch {
	case name == "" || len(found) == 0:
		return nil, noSession(name)
	case len(found) > 1:
		var ids []string
		for _, s := range found[:min(len(found), 5)] {
			ids = append(ids, s.ID)
		}
		return nil, cli.UsageError("%q begins %d sessions: %s", name, len(found), strings.Join(ids, ", "))
	}
	return found[0], nil
}

func sessionFile(a *cli.App, ctx context.Context, name string) (*transcripts.Session, error) {
	l, err := Local(a)
	if err != nil {
		return nil, err
	}
	s, err := transcripts.File(ctx, name, l.Prices)
	if errors.Is(err, os.ErrNotExist) {
		err = &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("%s: there is no such file", name)}
	}
	return s, err
}

func sessionShow(a *cli.App, ctx context.Context, name string, follow, quiet bool) error {
	if !strings.HasSuffix(name, transcript.Ext) && name != "" && reachable(a) {
		if found, err := showEngine(a, ctx, name, follow, quiet); found || err != nil {
			return err
		}
	}
	s, err := findSession(a, ctx, name)
	if err != nil {
		return err
	}
	out := &talkWriter{out: a.Out, json: a.JSON, session: s.ID}
	if err := out.summary(s); err != nil || quiet {
		return err
	}
	f := transcripts.Follow(s.Path)
	for {
		if f.Read(ctx) {
			c := f.Conversation()
			if c.Err != "" && !follow {
				return errors.New(c.Err)
			}
			if err := out.entries(c, follow); err != nil {
				return err
			}
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return cli.ErrInterrupted
		case <-time.After(followEvery):
		}
	}
}

// followEvery is how often a transcript that is followed is looked at.
const followEvery = 200 * time.Millisecond

// SessionLine is a session of an agent.
type SessionLine struct {
	Type       string     `json:"type"` // session
	Kind       string     `json:"kind"` // transcript
	ID         string     `json:"id"`
	State      string     `json:"state"` // live, idle, ended
	Unfinished bool       `json:"unfinished"`
	WorkDir    string     `json:"work_dir,omitempty"`
	Path       string     `json:"path,omitempty"`
	Title      string     `json:"title,omitempty"`
	Prompt     string     `json:"prompt,omitempty"`
	Model      string     `json:"model,omitempty"`
	Branch     string     `json:"branch,omitempty"`
	Version    string     `json:"version,omitempty"`
	Start      *time.Time `json:"start,omitempty"`
	Last       *time.Time `json:"last,omitempty"`
	Turns      int        `json:"turns"`
	Messages   int        `json:"messages"`
	spentLine
	Tools       []toolLine  `json:"tools,omitempty"`
	Models      []modelLine `json:"models,omitempty"`
	Agents      []agentLine `json:"agents,omitempty"`
	AgentCount  int         `json:"agent_count"`
	Compactions int         `json:"compactions"`
	Errors      int         `json:"errors"`
	LastError   string      `json:"last_error,omitempty"`
	ForkedFrom  string      `json:"forked_from,omitempty"`
	SharedLines int         `json:"shared_lines,omitempty"`
	Bytes       int64       `json:"bytes"`
	Lines       int         `json:"lines"`
	OddLines    int         `json:"odd_lines"`
	Error       string      `json:"error,omitempty"`
}

// spentLine is tokens and what they cost; CostUSD is left out where no price is known, and
// UnpricedTokens tells of those that are not in it.
type spentLine struct {
	Calls          int      `json:"calls"`
	Failed         int      `json:"failed_calls"`
	Denied         int      `json:"denied_calls"`
	InputTokens    int64    `json:"input_tokens"`
	OutputTokens   int64    `json:"output_tokens"`
	CacheRead      int64    `json:"cache_read_tokens"`
	CacheWrite     int64    `json:"cache_write_tokens"`
	CostUSD        *float64 `json:"cost_usd,omitempty"`
	UnpricedTokens int64    `json:"unpriced_tokens,omitempty"`
}

type toolLine struct {
	Name   string   `json:"name"`
	Calls  int      `json:"calls"`
	Failed int      `json:"failed"`
	Denied int      `json:"denied"`
	Open   int      `json:"open,omitempty"` // without a result
	MeanMS *float64 `json:"mean_ms,omitempty"`
	MaxMS  *float64 `json:"max_ms,omitempty"`
}

type modelLine struct {
	Name     string   `json:"name"`
	Messages int      `json:"messages"`
	Tokens   int64    `json:"tokens"`
	CostUSD  *float64 `json:"cost_usd,omitempty"`
}

type agentLine struct {
	ID          string `json:"id"`
	Parent      string `json:"parent,omitempty"`
	Kind        string `json:"agent_type,omitempty"`
	Description string `json:"description,omitempty"`
	Path        string `json:"path"`
	Model       string `json:"model,omitempty"`
	spentLine
}

func spentOf(t transcript.Totals) spentLine {
	l := spentLine{Calls: t.Calls, Failed: t.Failed, Denied: t.Denied, InputTokens: t.Tokens.Input, OutputTokens: t.Tokens.Output,
		CacheRead: t.Tokens.CacheRead, CacheWrite: t.Tokens.CacheWrite(), UnpricedTokens: t.Unpriced}
	if t.Priced > 0 {
		usd := math.Round(t.CostUSD*1e9) / 1e9 // differences of floats have tails
		l.CostUSD = &usd
	}
	return l
}

// sessionOf is a session as JSON, whole with its tools, models and subagents.
func sessionOf(s *transcripts.Session, now time.Time, whole bool) SessionLine {
	sum := s.Summary
	l := SessionLine{Type: "session", Kind: "transcript", ID: s.ID, State: string(s.State(now)), Unfinished: sum.Unfinished, WorkDir: s.Dir(), Path: s.Path,
		Title: sum.Title, Prompt: sum.Prompt, Model: sum.Model, Branch: sum.Branch, Version: sum.Version, Start: timeOf(sum.Started), Last: timeOf(s.Last()),
		Turns: sum.Turns, Messages: sum.Messages, spentLine: spentOf(s.Totals()), AgentCount: len(s.Agents), Compactions: sum.Compactions,
		Errors: sum.Errors, LastError: sum.LastError, ForkedFrom: s.ForkedFrom, SharedLines: s.Shared, Bytes: s.Size, Lines: sum.Lines,
		OddLines: sum.Unreadable + sum.Odd + sum.Oversized, Error: s.Err}
	if !whole {
		return l
	}
	for _, u := range sum.Tools {
		t := toolLine{Name: u.Name, Calls: u.Calls, Failed: u.Failed, Denied: u.Denied, Open: u.Calls - u.Ended}
		if u.Timed > 0 {
			mean, most := cli.Millis(u.Mean()), cli.Millis(u.Max)
			t.MeanMS, t.MaxMS = &mean, &most
		}
		l.Tools = append(l.Tools, t)
	}
	for _, m := range sum.Models {
		line := modelLine{Name: m.Name, Messages: m.Messages, Tokens: m.Tokens.Total()}
		if m.Priced {
			line.CostUSD = &m.CostUSD
		}
		l.Models = append(l.Models, line)
	}
	for _, g := range s.Agents {
		l.Agents = append(l.Agents, agentLine{ID: g.ID, Parent: g.Parent, Kind: g.Type, Description: cmp.Or(g.Description, g.Summary.Prompt), Path: g.Path,
			Model: g.Summary.Model, spentLine: spentOf(g.Summary.Totals)})
	}
	return l
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
