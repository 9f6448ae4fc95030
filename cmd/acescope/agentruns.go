package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine/run"
	"acescope/engine/runner"
	"acescope/tui/text"
)

// ofRun does something with a run that is named, which a data directory without a server
// has none of.
func (a *app) ofRun(ctx context.Context, id string, look bool, do func(*agentRuns) error) error {
	if !run.ValidName(id) {
		return usage("%s is no id of a run or session: ids have letters, digits, dots, dashes and underscores, and begin with a letter or a digit", safe(fmt.Sprintf("%q", id)))
	}
	if !a.reachable() {
		return &coded{exitNotFound, fmt.Errorf("%w: %s; there are no runs in this data directory", run.ErrNotFound, id)}
	}
	return a.withRuns(ctx, look, do)
}

func (a *app) agentStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "status ID",
		Short:             "Show how a run stands",
		Long:              "Shows how a run stands. ID is a run's, or a session's, which stands for its newest run.",
		Example:           "acescope agent status ses_0123456789ab --json | jq -r .status",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRunIDs(false, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ofRun(cmd.Context(), args[0], true, func(v *agentRuns) error {
				state, err := v.State(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return v.writeState(state)
			})
		},
	}
}

func (a *app) agentStopCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop a run",
		Long: "Stops a run: its program is asked to end (TERM) and killed after five seconds with all that it started, an agent's turn is\n" +
			"interrupted, a run that waits for a runner waits no longer. ID is a run's, or a session's, which stands for its newest\n" +
			"run. It returns when the run was asked; agent result --wait waits for its end.",
		Example:           "acescope agent stop r-1 --reason 'the wrong site'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRunIDs(false, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ofRun(cmd.Context(), args[0], false, func(v *agentRuns) error {
				state, err := v.Stop(cmd.Context(), args[0], run.StopRequest{Reason: reason, By: me()})
				if err != nil {
					return err
				}
				return v.writeState(state)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is kept in the history")
	return cmd
}

// agentRun is how a run stands, or a run in a list; what a list does not tell is left out.
type agentRun struct {
	Type      string           `json:"type"` // agent_run
	RunID     string           `json:"run_id"`
	SessionID string           `json:"session_id"`
	RunType   run.Type         `json:"run_type"`
	AgentName string           `json:"agent_name"`
	Status    run.Status       `json:"status"`
	Document  string           `json:"document_status"` // the same in the words of ADR-014
	Reason    run.Reason       `json:"reason,omitempty"`
	Error     string           `json:"error,omitempty"`
	Mode      run.Mode         `json:"execution_mode,omitempty"`
	RunnerID  string           `json:"runner_id,omitempty"`
	Parent    string           `json:"parent_session_id,omitempty"`
	ParentRun string           `json:"parent_run_id,omitempty"`
	Project   string           `json:"project_dir,omitempty"`
	Demands   *runner.Demands  `json:"demands,omitempty"`
	Created   *time.Time       `json:"created_at,omitempty"`
	Started   *time.Time       `json:"started_at,omitempty"`
	Ended     *time.Time       `json:"ended_at,omitempty"`
	TimeoutAt *time.Time       `json:"timeout_at,omitempty"`
	PID       int              `json:"pid,omitempty"`
	Tries     int              `json:"tries,omitempty"`
	Moves     []run.MoveRecord `json:"moves,omitempty"`
	Told      string           `json:"parent_told,omitempty"` // told, ended or none
	Stop      *run.StopRequest `json:"stop,omitempty"`
	By        string           `json:"by,omitempty"`
}

// documentStatus is a status as the document calls it.
func documentStatus(s run.Status) string {
	if s == run.Running {
		return "started"
	}
	return string(s)
}

func runLineOf(s run.State) agentRun {
	in := s.Input
	l := agentRun{Type: "agent_run", RunID: in.RunID, SessionID: in.SessionID, RunType: in.Type, AgentName: in.Name(), Status: s.Status, Document: documentStatus(s.Status),
		Mode: in.Mode, Parent: in.ParentSessionID, ParentRun: in.ParentRunID, Project: in.ProjectDir, Demands: &in.Demands, Created: timeOf(in.CreatedAt), TimeoutAt: timeOf(s.TimeoutAt),
		Tries: s.Try, Moves: s.Moves, Told: s.Told, Stop: s.Stop, By: in.By}
	if s.Claim != nil {
		l.RunnerID = s.Claim.RunnerID
	}
	if s.Began != nil {
		l.PID, l.Started = s.Began.PID, timeOf(s.Began.At)
	}
	if r := s.Result; r != nil {
		l.Reason, l.Error, l.RunnerID, l.Started = r.Reason, r.Error, cmp.Or(r.Runner, l.RunnerID), cmp.Or(timeOf(r.StartedAt), l.Started)
	}
	return l
}

func (v *agentRuns) writeState(s run.State) error {
	l := runLineOf(s)
	if v.app.json {
		return newLines(v.app.out).write(l)
	}
	fact := func(name, format string, args ...any) {
		if said := safe(strings.TrimSpace(fmt.Sprintf(format, args...))); said != "" {
			fmt.Fprintf(v.app.out, "%-10s %s\n", name, said)
		}
	}
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.Local().Format("2006-01-02 15:04:05")
	}
	fact("run", "%s", l.RunID)
	fact("session", "%s", l.SessionID)
	fact("agent", "%s", l.AgentName)
	status := string(l.Status)
	if l.Document != status {
		status += " (" + l.Document + ")"
	}
	fact("status", "%s %s", status, l.Reason)
	fact("error", "%s", l.Error)
	fact("runner", "%s", l.RunnerID)
	fact("directory", "%s", l.Project)
	fact("demands", "%s", demandsWords(*l.Demands))
	fact("parent", "%s", strings.TrimSpace(l.Parent+map[string]string{"told": ", which was told", "ended": ", which has ended"}[l.Told]))
	fact("created", "%s", at(l.Created))
	fact("started", "%s", at(l.Started))
	if !l.Status.Over() {
		fact("time-out", "%s", at(l.TimeoutAt))
	}
	for _, m := range l.Moves {
		fact("before", "%s: %s", m.Runner, m.Why)
	}
	if l.Stop != nil {
		fact("stop", "%s", stopWords(*l.Stop))
	}
	if r := s.Result; r != nil && s.Status.Over() {
		if r.DurationSeconds > 0 {
			fact("took", "%s", text.Took(time.Duration(r.DurationSeconds*float64(time.Second))))
		}
		if r.ExitCode != nil {
			fact("exit code", "%d", *r.ExitCode)
		}
		fact("signal", "%s", r.Signal)
		fact("log", "%s", r.LogPath)
	}
	return nil
}

// stopWords say that a run was asked to stop, by whom and why, as far as that was said.
func stopWords(s run.StopRequest) string {
	said := "asked for"
	if s.By != "" {
		said += " by " + s.By
	}
	if s.Reason != "" {
		said += ": " + s.Reason
	}
	return said
}

func demandsWords(d runner.Demands) string {
	var out []string
	for _, f := range [][2]string{{"executor", d.ExecutorType}, {"host", d.Hostname}, {"directory", d.ProjectDir}, {"tags", strings.Join(d.Tags, ",")}} {
		if f[1] != "" {
			out = append(out, f[0]+" "+f[1])
		}
	}
	return strings.Join(out, ", ")
}

// runStatuses are those that a list can be narrowed to.
var runStatuses = []run.Status{run.Pending, run.Claimed, run.Running, run.Stopping, run.Completed, run.Failed, run.Stopped}

// maxAgentRuns bounds a list of runs.
const maxAgentRuns = 10_000

func (a *app) agentRunsCommand() *cobra.Command {
	var f run.Filter
	var status string
	cmd := &cobra.Command{
		Use:     "runs",
		Short:   "List runs of agents and deterministic programs, those that go on first",
		Example: "acescope agent runs --status running\nacescope agent runs --parent ses_0123456789ab --json | jq -r .run_id",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Status = run.Status(status)
			if status == "started" {
				f.Status = run.Running
			}
			if status != "" && !slices.Contains(runStatuses, f.Status) {
				return usage("--status %s: give one of %s", safe(status), statusWords())
			}
			for flag, id := range map[string]string{"agent": f.AgentName, "session": f.SessionID, "parent": f.Parent} {
				if id != "" && !run.ValidName(id) {
					return usage("--%s %s: names have letters, digits, dots, dashes and underscores, and begin with a letter or a digit", flag, safe(fmt.Sprintf("%q", id)))
				}
			}
			if f.Limit < 1 || f.Limit > maxAgentRuns {
				return usage("--limit %d: give a number from 1 to %d", f.Limit, maxAgentRuns)
			}
			if !a.reachable() {
				return nil
			}
			return a.withRuns(cmd.Context(), true, func(v *agentRuns) error { return v.list(cmd.Context(), f, time.Now()) })
		},
	}
	cmd.Flags().StringVar(&f.AgentName, "agent", "", "only runs of this blueprint")
	cmd.Flags().StringVar(&f.SessionID, "session", "", "only runs in this session")
	cmd.Flags().StringVar(&f.Parent, "parent", "", "only runs that this session started")
	cmd.Flags().StringVar(&status, "status", "", "only runs that stand so: "+statusWords())
	cmd.Flags().IntVar(&f.Limit, "limit", 100, "how many")
	return cmd
}

func statusWords() string {
	var out []string
	for _, s := range runStatuses {
		out = append(out, string(s))
	}
	return strings.Join(out, ", ")
}

func (v *agentRuns) list(ctx context.Context, f run.Filter, now time.Time) error {
	rows, err := v.List(ctx, f)
	if err != nil {
		return err
	}
	if v.app.json {
		out := newLines(v.app.out)
		for _, r := range rows {
			l := agentRun{Type: "agent_run", RunID: r.RunID, SessionID: r.SessionID, RunType: r.Type, AgentName: r.AgentName, Status: r.Status, Document: documentStatus(r.Status),
				RunnerID: r.RunnerID, Parent: r.ParentSessionID, Created: timeOf(r.CreatedAt), Ended: timeOf(r.EndedAt)}
			if err := out.put(l); err != nil {
				return err
			}
		}
		return out.flush()
	}
	if len(rows) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(v.app.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSESSION\tAGENT\tSTATUS\tRUNNER\tAGE\tTOOK\tPARENT")
	for _, r := range rows {
		took := ""
		if !r.EndedAt.IsZero() {
			took = text.Took(r.EndedAt.Sub(r.CreatedAt))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", safe(r.RunID), safe(r.SessionID), safe(r.AgentName), safe(string(r.Status)), safe(r.RunnerID),
			text.Span(now.Sub(r.CreatedAt)), took, safe(r.ParentSessionID))
	}
	return w.Flush()
}
