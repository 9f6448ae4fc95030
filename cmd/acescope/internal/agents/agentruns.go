package agents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/tui/text"
)

// ofRun does something with a run that is named, which a data directory without a server
// has none of.
func ofRun(a *cli.App, ctx context.Context, id string, look bool, do func(*AgentRuns) error) error {
	if !run.ValidName(id) {
		return cli.UsageError("%s is no id of a run or session: ids have letters, digits, dots, dashes and underscores, and begin with a letter or a digit", cli.SafeText(fmt.Sprintf("%q", id)))
	}
	if !reachable(a) {
		return &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("%w: %s; there are no runs in this data directory", run.ErrNotFound, id)}
	}
	return withRuns(a, ctx, look, do)
}

func agentStatusCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "status ID",
		Short:             "Show how a run stands",
		Long:              "Shows how a run stands. ID is a run's, or a session's, which stands for its newest run.",
		Example:           "acescope agent status ses_0123456789ab --json | jq -r .status",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRunIDs(a, false, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ofRun(a, cmd.Context(), args[0], true, func(v *AgentRuns) error {
				state, err := v.State(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return v.WriteState(state)
			})
		},
	}
}

func agentStopCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop a run",
		Long: "Stops a run: its program is asked to end (TERM) and killed after five seconds with all that it started, an agent's turn is\n" +
			"interrupted, a run that waits for a runner waits no longer. ID is a run's, or a session's, which stands for its newest\n" +
			"run. It returns when the run was asked; agent result --wait waits for its end.",
		Example:           "acescope agent stop r-1 --reason 'the wrong site'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRunIDs(a, false, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return ofRun(a, cmd.Context(), args[0], false, func(v *AgentRuns) error {
				state, err := v.Stop(cmd.Context(), args[0], run.StopRequest{Reason: reason, By: Me()})
				if err != nil {
					return err
				}
				return v.WriteState(state)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is kept in the history")
	return cmd
}

// AgentRun is how a run stands, or a run in a list; what a list does not tell is left out.
type AgentRun struct {
	Type      string               `json:"type"` // agent_run
	RunID     string               `json:"run_id"`
	SessionID string               `json:"session_id"`
	RunType   run.Type             `json:"run_type"`
	AgentName string               `json:"agent_name"`
	Status    run.Status           `json:"status"`
	Document  string               `json:"document_status"` // the same in the words of ADR-014
	Reason    run.Reason           `json:"reason,omitempty"`
	Error     string               `json:"error,omitempty"`
	Mode      run.Mode             `json:"execution_mode,omitempty"`
	RunnerID  string               `json:"runner_id,omitempty"`
	Parent    string               `json:"parent_session_id,omitempty"`
	ParentRun string               `json:"parent_run_id,omitempty"`
	Project   string               `json:"project_dir,omitempty"`
	Demands   *runner.Requirements `json:"demands,omitempty"`
	Created   *time.Time           `json:"created_at,omitempty"`
	Started   *time.Time           `json:"started_at,omitempty"`
	Ended     *time.Time           `json:"ended_at,omitempty"`
	TimeoutAt *time.Time           `json:"timeout_at,omitempty"`
	PID       int                  `json:"pid,omitempty"`
	Tries     int                  `json:"tries,omitempty"`
	Moves     []run.MoveRecord     `json:"moves,omitempty"`
	Told      string               `json:"parent_told,omitempty"` // told, ended or none
	Stop      *run.StopRequest     `json:"stop,omitempty"`
	By        string               `json:"by,omitempty"`
}

// documentStatus is a status as the document calls it.
func documentStatus(s run.Status) string {
	if s == run.Running {
		return "started"
	}
	return string(s)
}

func runLineOf(s run.State) AgentRun {
	in := s.Input
	l := AgentRun{Type: "agent_run", RunID: in.RunID, SessionID: in.SessionID, RunType: in.Type, AgentName: in.Name(), Status: s.Status, Document: documentStatus(s.Status),
		Mode: in.Mode, Parent: in.ParentSessionID, ParentRun: in.ParentRunID, Project: in.ProjectDir, Demands: &in.Requirements, Created: timeOf(in.CreatedAt), TimeoutAt: timeOf(s.TimeoutAt),
		Tries: s.Try, Moves: s.Moves, Told: s.Notified, Stop: s.Stop, By: in.By}
	if s.Claim != nil {
		l.RunnerID = s.Claim.RunnerID
	}
	if s.ProgramStart != nil {
		l.PID, l.Started = s.ProgramStart.PID, timeOf(s.ProgramStart.At)
	}
	if r := s.Result; r != nil {
		l.Reason, l.Error, l.RunnerID, l.Started = r.Reason, r.Error, cmp.Or(r.Runner, l.RunnerID), cmp.Or(timeOf(r.StartedAt), l.Started)
	}
	return l
}

func (v *AgentRuns) WriteState(s run.State) error {
	l := runLineOf(s)
	if v.App.JSON {
		return cli.NewLines(v.App.Out).Write(l)
	}
	fact := func(name, format string, args ...any) {
		if said := cli.SafeText(strings.TrimSpace(fmt.Sprintf(format, args...))); said != "" {
			fmt.Fprintf(v.App.Out, "%-10s %s\n", name, said)
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
		fact("before", "%s: %s", m.Runner, m.Reason)
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

func demandsWords(d runner.Requirements) string {
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

func agentRunsCommand(a *cli.App) *cobra.Command {
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
				return cli.UsageError("--status %s: give one of %s", cli.SafeText(status), statusWords())
			}
			for flag, id := range map[string]string{"agent": f.AgentName, "session": f.SessionID, "parent": f.Parent} {
				if id != "" && !run.ValidName(id) {
					return cli.UsageError("--%s %s: names have letters, digits, dots, dashes and underscores, and begin with a letter or a digit", flag, cli.SafeText(fmt.Sprintf("%q", id)))
				}
			}
			if f.Limit < 1 || f.Limit > maxAgentRuns {
				return cli.UsageError("--limit %d: give a number from 1 to %d", f.Limit, maxAgentRuns)
			}
			if !reachable(a) {
				return nil
			}
			return withRuns(a, cmd.Context(), true, func(v *AgentRuns) error { return v.ListRuns(cmd.Context(), f, time.Now()) })
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

func (v *AgentRuns) ListRuns(ctx context.Context, f run.Filter, now time.Time) error {
	rows, err := v.List(ctx, f)
	if err != nil {
		return err
	}
	if v.App.JSON {
		out := cli.NewLines(v.App.Out)
		for _, r := range rows {
			l := AgentRun{Type: "agent_run", RunID: r.RunID, SessionID: r.SessionID, RunType: r.Type, AgentName: r.AgentName, Status: r.Status, Document: documentStatus(r.Status),
				RunnerID: r.RunnerID, Parent: r.ParentSessionID, Created: timeOf(r.CreatedAt), Ended: timeOf(r.EndedAt)}
			if err := out.Put(l); err != nil {
				return err
			}
		}
		return out.Flush()
	}
	if len(rows) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(v.App.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSESSION\tAGENT\tSTATUS\tRUNNER\tAGE\tTOOK\tPARENT")
	for _, r := range rows {
		took := ""
		if !r.EndedAt.IsZero() {
			took = text.Took(r.EndedAt.Sub(r.CreatedAt))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cli.SafeText(r.RunID), cli.SafeText(r.SessionID), cli.SafeText(r.AgentName), cli.SafeText(string(r.Status)), cli.SafeText(r.RunnerID),
			text.Span(now.Sub(r.CreatedAt)), took, cli.SafeText(r.ParentSessionID))
	}
	return w.Flush()
}
