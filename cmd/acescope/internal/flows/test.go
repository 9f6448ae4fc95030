package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

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

func testCommand(a *cli.App) *cobra.Command {
	var recorded []string
	cmd := &cobra.Command{
		Use:   "test FLOW [CASES]",
		Short: "Test a flow with mocked operations, or compare it with recorded runs",
		Long: "Runs a flow without a server and without waiting for time. The cases are in NAME.test.yaml beside the\n" +
			"flow, or in the file CASES: inputs, results of operations, decisions and signals, and what must come of\n" +
			"them. With --recorded the flow gets what a run got, and must execute the same operations with the same\n" +
			"parameters and end alike. The exit code is 1 if a case fails, and 2 if the flow or the cases are not valid.",
		Example: "acescope flow test ./release.yaml\n" +
			"acescope flow test ./release.yaml --recorded release-17 --recorded exported/bug.json --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := Find(a, args[0])
			if err != nil {
				return err
			}
			return (&tester{App: a, entry: e, out: cli.NewLines(a)}).run(cmd.Context(), args[1:], recorded)
		},
	}
	cmd.Flags().StringArrayVar(&recorded, "recorded", nil,
		"compare with this run, or with this file of a history; repeatable")
	return cmd
}

type TestLine struct {
	Flow string `json:"flow" jsonschema:"name of the flow"`
	Case string `json:"case" jsonschema:"name of the case, or the recorded run"` // name, or the recorded run
	Line int    `json:"line,omitempty" jsonschema:"line of the case in its file"`
	flowtest.Report
	Passed     bool    `json:"passed" jsonschema:"true if there are no differences"`
	DurationMS float64 `json:"duration_ms" jsonschema:"duration of the test"`
}

type tester struct {
	*cli.App
	entry         library.Entry
	out           *cli.Lines
	tests, failed int
}

func (t *tester) run(ctx context.Context, files, recorded []string) error {
	worker.SetBinaryChecksum(cli.BuildVersion()) // otherwise the SDK reads this whole program to compute it
	if len(files) > 0 || len(recorded) == 0 {
		cases, err := t.cases(files)
		if err != nil {
			return err
		}
		for _, c := range cases {
			line := TestLine{Case: c.Name, Line: c.At.Line}
			err := t.report(line, func() (flowtest.Report, error) {
				return flowtest.Test(t.entry.Source, t.entry.Name, t.entry.Flow, c)
			})
			if err != nil {
				return err
			}
		}
	}
	for _, name := range recorded {
		h, err := cli.HistoryOf(t.App, ctx, name, "")
		if err := cmp.Or(err, h.ReadErr); err != nil {
			return err
		}
		err = t.report(TestLine{Case: name}, func() (flowtest.Report, error) {
			return flowtest.TestRecorded(t.entry.Source, h.Events)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if t.failed > 0 {
		return fmt.Errorf("%d of %s of flow %s failed", t.failed, ace.Count(t.tests, "test"), t.entry.Name)
	}
	return nil
}

// cases reads the test cases from a file, or from the one beside the flow.
func (t *tester) cases(files []string) (list []flow.Case, err error) {
	var name, text string
	if len(files) > 0 {
		var data []byte
		name = files[0]
		data, err = os.ReadFile(name)
		text = string(data)
	} else {
		name, text, err = library.Cases(t.entry)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.NotFound(
			"there is no file %s with test cases; write one, see docs/guides/flow-tests.md, "+
				"or use --recorded", name)
	}
	if err == nil {
		list, err = flow.ParseCases(name, text, t.entry.Flow)
	}
	if problems, ok := errors.AsType[flow.Problems](err); ok {
		return nil, cli.UsageError("the test cases are not valid:\n%w", problems)
	}
	return list, err
}

func (t *tester) report(line TestLine, run func() (flowtest.Report, error)) (err error) {
	begun := time.Now()
	if line.Report, err = run(); err != nil {
		return err
	}
	line.Flow = t.entry.Name
	line.Passed = line.Report.Passed()
	line.DurationMS = cluster.Millis(time.Since(begun))
	verdict := "passed"
	t.tests++
	if !line.Passed {
		verdict = "failed"
		t.failed++
	}
	t.out.Line(line, "%s  %s  %s", verdict, line.Case, ace.Count(line.Operations, "operation"))
	if !t.JSON {
		for _, d := range line.Differences {
			t.out.Printf("        %s", d)
		}
	}
	return t.out.Flush()
}

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
		out.Line(line, "%-12s  %s  %s", cmp.Or(verdictWords[line.Outcome], line.Outcome), r.WorkflowID, r.Status)
		text := line.Why
		if line.Difference != nil {
			text = cmp.Or(text, line.Difference.Message)
		}
		if text != "" && !a.JSON {
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

// verdictWords are the outcomes that the text words otherwise.
var verdictWords = map[string]string{flowtest.Differs: "would differ", flowtest.Same: "same so far"}

func checkRun(ctx context.Context, e *engine.Engine, src flow.Source, r sourceruns.Run) flowtest.Verdict {
	events, err := cluster.ReadHistory(ctx, e.Client, e.Namespace(), r.WorkflowID, r.RunID)
	if err != nil {
		return flowtest.Verdict{Outcome: flowtest.Unverified, Why: cli.OneLine(err)}
	}
	v := &replay.Verifier{Register: workflows.Register, Build: cli.BuildVersion()}
	return flowtest.Check(ctx, v, src, events)
}
