package admin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/problems"
	sourceruns "acescope/sources/runs"
)

// Seeds of the demonstration: what is learnt from, and what is measured on.
const (
	demoSeed     = 1
	demoEvalSeed = 2
	demoEval     = 60
)

func DemoCommand(a *cli.App) *cobra.Command {
	var pace time.Duration
	var tasks int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Open the console on an experiment that learns before your eyes",
		Long: "Start an experiment of the built-in learner on generated finance problems and open the console on it.\n" +
			"No language model, no key, no network. Every phase is held for --pace, so that one can watch.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tasks < 1 || pace < 0 {
				return cli.UsageError("give --tasks above 0 and --pace of 0 or more")
			}
			a.Settings.Observe = cli.ObserveOff // what agents do here is no part of the demonstration
			return openConsole(a, cmd.Context(), func(ctx context.Context, e *engine.Engine) error {
				return startDemo(a, ctx, e, tasks, pace)
			})
		},
	}
	cmd.Flags().DurationVar(&pace, "pace", 400*time.Millisecond, "hold every phase for at least so long")
	cmd.Flags().IntVar(&tasks, "tasks", 120, "how many problems to learn from")
	return cmd
}

// startDemo starts the demonstration unless one is under way in this data directory.
func startDemo(a *cli.App, ctx context.Context, e *engine.Engine, tasks int, pace time.Duration) error {
	open, err := sourceruns.Count(ctx, e.Client, `ExecutionStatus = "Running" AND WorkflowType = "`+ace.ExperimentWorkflow+`"`)
	if err != nil || open > 0 {
		return err
	}
	tmp, err := os.MkdirTemp("", "acescope-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer os.RemoveAll(tmp)
	train, eval := filepath.Join(tmp, "finance.jsonl"), filepath.Join(tmp, "finance-held-out.jsonl")
	if err := WriteProblems(train, demoSeed, tasks); err != nil {
		return err
	}
	if err := WriteProblems(eval, demoEvalSeed, demoEval); err != nil {
		return err
	}
	in, _, err := runs.ExperimentInput(ctx, e, runs.RunFlags{Dataset: train, Eval: eval, Provider: "builtin", Adapter: "offline",
		Epochs: 1, Parallel: 1, Pace: pace, Experiment: "demo-" + time.Now().Format("150405")})
	if err != nil {
		return err
	}
	_, err = e.StartExperiment(ctx, in)
	return err
}

func WriteProblems(path string, seed uint64, n int) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if err := problems.WriteJSONL(f, problems.Finance(seed, n)); err != nil {
		f.Close()
		return fmt.Errorf("demo: %w", err)
	}
	return f.Close()
}

func ProblemsCommand(a *cli.App) *cobra.Command {
	var seed uint64
	var n int
	cmd := &cobra.Command{
		Use:     "problems",
		Short:   "Write a data set of labelled finance problems, made from a seed",
		Example: "acescope problems --count 300 --seed 1 > train.jsonl\nacescope problems --count 100 --seed 2 > held-out.jsonl",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if n < 1 {
				return cli.UsageError("--count %d: give a number above 0", n)
			}
			return problems.WriteJSONL(a.Out, problems.Finance(seed, n))
		},
	}
	cmd.Flags().IntVar(&n, "count", 100, "how many problems")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "the same seed gives the same problems")
	return cmd
}
