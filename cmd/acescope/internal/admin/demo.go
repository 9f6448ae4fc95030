package admin

import (
	"context"
	"errors"
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
	"acescope/views/overview"
)

// Seeds of the training and the evaluation problems, and the number of evaluation problems.
const (
	demoSeed     = 1
	demoEvalSeed = 2
	demoEval     = 60
)

// Defaults of the demo: the number of training problems, and the minimum duration of a phase.
const (
	demoTasks = 120
	demoPace  = 400 * time.Millisecond
)

func DemoCommand(a *cli.App) *cobra.Command {
	var pace time.Duration
	var tasks int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Open the console on an experiment with the built-in learner",
		Long: "Start an experiment with the built-in learner on generated finance problems and open the console on it.\n" +
			"The demo needs no language model, no API key and no network. Every phase takes at least --pace.\n" +
			"It starts low because the learner ignores formulas that prompts state; \"acescope experiment show\" prints\n" +
			"the accuracy of a program that reads them.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tasks < 1 || pace < 0 {
				return cli.UsageError("--tasks must be above 0 and --pace 0 or more")
			}
			a.Settings.Observe = cli.ObserveOff // records of agents do not belong to the demo
			return openConsole(a, cmd.Context(), func(ctx context.Context, e *engine.Engine) error {
				if err := startDemo(a, ctx, e, tasks, pace); !errors.Is(err, errRunning) {
					return err
				}
				return nil
			})
		},
	}
	cmd.Flags().DurationVar(&pace, "pace", demoPace, "minimum duration of every phase")
	cmd.Flags().IntVar(&tasks, "tasks", demoTasks, "number of training problems")
	return cmd
}

var errRunning = errors.New("an experiment is running already")

// startDemo starts the experiment. It returns errRunning if an experiment is running in the namespace.
func startDemo(a *cli.App, ctx context.Context, e *engine.Engine, tasks int, pace time.Duration) error {
	running := `ExecutionStatus = "Running" AND WorkflowType = "` + ace.ExperimentWorkflow + `"`
	open, err := sourceruns.Count(ctx, e.Client, running)
	if err != nil {
		return err
	}
	if open > 0 {
		return errRunning
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
	launch, err := runs.ParseLaunch(a, []string{"--dataset", train, "--eval", eval, "--pace", pace.String(),
		"--experiment", overview.DemoPrefix + time.Now().Format("150405")})
	if err != nil {
		return err
	}
	_, err = launch.Start(ctx, e)
	return err
}

// WriteProblems writes n generated problems to a new file.
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
		Use:   "problems",
		Short: "Write a data set of labeled finance problems, generated from a seed",
		Example: "acescope problems --count 300 --seed 1 > train.jsonl\n" +
			"acescope problems --count 100 --seed 2 > held-out.jsonl",
		RunE: func(*cobra.Command, []string) error {
			if n < 1 {
				return cli.UsageError("--count %d: must be above 0", n)
			}
			return problems.WriteJSONL(a.Out, problems.Finance(seed, n))
		},
	}
	cmd.Flags().IntVar(&n, "count", 100, "number of problems")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "seed of the generator; equal seeds generate equal problems")
	return cmd
}
