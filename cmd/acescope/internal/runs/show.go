package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/session"
	"acescope/engine/store/artifact"
	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

func ShowCommand(a *cli.App) *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show TASK",
		Short: "Show one run: phase, skills, calls, playbook delta, answer; or how far an experiment has come",
		Example: "acescope show finance-1-e1-0042\nacescope show finance-1 --json | jq .experiment.eval\n" +
			"acescope show finance-1-e1-0042 --calls --json | jq -c 'select(.ok | not)'\nacescope show finance-1-e1-0042 --call c7 > result.json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteIDs(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return show(a, cmd.Context(), args[0], f) },
	}
	cmd.Flags().BoolVar(&f.calls, "calls", false, "only the tool calls, one a line")
	cmd.Flags().StringVar(&f.call, "call", "", "print the result of the call with this id, as it is")
	cmd.Flags().BoolVar(&f.args, "args", false, "with --call: print its arguments instead")
	cmd.Flags().StringVar(&f.artifact, "artifact", "", "print the artifact with this SHA-256 that the run refers to, as it is")
	cmd.Flags().StringVar(&f.run, "run", "", "of several runs of the workflow, the one with this run id")
	cmd.MarkFlagsMutuallyExclusive("calls", "call", "artifact")
	return cmd
}

type showFlags struct {
	calls, args         bool
	call, artifact, run string
}

// ShowLine is one run, whole.
type ShowLine struct {
	Type         string                  `json:"type"` // task, experiment, session or run
	TaskID       string                  `json:"task_id,omitempty"`
	WorkflowID   string                  `json:"workflow_id"`
	RunID        string                  `json:"run_id"`
	WorkflowType string                  `json:"workflow_type"`
	Status       ace.ExitStatus          `json:"exit_status"`
	From         runs.Origin             `json:"from"`
	Events       int64                   `json:"events"`
	Start        time.Time               `json:"start"`
	Close        *time.Time              `json:"close,omitempty"`
	Input        *ace.TaskInput          `json:"input,omitempty"`
	Phase        *ace.PhaseAnswer        `json:"phase,omitempty"`
	Skills       *ace.SkillAnswer        `json:"skills,omitempty"`
	Delta        *ace.DeltaAnswer        `json:"delta,omitempty"`
	Pending      []pendingLine           `json:"pending,omitempty"`
	Missing      []string                `json:"missing,omitempty"`
	Experiment   *ace.ExperimentProgress `json:"experiment,omitempty"`
	Session      *session.State          `json:"session,omitempty"`
	Course       *histories.CourseState  `json:"run_state,omitempty"`

	Plan         string                         `json:"plan,omitempty"`
	TrajectoryID string                         `json:"trajectory_id,omitempty"`
	BulletIDs    []string                       `json:"bullet_ids,omitempty"`
	Replaced     map[string]histories.OldBullet `json:"replaced,omitempty"`
	Calls        []CallLine                     `json:"calls,omitempty"`
	CallLog      *ace.Ref                       `json:"call_log,omitempty"`
	Activities   []activityLine                 `json:"activities,omitempty"`
	Causes       []histories.Cause              `json:"causes,omitempty"`
	Lineage      *histories.Lineage             `json:"lineage,omitempty"`
	Clock        *histories.Skew                `json:"clock_skew,omitempty"`
	Sealed       []histories.Sealed             `json:"sealed,omitempty"`
	FailedTasks  []failedLine                   `json:"failed_tasks,omitempty"`
	ReadError    string                         `json:"read_error,omitempty"`
}

type pendingLine struct {
	Activity    string     `json:"activity"`
	State       string     `json:"state"`
	Attempt     int32      `json:"attempt"`
	MaxAttempts int32      `json:"max_attempts,omitempty"`
	Next        *time.Time `json:"next_attempt,omitempty"`
	LastError   string     `json:"last_error,omitempty"`
}

// CallLine is one tool call.
type CallLine struct {
	Type string `json:"type,omitempty"` // call, where it stands on a line of its own
	ace.Call
	UseEvent     int64 `json:"use_event_id,omitempty"`
	ResultEvent  int64 `json:"result_event_id,omitempty"`
	SessionEvent int64 `json:"session_event_id,omitempty"`
	Cut          bool  `json:"cut,omitempty"`
}

type activityLine struct {
	Activity       string            `json:"activity"`
	Phase          ace.Phase         `json:"phase,omitempty"`
	Scheduled      time.Time         `json:"scheduled"`
	Started        *time.Time        `json:"started,omitempty"`
	Closed         *time.Time        `json:"closed,omitempty"`
	ScheduledEvent int64             `json:"scheduled_event_id"`
	StartedEvent   int64             `json:"started_event_id,omitempty"`
	ClosedEvent    int64             `json:"closed_event_id,omitempty"`
	Attempt        int32             `json:"attempt,omitempty"`
	LastError      *ace.Failure      `json:"last_error,omitempty"`
	Failure        *ace.Failure      `json:"failure,omitempty"`
	Causes         []histories.Cause `json:"causes,omitempty"`
	Retry          string            `json:"retry_state,omitempty"`
	Worker         string            `json:"worker,omitempty"`
}

type failedLine struct {
	TaskID     string       `json:"task_id"`
	WorkflowID string       `json:"workflow_id"`
	RunID      string       `json:"run_id"`
	Event      int64        `json:"event_id"`
	Failure    *ace.Failure `json:"failure"`
}

func show(a *cli.App, ctx context.Context, id string, f showFlags) error {
	if f.args && f.call == "" {
		return cli.UsageError("--args goes with --call ID")
	}
	e, exec, done, err := a.OpenRun(ctx, id, f.run)
	if err != nil {
		return err
	}
	defer done()
	d, err := detail.ReadAll(ctx, cluster.Deps{Client: e.Client, Books: e.Books, Artifact: e.Artifacts.Get}, exec.GetWorkflowId(), exec.GetRunId())
	if err != nil {
		return err
	}
	switch {
	case f.calls:
		return showCalls(a, d)
	case f.call != "":
		return showCall(a, e, d, f.call, f.args)
	case f.artifact != "":
		return showArtifact(a, e, d, f.artifact)
	}
	line := LineOf(d)
	if a.JSON {
		return cli.NewLines(a.Out).Write(line)
	}
	return PrintShow(a.Out, d, line)
}

func showCalls(a *cli.App, d *histories.Detail) error {
	out := cli.NewLines(a.Out)
	for i := range d.Calls.Len() {
		c := d.Calls.At(i)
		if a.JSON {
			line := callLineOf(c)
			line.Type = "call"
			if err := out.Put(line); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(out.Buf, callText(c))
	}
	return out.Flush()
}

// showCall prints a payload of one call: of a JSON string its text, of anything else the
// JSON. Where the history has no more than a preview, the session's artifact is read.
func showCall(a *cli.App, e *engine.Engine, d *histories.Detail, id string, args bool) error {
	c := d.Calls.Find(id)
	if c == nil {
		return &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("the run has no call %q; --calls lists them", id)}
	}
	if d.CallLog != nil {
		if whole := wholeCall(a, e, *d.CallLog, id); whole != nil {
			both := *c
			both.Args, both.Result = whole.Args, whole.Result
			c = &both
		}
	}
	if a.JSON {
		line := callLineOf(c)
		line.Type = "call"
		return cli.NewLines(a.Out).Write(line)
	}
	raw, what := c.Result, "result"
	if args {
		raw, what = c.Args, "arguments"
	}
	if len(raw) == 0 {
		return &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("call %q has no %s", id, what)}
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw) + "\n"
	}
	_, err := io.WriteString(a.Out, text)
	return err
}

// wholeCall looks a call up in the artifact of its session, nil where it is not to be had.
func wholeCall(a *cli.App, e *engine.Engine, log ace.Ref, id string) *ace.Invocation {
	r, err := e.Artifacts.Open(log)
	if err != nil {
		fmt.Fprintln(a.Err, "acescope: only previews are left of the calls: "+cli.OneLine(err))
		return nil
	}
	defer r.Close()
	for dec := json.NewDecoder(r); ; {
		var inv ace.Invocation
		if dec.Decode(&inv) != nil {
			return nil
		}
		if inv.ID == id {
			return &inv
		}
	}
}

// showArtifact prints an artifact of the run as it is.
func showArtifact(a *cli.App, e *engine.Engine, d *histories.Detail, sha256 string) error {
	if a.JSON {
		return cli.UsageError("an artifact is printed as it is: leave --json out")
	}
	for _, ref := range histories.Refs(d) {
		if ref.SHA256 != sha256 {
			continue
		}
		r, err := e.Artifacts.Open(ref)
		if errors.Is(err, artifact.ErrNotFound) {
			return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
		}
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(a.Out, r)
		return err
	}
	return &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("the run refers to no artifact %q", sha256)}
}

func callLineOf(c *histories.ToolCall) CallLine {
	return CallLine{Call: c.Call, UseEvent: c.UseEvent, ResultEvent: c.ResultEvent, SessionEvent: c.SessionEvent, Cut: c.Cut}
}

func LineOf(d *histories.Detail) ShowLine {
	l := ShowLine{Type: "task", TaskID: d.Input.TaskID, WorkflowID: d.WorkflowID, RunID: d.RunID, WorkflowType: d.Type,
		Status: d.Phase.ExitStatus, From: d.From, Events: d.Events, Start: d.Start, Missing: d.Missing, Experiment: d.Experiment,
		Causes: d.Causes, Sealed: d.Sealed, ReadError: d.Err}
	if !d.Close.IsZero() {
		l.Close = &d.Close
	}
	for _, p := range d.Pending {
		l.Pending = append(l.Pending, pendingLine{p.Type, p.State, p.Attempt, p.MaxAttempts, cli.TimeOrNil(p.Next), p.LastError})
	}
	for _, x := range d.Activities {
		l.Activities = append(l.Activities, activityLine{Activity: x.Name, Phase: x.Phase, Scheduled: x.Scheduled, Started: cli.TimeOrNil(x.Started),
			Closed: cli.TimeOrNil(x.Closed), ScheduledEvent: x.ScheduledEvent, StartedEvent: x.StartedEvent, ClosedEvent: x.ClosedEvent,
			Attempt: x.Attempt, LastError: x.LastError, Failure: x.Failure, Causes: x.Causes, Retry: x.Retry, Worker: x.Worker})
	}
	if d.Skew != (histories.Skew{}) {
		l.Clock = &d.Skew
	}
	if d.Lineage.Known() {
		l.Lineage = &d.Lineage
	}
	if d.Experiment != nil {
		l.Type, l.Status = "experiment", d.Experiment.ExitStatus
		for _, f := range d.FailedTasks {
			l.FailedTasks = append(l.FailedTasks, failedLine{f.Result.TaskID, f.WorkflowID, f.RunID, f.Event, f.Failure})
		}
		return l
	}
	emptyLists(d)
	if d.Session != nil {
		l.Type, l.Session, l.Phase, l.Skills = "session", d.Session, &d.Phase, &d.Skills
		return l
	}
	if d.Course != nil {
		l.Type, l.Course, l.Phase = "run", d.Course, &d.Phase
		return l
	}
	l.Input, l.Phase, l.Skills, l.Delta = &d.Input, &d.Phase, &d.Skills, &d.Delta
	l.Plan, l.TrajectoryID, l.BulletIDs, l.Replaced, l.CallLog = d.Plan, d.TrajectoryID, d.BulletIDs, d.Old, d.CallLog
	d.Calls.All(func(_ int, c *histories.ToolCall) bool {
		l.Calls = append(l.Calls, callLineOf(c))
		return true
	})
	return l
}

// emptyLists makes lists of those that are missing where nothing of a run can be read.
func emptyLists(d *histories.Detail) {
	if d.Phase.Steps == nil {
		d.Phase.Steps = []ace.StepState{}
	}
	if d.Skills.Skills == nil {
		d.Skills.Skills = []ace.SkillUsage{}
	}
	if d.Skills.Recent == nil {
		d.Skills.Recent = []ace.Call{}
	}
	if d.Delta.Operations == nil {
		d.Delta.Operations = []ace.Operation{}
	}
}
