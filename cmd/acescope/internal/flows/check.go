package flows

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/worker"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/flowtest"
	"acescope/engine/flow/library"
	"acescope/engine/temporal/replay"
	"acescope/engine/workflows"
	"acescope/sources/cluster"
	sourceruns "acescope/sources/runs"
)

// maxChecked bounds the runs of flow check --all.
const maxChecked = 1000

func checkCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "check FLOW",
		Short: "Name the open runs of a flow that would have done something else with its changed file",
		Long: "Replays the history of each open run of the flow, and with --all of the closed ones, with the file as it\n" +
			"is now. Runs keep the file that they began with: a difference does not break them, it says what a new run\n" +
			"does differently. The exit code is 4 if a run differs.",
		Example: "acescope flow check ./release.yaml\n" +
			"acescope flow check release --all --json | jq 'select(.outcome == \"differs\").difference.step'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := Find(a, args[0])
			if err != nil {
				return err
			}
			return check(a, cmd.Context(), e, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, fmt.Sprintf("also closed runs; the newest %d runs", maxChecked))
	return cmd
}

type CheckLine struct {
	WorkflowID string     `json:"workflow_id"`
	RunID      string     `json:"run_id"`
	Status     ace.Status `json:"status"`
	flowtest.Verdict
}

func check(a *cli.App, ctx context.Context, entry library.Entry, all bool) error {
	e, err := a.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	query := fmt.Sprintf("WorkflowType = %q AND %s = %s", flow.Workflow, ace.AttrTask,
		strconv.Quote(entry.Name))
	if !all {
		query += ` AND ExecutionStatus = "Running"`
	}
	worker.SetBinaryChecksum(cli.BuildVersion()) // otherwise the SDK reads this whole program to compute it
	out := cli.NewLines(a)
	checked, differing := 0, 0
	err = sourceruns.List(ctx, e.Client, query, maxChecked, func(r sourceruns.Run) error {
		line := CheckLine{r.WorkflowID, r.RunID, r.Status, checkRun(ctx, e, entry.Source, r)}
		checked++
		if line.Outcome == flowtest.Differs {
			differing++
		}
		out.Line(line, "%-12s  %s  %s", verdictText(line.Outcome), r.WorkflowID, r.Status)
		if text := cmp.Or(line.Why, differenceText(line.Difference)); text != "" && !a.JSON {
			out.Printf("              %s", text)
		}
		return out.Flush()
	})
	switch {
	case err != nil:
		return err
	case checked == 0 && !a.JSON:
		cli.Warn(a, "no run of the flow %s is open; --all checks closed ones", entry.Name)
	case differing > 0:
		return cli.Diverged("%d of %s would differ with this file; runs keep the file that they began with",
			differing, ace.Count(checked, "run"))
	}
	return nil
}

func verdictText(outcome string) string {
	switch outcome {
	case flowtest.Differs:
		return "would differ"
	case flowtest.Same:
		return "same so far"
	}
	return outcome
}

func differenceText(d *flowtest.Difference) string {
	if d == nil {
		return ""
	}
	return d.Message
}

func checkRun(ctx context.Context, e *engine.Engine, src flow.Source, r sourceruns.Run) flowtest.Verdict {
	events, err := cluster.ReadHistory(ctx, e.Client, e.Namespace(), r.WorkflowID, r.RunID)
	if err != nil {
		return flowtest.Verdict{Outcome: flowtest.Unverified, Why: cli.OneLine(err)}
	}
	v := &replay.Verifier{Register: workflows.Register, Build: cli.BuildVersion()}
	return flowtest.Check(ctx, v, src, events)
}
