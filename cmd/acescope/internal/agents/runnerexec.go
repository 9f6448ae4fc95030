package agents

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/store/artifact"
	"acescope/engine/tasks/executor"
	"acescope/engine/tasks/run"
)

func runnerExecCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "exec",
		Short: "Execute one invocation from standard input here, and print its result as JSON",
		Long: "Reads an invocation of mode execute (schema 2.1 or 2.2) from standard input, executes its program here without any server,\n" +
			"and prints the result as one line of JSON. It exits with 0 where the run has completed, else with 1: so it can be the\n" +
			"executor of another runner. Only what does not fit into the result is kept, in the data directory.",
		Example: `echo '{"schema_version":"2.1","mode":"execute","session_id":"ses_1","parameters":{"n":1},"task_blueprint":{"name":"x","command":"cat"}}' | acescope runner exec`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runnerExec(a, cmd.Context()) },
	}
}

// ResultLine is what came of a run.
type ResultLine struct {
	Type string `json:"type"` // result
	run.Result
}

func runnerExec(a *cli.App, ctx context.Context) error {
	in, err := executor.ReadInvocation(os.Stdin)
	if err != nil {
		return cli.UsageError("%v", err)
	}
	if in.Mode != executor.Execute {
		return cli.UsageError("invocation: $.mode: %s is for the executor of an agent; this one executes programs", in.Mode)
	}
	dir, err := a.DataDir()
	if err != nil {
		return err
	}
	store, err := artifact.Open(filepath.Join(dir, "artifacts"))
	if err != nil {
		return err
	}
	job := executor.Job{RunID: invocationRunID(in), SessionID: in.SessionID, Blueprint: *in.Task, Parameters: in.Parameters, ProjectDir: in.ProjectDir}
	r := executor.New(executor.Options{Artifacts: store, Check: engine.CheckParameters}).Run(ctx, job)
	if err := cli.NewLines(a.Out).Write(ResultLine{"result", r}); err != nil {
		return err
	}
	if r.Status != run.Completed {
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("the run has %s: %s", r.Status, r.Error)}
	}
	return nil
}

// invocationRunID is the run's id, where the one who asks says it, or another.
func invocationRunID(in executor.Invocation) string {
	var meta struct {
		RunID string `json:"run_id"`
	}
	if json.Unmarshal(in.Metadata, &meta) == nil && run.ValidName(meta.RunID) {
		return meta.RunID
	}
	id := make([]byte, 6)
	_, _ = rand.Read(id) // never fails
	return "exec_" + hex.EncodeToString(id)
}
