package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/artifact"
	"acescope/engine/session"
	"acescope/sources"
)

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show TASK",
		Short: "Show one run: phase, skills, calls, playbook delta, answer; or how far an experiment has come",
		Example: "acescope show finance-1-e1-0042\nacescope show finance-1 --json | jq .experiment.eval\n" +
			"acescope show finance-1-e1-0042 --calls --json | jq -c 'select(.ok | not)'\nacescope show finance-1-e1-0042 --call c7 > result.json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeIDs(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.show(cmd.Context(), args[0], f) },
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

// showLine is one run, whole.
type showLine struct {
	Type         string                  `json:"type"` // task, experiment, session or run
	TaskID       string                  `json:"task_id,omitempty"`
	WorkflowID   string                  `json:"workflow_id"`
	RunID        string                  `json:"run_id"`
	WorkflowType string                  `json:"workflow_type"`
	Status       ace.ExitStatus          `json:"exit_status"`
	From         sources.Origin          `json:"from"`
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
	Course       *sources.CourseState    `json:"run_state,omitempty"`

	Plan         string                       `json:"plan,omitempty"`
	TrajectoryID string                       `json:"trajectory_id,omitempty"`
	BulletIDs    []string                     `json:"bullet_ids,omitempty"`
	Replaced     map[string]sources.OldBullet `json:"replaced,omitempty"`
	Calls        []callLine                   `json:"calls,omitempty"`
	CallLog      *ace.Ref                     `json:"call_log,omitempty"`
	Activities   []activityLine               `json:"activities,omitempty"`
	Causes       []sources.Cause              `json:"causes,omitempty"`
	Lineage      *sources.Lineage             `json:"lineage,omitempty"`
	Clock        *sources.Skew                `json:"clock_skew,omitempty"`
	Sealed       []sources.Sealed             `json:"sealed,omitempty"`
	FailedTasks  []failedLine                 `json:"failed_tasks,omitempty"`
	ReadError    string                       `json:"read_error,omitempty"`
}

type pendingLine struct {
	Activity    string     `json:"activity"`
	State       string     `json:"state"`
	Attempt     int32      `json:"attempt"`
	MaxAttempts int32      `json:"max_attempts,omitempty"`
	Next        *time.Time `json:"next_attempt,omitempty"`
	LastError   string     `json:"last_error,omitempty"`
}

// callLine is one tool call.
type callLine struct {
	Type string `json:"type,omitempty"` // call, where it stands on a line of its own
	ace.Call
	UseEvent     int64 `json:"use_event_id,omitempty"`
	ResultEvent  int64 `json:"result_event_id,omitempty"`
	SessionEvent int64 `json:"session_event_id,omitempty"`
	Cut          bool  `json:"cut,omitempty"`
}

type activityLine struct {
	Activity       string          `json:"activity"`
	Phase          ace.Phase       `json:"phase,omitempty"`
	Scheduled      time.Time       `json:"scheduled"`
	Started        *time.Time      `json:"started,omitempty"`
	Closed         *time.Time      `json:"closed,omitempty"`
	ScheduledEvent int64           `json:"scheduled_event_id"`
	StartedEvent   int64           `json:"started_event_id,omitempty"`
	ClosedEvent    int64           `json:"closed_event_id,omitempty"`
	Attempt        int32           `json:"attempt,omitempty"`
	LastError      *ace.Failure    `json:"last_error,omitempty"`
	Failure        *ace.Failure    `json:"failure,omitempty"`
	Causes         []sources.Cause `json:"causes,omitempty"`
	Retry          string          `json:"retry_state,omitempty"`
	Worker         string          `json:"worker,omitempty"`
}

type failedLine struct {
	TaskID     string       `json:"task_id"`
	WorkflowID string       `json:"workflow_id"`
	RunID      string       `json:"run_id"`
	Event      int64        `json:"event_id"`
	Failure    *ace.Failure `json:"failure"`
}

func (a *app) show(ctx context.Context, id string, f showFlags) error {
	if f.args && f.call == "" {
		return usage("--args goes with --call ID")
	}
	e, exec, done, err := a.lookAt(ctx, id, f.run)
	if err != nil {
		return err
	}
	defer done()
	d, err := sources.ShowAll(ctx, sources.Deps{Client: e.Client, Books: e.Books, Artifact: e.Artifacts.Get}, exec.GetWorkflowId(), exec.GetRunId())
	if err != nil {
		return err
	}
	switch {
	case f.calls:
		return a.showCalls(d)
	case f.call != "":
		return a.showCall(e, d, f.call, f.args)
	case f.artifact != "":
		return a.showArtifact(e, d, f.artifact)
	}
	line := lineOf(d)
	if a.json {
		return newLines(a.out).write(line)
	}
	return printShow(a.out, d, line)
}

func (a *app) showCalls(d *sources.Detail) error {
	out := newLines(a.out)
	for i := range d.Calls.Len() {
		c := d.Calls.At(i)
		if a.json {
			line := callLineOf(c)
			line.Type = "call"
			if err := out.put(line); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(out.buf, callText(c))
	}
	return out.flush()
}

// showCall prints a payload of one call: of a JSON string its text, of anything else the
// JSON. Where the history has no more than a preview, the session's artifact is read.
func (a *app) showCall(e *engine.Engine, d *sources.Detail, id string, args bool) error {
	c := d.Calls.Find(id)
	if c == nil {
		return &coded{exitNotFound, fmt.Errorf("the run has no call %q; --calls lists them", id)}
	}
	if d.CallLog != nil {
		if whole := a.wholeCall(e, *d.CallLog, id); whole != nil {
			both := *c
			both.Args, both.Result = whole.Args, whole.Result
			c = &both
		}
	}
	if a.json {
		line := callLineOf(c)
		line.Type = "call"
		return newLines(a.out).write(line)
	}
	raw, what := c.Result, "result"
	if args {
		raw, what = c.Args, "arguments"
	}
	if len(raw) == 0 {
		return &coded{exitNotFound, fmt.Errorf("call %q has no %s", id, what)}
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw) + "\n"
	}
	_, err := io.WriteString(a.out, text)
	return err
}

// wholeCall looks a call up in the artifact of its session, nil where it is not to be had.
func (a *app) wholeCall(e *engine.Engine, log ace.Ref, id string) *ace.Invocation {
	r, err := e.Artifacts.Open(log)
	if err != nil {
		fmt.Fprintln(a.err, "acescope: only previews are left of the calls: "+oneLine(err))
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
func (a *app) showArtifact(e *engine.Engine, d *sources.Detail, sha256 string) error {
	if a.json {
		return usage("an artifact is printed as it is: leave --json out")
	}
	for _, ref := range sources.Refs(d) {
		if ref.SHA256 != sha256 {
			continue
		}
		r, err := e.Artifacts.Open(ref)
		if errors.Is(err, artifact.ErrNotFound) {
			return &coded{exitNotFound, err}
		}
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(a.out, r)
		return err
	}
	return &coded{exitNotFound, fmt.Errorf("the run refers to no artifact %q", sha256)}
}

func callLineOf(c *sources.ToolCall) callLine {
	return callLine{Call: c.Call, UseEvent: c.UseEvent, ResultEvent: c.ResultEvent, SessionEvent: c.SessionEvent, Cut: c.Cut}
}

func lineOf(d *sources.Detail) showLine {
	l := showLine{Type: "task", TaskID: d.Input.TaskID, WorkflowID: d.WorkflowID, RunID: d.RunID, WorkflowType: d.Type,
		Status: d.Phase.ExitStatus, From: d.From, Events: d.Events, Start: d.Start, Missing: d.Missing, Experiment: d.Experiment,
		Causes: d.Causes, Sealed: d.Sealed, ReadError: d.Err}
	if !d.Close.IsZero() {
		l.Close = &d.Close
	}
	for _, p := range d.Pending {
		l.Pending = append(l.Pending, pendingLine{p.Type, p.State, p.Attempt, p.MaxAttempts, timeOrNil(p.Next), p.LastError})
	}
	for _, x := range d.Activities {
		l.Activities = append(l.Activities, activityLine{Activity: x.Name, Phase: x.Phase, Scheduled: x.Scheduled, Started: timeOrNil(x.Started),
			Closed: timeOrNil(x.Closed), ScheduledEvent: x.ScheduledEvent, StartedEvent: x.StartedEvent, ClosedEvent: x.ClosedEvent,
			Attempt: x.Attempt, LastError: x.LastError, Failure: x.Failure, Causes: x.Causes, Retry: x.Retry, Worker: x.Worker})
	}
	if d.Skew != (sources.Skew{}) {
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
	d.Calls.All(func(_ int, c *sources.ToolCall) bool {
		l.Calls = append(l.Calls, callLineOf(c))
		return true
	})
	return l
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// emptyLists makes lists of those that are missing where nothing of a run can be read.
func emptyLists(d *sources.Detail) {
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
