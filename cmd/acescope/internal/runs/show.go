package runs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/run"
	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

type showFlags struct {
	calls, operations, result, args, exit bool
	call, artifact, run                   string
}

// ResultWriter writes the result of a blueprint run, or of the newest one of a session: its output unchanged,
// or a JSON line.
type ResultWriter func(a *cli.App, ctx context.Context, id string) error

func ShowCommand(a *cli.App, result ResultWriter) *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show one run: phases, skills, tool calls, delta, answer, operations; steps of a flow; or an experiment",
		Long: "Show one run: of a task its phases, skills, tool calls, playbook delta and answer; of a flow its steps; of a\n" +
			"blueprint its state and result; or an experiment. RUN is the ID of a task, an experiment, a session, a\n" +
			"blueprint run, a run of a flow or any workflow. With --operations it may also be a file with histories, or\n" +
			"- for standard input.",
		Example: "acescope show finance-1-e1-0042\n" +
			"acescope show finance-1 --json | jq .experiment.eval\n" +
			"acescope show finance-1-e1-0042 --calls --json | jq -c 'select(.ok | not)'\n" +
			"acescope show finance-1-e1-0042 --call c7 > result.json\n" +
			"acescope wait run_9c5daa987909 && acescope show run_9c5daa987909 --result\n" +
			"temporal workflow show -w refund-17 -o json | acescope show - --operations --json | " +
			"jq 'select(.type == \"operation_failed\")'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return show(a, cmd.Context(), args[0], f, result)
		},
	}
	cmd.Flags().BoolVar(&f.calls, "calls", false, "only the tool calls, one per line")
	cmd.Flags().BoolVar(&f.operations, "operations", false,
		"the operations, times, random values, variables and version decisions, also of the runs before and after it")
	cmd.Flags().BoolVar(&f.result, "result", false,
		"print the output of a blueprint run, or of the newest one of a session, unchanged; exit with 1 unless it completed")
	cmd.Flags().StringVar(&f.call, "call", "", "print the result of the tool call with this ID unchanged")
	cmd.Flags().BoolVar(&f.args, "args", false, "with --call: print its arguments instead")
	cmd.Flags().StringVar(&f.artifact, "artifact", "",
		"print the artifact of the run with this SHA-256 unchanged")
	cmd.Flags().StringVar(&f.run, "run", "", "run ID, if the workflow has several runs")
	cmd.Flags().BoolVar(&f.exit, "exit-status", false,
		"exit with 1 if the run has closed and did not complete")
	cmd.MarkFlagsMutuallyExclusive("result", "run")
	cmd.MarkFlagsMutuallyExclusive("calls", "operations", "result", "call", "artifact", "exit-status")
	return cmd
}

// ShowLine is one run with all its details.
type ShowLine struct {
	// Kind is task, experiment, session, blueprint, flow, or workflow for a type that the contract does not
	// have.
	Kind    string      `json:"type"`
	TaskID  string      `json:"task_id,omitempty"`
	Status  ace.Status  `json:"status"`
	Verdict ace.Verdict `json:"verdict,omitempty"`
	histories.Detail
	Calls       []*histories.ToolCall `json:"calls,omitempty"`
	FailedTasks []failedTask          `json:"failed_tasks,omitempty"`
}

type failedTask struct {
	TaskID     string       `json:"task_id"`
	WorkflowID string       `json:"workflow_id"`
	RunID      string       `json:"run_id"`
	Event      int64        `json:"event_id"`
	Failure    *ace.Failure `json:"failure"`
}

// lineOf returns the JSON line of a run. It has the fields of the kind of run only.
func lineOf(d *histories.Detail) ShowLine {
	l := ShowLine{
		Kind: runs.TypeOf(d.Type), TaskID: d.Input.TaskID,
		Status: d.Phase.Status, Verdict: d.Phase.Verdict, Detail: *d,
	}
	if !l.Lineage.Known() {
		l.Lineage = histories.Lineage{}
	}
	// Lists are never null.
	l.Phase.Steps = append([]ace.StepState{}, d.Phase.Steps...)
	l.Skills.Skills = append([]ace.SkillUsage{}, d.Skills.Skills...)
	l.Skills.Recent = append([]ace.Call{}, d.Skills.Recent...)
	l.Delta.Operations = append([]ace.Operation{}, d.Delta.Operations...)
	if d.Experiment == nil && d.Session == nil && d.BlueprintRun == nil && d.Flow == nil {
		d.Calls.All(func(_ int, c *histories.ToolCall) bool {
			l.Calls = append(l.Calls, c)
			return true
		})
		if l.Kind == runs.OtherType && len(d.Phase.Steps) == 0 && d.Skills.Total == 0 { // none is recorded
			l.Skills, l.Delta = ace.SkillAnswer{}, ace.DeltaAnswer{}
		}
		return l
	}
	l.Input, l.Delta = ace.TaskInput{}, ace.DeltaAnswer{}
	l.Plan, l.TrajectoryID, l.BulletIDs, l.OldBullets, l.CallLog = "", "", nil, nil, nil
	switch {
	case d.Experiment != nil:
		l.Phase, l.Skills = ace.PhaseAnswer{}, ace.SkillAnswer{}
		for _, f := range d.FailedTasks {
			l.FailedTasks = append(l.FailedTasks, failedTask{f.Result.TaskID, f.WorkflowID, f.RunID, f.Event,
				f.Failure})
		}
	case d.BlueprintRun != nil:
		l.Skills = ace.SkillAnswer{}
	case d.Flow != nil:
		l.Skills, l.Activities = ace.SkillAnswer{}, nil // its operations are those of its steps
	}
	return l
}

func show(a *cli.App, ctx context.Context, id string, f showFlags, result ResultWriter) error {
	switch {
	case f.operations:
		return showOperations(a, ctx, id, f.run)
	case f.result:
		return result(a, ctx, strings.TrimPrefix(id, run.IDPrefix))
	case f.args && f.call == "":
		return cli.UsageError("--args needs --call ID")
	case f.artifact != "" && a.JSON:
		return cli.UsageError("an artifact is printed unchanged: omit --json")
	}
	e, exec, err := cli.OpenRun(a, ctx, id, f.run)
	if err != nil {
		return err
	}
	if f.artifact != "" {
		return showArtifact(a, ctx, e, exec, strings.ToLower(f.artifact))
	}
	deps := cluster.Deps{Client: e.Client, Playbooks: e.Books, Artifact: e.Artifacts.Get}
	d, err := detail.ReadAll(ctx, deps, exec.GetWorkflowId(), exec.GetRunId())
	switch {
	case err != nil:
		return err
	case d.Calls.Len() == 0 && (f.calls || f.call != "") && runs.TypeOf(d.Type) == runs.OtherType:
		return cli.NotFound("%s has no tool calls that acescope recorded; %s", id,
			notRead("tool", d.Type, id))
	case f.calls:
		out := cli.NewLines(a)
		for i := range d.Calls.Len() {
			out.Line(d.Calls.At(i), "%s", formatCall(d.Calls.At(i)))
		}
		return out.Flush()
	case f.call != "":
		return showCall(a, ctx, e, d, f.call, f.args)
	}
	if err := WriteRun(a, d); err != nil || !f.exit {
		return err
	}
	return ClosedError(exec.GetWorkflowId(), d.Phase.Status, nil)
}

// showCall prints the result or the arguments of one call: the text of a JSON string, otherwise the JSON.
// If the history has only a preview, it reads the artifact of the session.
func showCall(a *cli.App, ctx context.Context, e *engine.Engine, d *histories.Detail, id string,
	args bool) error {
	c := d.Calls.Find(id)
	if c == nil {
		return cli.NotFound("the run has no call %q; --calls lists them", id)
	}
	if d.CallLog != nil {
		if whole := wholeCall(a, ctx, e, *d.CallLog, id); whole != nil {
			replaced := *c
			replaced.Args, replaced.Result = whole.Args, whole.Result
			c = &replaced
		}
	}
	if a.JSON {
		return cli.NewLines(a).Write(c)
	}
	raw, name := c.Result, "result"
	if args {
		raw, name = c.Args, "arguments"
	}
	if len(raw) == 0 {
		return cli.NotFound("call %q has no %s", id, name)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw) + "\n"
	}
	_, err := io.WriteString(cli.Exact(a.Out), text)
	return err
}

// wholeCall finds a call in the artifact of its session, or returns nil.
func wholeCall(a *cli.App, ctx context.Context, e *engine.Engine, log ace.Ref, id string) *ace.Invocation {
	r, err := e.Artifacts.Open(ctx, log)
	if err != nil {
		cli.Warn(a, "only previews of the calls are available: %s", cli.OneLine(err))
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

// showArtifact prints an artifact that an event of the run refers to.
func showArtifact(
	a *cli.App, ctx context.Context, e *engine.Engine, exec *commonpb.WorkflowExecution, sha256 string,
) error {
	missing := cli.NotFound("no event of the run refers to an artifact %q", sha256)
	if len(sha256) != 64 {
		return missing
	}
	var ref ace.Ref
	iter := e.Client.GetWorkflowHistory(ctx, exec.GetWorkflowId(), exec.GetRunId(), false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	err := cluster.Drain(iter, func(ev *historypb.HistoryEvent) error {
		if r, ok := histories.FindRef(ev, sha256); ok && ref.Size == 0 {
			ref = r
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case ref.SHA256 == "":
		return missing
	}
	if path, err := e.Artifacts.Path(ctx, ref); err == nil && ref.Size == 0 {
		if info, err := os.Stat(path); err == nil {
			ref.Size = info.Size() // the event only names the hash
		}
	}
	r, err := e.Artifacts.Open(ctx, ref)
	if errors.Is(err, artifact.ErrNotFound) {
		return cli.NotFound("%w", err)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(cli.Exact(a.Out), r)
	return err
}
