package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/tasks/mcp"
	"acescope/engine/tasks/run"
	"acescope/sources/runners"
	"acescope/tui/text"
)

// RunService returns the actions on the engine's runs, with the blueprints of the library.
func RunService(a *cli.App, e *engine.Engine) (run.Service, error) {
	l, err := a.Library()
	if err != nil {
		return nil, err
	}
	return e.Runs(cli.Blueprints{Library: l}), nil
}

// RunClient executes the commands on runs.
type RunClient struct {
	run.Service
	Artifacts mcp.Artifacts
	App       *cli.App
	alone     bool // no other process continues the runs that this process has started
}

// withRuns connects, read-only or to change runs. In the latter case this process serves if no other one does.
func withRuns(a *cli.App, ctx context.Context, readOnly bool, do func(*RunClient) error) error {
	open := a.OpenReadOnly
	if !readOnly {
		open = func(ctx context.Context) (*engine.Engine, func(), error) { return openToServe(a, ctx) }
	}
	e, done, err := open(ctx)
	if err != nil {
		return err
	}
	defer done()
	service, err := RunService(a, e)
	if err != nil {
		return err
	}
	alone := e.Mode() == engine.Embedded && a.Background == 0
	return RunError(do(&RunClient{Service: service, Artifacts: e.Artifacts, App: a, alone: alone}))
}

// withRun is withRuns for an existing run or session, which an unused data directory does not have.
func withRun(a *cli.App, ctx context.Context, id string, readOnly bool, do func(*RunClient) error) error {
	if !reachable(a) {
		return cli.NotFound("%w: %s; this data directory has no runs", run.ErrNotFound, id)
	}
	return withRuns(a, ctx, readOnly, do)
}

// RunError gives the errors of run requests and blueprints their exit code.
func RunError(err error) error {
	var coded *cli.ExitError
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(err, run.ErrBadRequest):
		return cli.UsageError("%s", run.ErrorText(err))
	case errors.Is(err, run.ErrNoBlueprint), errors.Is(err, run.ErrNotFound):
		return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	}
	return err
}

func runStatusCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "status ID",
		Short:             "Show the status of a run",
		Long:              "Shows the status of a run. ID is a run id, or a session id for the session's newest run.",
		Example:           "acescope agent status ses_0123456789ab --json | jq -r .status",
		Args:              nameArgs,
		ValidArgsFunction: completeRunIDs(a, false, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRun(a, cmd.Context(), args[0], true, func(c *RunClient) error {
				state, err := c.State(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return c.WriteState(state)
			})
		},
	}
}

func runStopCommand(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "stop ID",
		Short: "Stop a run",
		Long: `Stops a run: its program gets TERM and is killed after five seconds together with its child
processes, an agent's turn is interrupted, and a pending run is withdrawn. ID is a run id, or a
session id for the session's newest run. The command returns when the stop is requested; agent
result --wait waits for the end.`,
		Example:           "acescope agent stop r-1 --reason 'the wrong site'",
		Args:              nameArgs,
		ValidArgsFunction: completeRunIDs(a, false, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRun(a, cmd.Context(), args[0], false, func(c *RunClient) error {
				state, err := c.Stop(cmd.Context(), args[0], run.StopRequest{Reason: reason, By: User()})
				if err != nil {
					return err
				}
				return c.WriteState(state)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason, which the history keeps")
	return cmd
}

// AgentRun is a run: its summary, and with agent status and agent stop its state.
type AgentRun struct {
	Type    string   `json:"type"` // agent_run
	RunType run.Type `json:"run_type"`
	run.Summary
	DocumentStatus string     `json:"document_status"` // the status in the words of ADR-014
	State          *run.State `json:"state,omitempty"`
}

// newAgentRun returns the line of a run. Document 004 calls a running run started.
func newAgentRun(s run.Summary) AgentRun {
	l := AgentRun{Type: "agent_run", RunType: s.Type, Summary: s, DocumentStatus: string(s.Status)}
	if s.Status == run.Running {
		l.DocumentStatus = "started"
	}
	return l
}

// WriteState writes the state of a run.
func (c *RunClient) WriteState(s run.State) error {
	in := s.Input
	l := newAgentRun(run.Summary{RunID: in.RunID, SessionID: in.SessionID, Type: in.Type, AgentName: in.Name(),
		Status: s.Status, ExitStatus: s.Exit, ParentSessionID: in.ParentSessionID, CreatedAt: in.CreatedAt})
	l.State = &s
	var started time.Time
	if s.Claim != nil {
		l.RunnerID = s.Claim.RunnerID
	}
	if s.ProgramStart != nil {
		started = s.ProgramStart.At
	}
	if r := s.Result; r != nil {
		l.RunnerID = cmp.Or(r.Runner, l.RunnerID)
		if !r.StartedAt.IsZero() {
			started = r.StartedAt
		}
	}
	if c.App.JSON {
		return cli.NewLines(c.App.Out).Write(l)
	}
	return runDetails(l, started).print(c.App.Out)
}

func runDetails(l AgentRun, started time.Time) (d details) {
	s := l.State
	r := cmp.Or(s.Result, &run.Result{})
	d.add("run", "%s", l.RunID)
	d.add("session", "%s", l.SessionID)
	d.add("agent", "%s", l.AgentName)
	status := string(l.Status)
	if l.DocumentStatus != status {
		status += " (" + l.DocumentStatus + ")"
	}
	d.add("status", "%s %s", status, r.Reason)
	d.add("error", "%s", r.Error)
	d.add("runner", "%s", l.RunnerID)
	d.add("directory", "%s", s.Input.ProjectDir)
	d.add("requires", "%s", runners.RequirementsText(s.Input.Requirements))
	notified := map[string]string{run.NotifiedSession: ", which was notified", run.NotifiedEnded: ", which has ended"}
	d.add("parent", "%s%s", l.ParentSessionID, notified[s.Notified])
	d.add("created", "%s", formatTime(l.CreatedAt))
	d.add("started", "%s", formatTime(started))
	if !l.Status.Over() {
		d.add("time limit", "%s", formatTime(s.TimeoutAt))
		r = &run.Result{}
	}
	for _, m := range s.Moves {
		d.add("before", "%s: %s", m.Runner, m.Reason)
	}
	d.add("stop", "%s", runners.StopText(s.Stop))
	if r.DurationSeconds > 0 {
		d.add("duration", "%s", text.Duration(time.Duration(r.DurationSeconds*float64(time.Second))))
	}
	if r.ExitCode != nil {
		d.add("exit code", "%d", *r.ExitCode)
	}
	d.add("signal", "%s", r.Signal)
	d.add("log", "%s", r.LogPath)
	return d
}

// runStatuses are the values of --status. started is document 004's name for running.
var runStatuses = []run.Status{run.Pending, run.Claimed, run.Running, run.Stopping, run.Completed, run.Failed,
	run.Stopped, "started"}

// maxListedRuns bounds a list of runs.
const maxListedRuns = 10_000

func runListCommand(a *cli.App) *cobra.Command {
	f := run.Filter{Limit: 100}
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the runs of agents and deterministic programs, open runs first",
		Example: `acescope agent runs --status running
acescope agent runs --parent ses_0123456789ab --json | jq -r .run_id`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Status == "started" {
				f.Status = run.Running
			}
			if !reachable(a) {
				return nil
			}
			return withRuns(a, cmd.Context(), true, func(c *RunClient) error {
				return c.ListRuns(cmd.Context(), f, time.Now())
			})
		},
	}
	fs := cmd.Flags()
	nameVar(fs, &f.AgentName, "agent", "only runs of this blueprint")
	nameVar(fs, &f.SessionID, "session", "only runs in this session")
	nameVar(fs, &f.Parent, "parent", "only runs that this session started")
	choiceVar(fs, &f.Status, "status", runStatuses, "only runs with this status: "+join(runStatuses))
	intVar(fs, &f.Limit, "limit", 1, maxListedRuns, "maximum number of runs")
	return cmd
}

// ListRuns writes the runs that match a filter.
func (c *RunClient) ListRuns(ctx context.Context, f run.Filter, now time.Time) error {
	list, err := c.List(ctx, f)
	if err != nil {
		return err
	}
	return cli.WriteRows(c.App, mapped(list, newAgentRun),
		"RUN\tSESSION\tAGENT\tSTATUS\tRUNNER\tAGE\tDURATION\tPARENT", func(r AgentRun) []any {
			duration := ""
			if !r.EndedAt.IsZero() {
				duration = text.Duration(r.EndedAt.Sub(r.CreatedAt))
			}
			return []any{r.RunID, r.SessionID, r.AgentName, r.Status, r.RunnerID, text.Span(now.Sub(r.CreatedAt)),
				duration, r.ParentSessionID}
		})
}

func runResultCommand(a *cli.App) *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use:   "result ID",
		Short: "Show the result of a run",
		Long: `Writes the output of a run: a program's standard output and standard error unchanged, or an agent's
last message. ID is a run id, or a session id for the session's newest run. The exit code is 0 if
the run has completed and 1 if it failed, was stopped or has not ended.`,
		Example:           "acescope agent result ses_0123456789ab --wait\nacescope agent result r-1 --json | jq .output",
		Args:              nameArgs,
		ValidArgsFunction: completeRunIDs(a, false, false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRun(a, cmd.Context(), args[0], !wait, func(c *RunClient) error {
				return c.Result(cmd.Context(), args[0], wait)
			})
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end of the run")
	return cmd
}

// Result writes the result of a run. With wait it waits for the run's end first.
func (c *RunClient) Result(ctx context.Context, id string, wait bool) error {
	state, err := c.State(ctx, id)
	if err != nil {
		return err
	}
	in := state.Input
	switch {
	case state.Result != nil && state.Status.Over():
		return c.WriteResult(ctx, in, *state.Result)
	case wait:
		return c.await(ctx, in)
	case state.Status.Over():
		return fmt.Errorf("run %s is %s and has no result", in.RunID, state.Status)
	}
	return fmt.Errorf("run %s has not ended, it is %s: wait for it with --wait", in.RunID, state.Status)
}

// AgentResult is the result of a run.
type AgentResult struct {
	Type      string   `json:"type"` // agent_result
	RunType   run.Type `json:"run_type"`
	AgentName string   `json:"agent_name"`
	run.Result
}

// WriteResult writes the result of a run. It returns an error if the run has not completed.
func (c *RunClient) WriteResult(ctx context.Context, in run.Input, r run.Result) error {
	a := c.App
	if a.JSON {
		l := AgentResult{"agent_result", in.Type, in.Name(), r}
		l.RunID, l.SessionID, l.Output = in.RunID, in.SessionID, c.output(ctx, r)
		if err := cli.NewLines(a.Out).Write(l); err != nil {
			return err
		}
		return resultError(in, r)
	}
	output, ref := r.Stdout, r.StdoutRef
	if !in.IsProgram() {
		output, ref = runners.OutputText(&r), r.OutputRef
	}
	if err := c.writeOutput(ctx, a.Out, output, ref, !in.IsProgram()); err != nil {
		return err
	}
	if err := c.writeOutput(ctx, a.Err, r.Stderr, r.StderrRef, false); err != nil {
		return err
	}
	if r.Dropped > 0 {
		cli.Warn(a, "%d bytes of the output of run %s were not stored", r.Dropped, in.RunID)
	}
	return resultError(in, r)
}

// output returns the complete output of a run as JSON, or nil if its artifact is not on this machine.
func (c *RunClient) output(ctx context.Context, r run.Result) json.RawMessage {
	if r.OutputRef == nil {
		return r.Output
	}
	content, err := c.complete(ctx, r.OutputRef, "")
	if err != nil || content == "" {
		return nil
	}
	if r.OutputIs == run.OutputJSON && json.Valid([]byte(content)) {
		return json.RawMessage(content)
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil
	}
	return data
}

// resultError returns the error of a run that has not completed, or nil.
func resultError(in run.Input, r run.Result) error {
	reason := cmp.Or(r.Error, string(r.Reason))
	switch {
	case r.Status == run.Completed:
		return nil
	case r.Status == run.Stopped:
		return fmt.Errorf("run %s: %s", in.RunID, cmp.Or(reason, "it was stopped"))
	case reason == "":
		return fmt.Errorf("run %s %s", in.RunID, r.Status)
	}
	return fmt.Errorf("run %s %s: %s", in.RunID, r.Status, reason)
}

// writeOutput writes the output of a run unchanged to a file or a pipe, and safely to a terminal. The artifact, if
// there is one on this machine, replaces the shortened output. With endLine the output ends with a line break.
func (c *RunClient) writeOutput(ctx context.Context, to io.Writer, output string, ref *ace.Ref, endLine bool) error {
	complete, err := c.complete(ctx, ref, output)
	if err == nil {
		output = complete
	} else {
		cli.Warn(c.App, "only the beginning and the end are shown: %s", cli.OneLine(err))
	}
	if trimmed := strings.TrimRight(output, "\r\n"); endLine && trimmed != "" {
		output = trimmed + "\n"
	}
	_, err = io.WriteString(cli.Exact(to), output)
	return err
}

// complete returns the text of an artifact, or the known text if there is no artifact.
func (c *RunClient) complete(ctx context.Context, ref *ace.Ref, known string) (string, error) {
	if ref == nil || c.Artifacts == nil {
		return known, nil
	}
	r, err := c.Artifacts.Open(ctx, *ref)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, run.MaxCapture+1))
	return string(data), err
}
