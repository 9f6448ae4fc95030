package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/worker"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/flowtest"
	"acescope/engine/flow/library"
	"acescope/sources/cluster"
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
		Args: cobra.RangeArgs(1, 2),
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
	Flow string `json:"flow"`
	Case string `json:"case"`           // name, or the recorded run
	Line int    `json:"line,omitempty"` // of the case in its file
	flowtest.Report
	Passed     bool    `json:"passed"`
	DurationMS float64 `json:"duration_ms"`
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
