package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
	"acescope/sources/cluster"
	sourceruns "acescope/sources/runs"
)

// forkFlags are the flags of the fork command.
type forkFlags struct {
	at               fork.Point
	promptFile       string
	set              []string
	yes, follow, dry bool
}

func ForkCommand(a *cli.App) *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use:   "fork TASK|TASK@RUN|FILE",
		Short: "Run a task again from a point, with changes; the original does not change",
		Long: "Starts a run that reuses the results recorded before the point and reruns the phases after it. With --at\n" +
			"it keeps everything up to that event; a phase that started before the event is rerun from its start.\n" +
			"TASK@RUN is one of several runs of a task, FILE an exported history (FILE#2 the second history in it).\n" +
			"The fork merges its playbook delta into a new branch unless --branch names one. The command shows what\n" +
			"will rerun, with which model and at what cost, and asks for confirmation; scripts use --yes.",
		Example: "acescope fork finance-1-e1-0042 --phase reflector --model other\n" +
			"acescope fork finance-1-e1-0042 --at 16 --prompt-file better.txt --yes --follow --json\n" +
			"acescope fork bug-report.json --phase generator --playbook finance-1 --set label=12.50",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return forkRun(a, cmd, args[0], f) },
	}
	runs.PointFlags(cmd, &f.at, "last event to keep", "first phase to rerun")
	fs := cmd.Flags()
	fs.String("model", "", "use another model")
	fs.String("provider", "", "use another provider for every phase; blueprint:NAME is your own program")
	fs.String("prompt", "", "use another prompt")
	fs.StringVar(&f.promptFile, "prompt-file", "", "use the prompt in this file; - is standard input")
	fs.String("playbook", "",
		"use another playbook: a file, the hash of a version, or a branch for its newest version; empty for none")
	fs.String("branch", "",
		"merge the delta into this playbook branch; empty to only record it (default: a new branch)")
	fs.StringArrayVar(&f.set, "set", nil, "change another input field, as KEY=VALUE: "+strings.Join(fork.Keys(), ", "))
	fs.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	fs.BoolVar(&f.dry, "dry-run", false, "show what the fork would do without starting it")
	fs.BoolVar(&f.follow, "follow", false, "wait until the fork closes and show its result")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "follow")
	cmd.MarkFlagsMutuallyExclusive("prompt", "prompt-file")
	a.AgentDirsFlag(fs)
	runs.MustComplete(cmd, "provider", runs.CompleteProviders(a))
	runs.MustComplete(cmd, "set", runs.CompleteSettings(a))
	return cmd
}

// maxPromptFile is the largest prompt that the phases read, in bytes.
const maxPromptFile = 16 << 20

// changes returns the input fields that the flags change.
func (f forkFlags) changes(cmd *cobra.Command) ([]sourceruns.Field, error) {
	var out []sourceruns.Field
	for _, name := range []string{"model", "provider", "prompt", "playbook", "branch"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed {
			out = append(out, sourceruns.Field{Name: name, Value: flag.Value.String()})
		}
	}
	if f.promptFile != "" {
		text, err := cli.ReadFile(cmd.Context(), f.promptFile, maxPromptFile)
		if err != nil {
			return nil, err
		}
		out = append(out, sourceruns.Field{Name: "prompt", Value: string(text)})
	}
	for _, s := range f.set {
		setting, err := fork.ParseSetting(s)
		if err != nil {
			return nil, cli.UsageError("--set: %w", err)
		}
		out = append(out, sourceruns.Field{Name: setting.Key, Value: setting.Value})
	}
	return out, nil
}

// ForkLine is a fork. A dry run has no IDs.
type ForkLine struct {
	Type           string `json:"type"` // fork
	DryRun         bool   `json:"dry_run,omitempty"`
	TaskID         string `json:"task_id,omitempty"`
	ForkWorkflowID string `json:"workflow_id,omitempty"`
	ForkRunID      string `json:"run_id,omitempty"`
	*fork.Plan
	Estimate *ace.Usage `json:"estimate,omitempty"` // if the fork may cost money
	// Branch is "" if the delta is only recorded, or in a dry run if the branch would be new.
	Branch string `json:"branch"`
	// Needs are artifacts that the workers of a cluster must have, which is not checked.
	Needs []engine.ForkNeed `json:"unchecked_needs,omitempty"`
}

func forkRun(a *cli.App, cmd *cobra.Command, name string, f forkFlags) error {
	ctx := cmd.Context()
	changes, err := f.changes(cmd)
	if err != nil {
		return err
	}
	// On a cluster this process must not serve runs: it may lack their artifacts.
	serve := a.Cluster() == nil && !f.dry
	e, done, err := a.Open(ctx, serve, serve)
	if err != nil {
		return err
	}
	defer done()
	o, err := readOriginal(a, ctx, e, name)
	if err != nil {
		return err
	}
	p, err := PlanFork(a, ctx, e, o, f.at, changes)
	if err != nil {
		return err
	}
	about, err := AboutCluster(ctx, e, p)
	if err != nil {
		return err
	}
	p.Reused = append([]ace.Phase{}, p.Reused...) // never null in JSON
	line := ForkLine{Type: "fork", DryRun: f.dry, Plan: p, Needs: about.needs}
	if p.Costs() {
		line.Estimate = &p.Estimate
	}
	if !f.dry {
		return startFork(a, ctx, e, line, about, f)
	}
	if !p.OwnBranch {
		line.Branch = p.Input.Branch
	}
	out := runs.NewOutput(a)
	if a.JSON {
		return out.Write(line)
	}
	for _, l := range PreparedFork(e, p, about).Lines {
		out.Printf("%s", l)
	}
	return out.Flush()
}

// startFork confirms and starts a fork. It waits for it with --follow, or if no other process serves it.
func startFork(
	a *cli.App, ctx context.Context, e *engine.Engine, line ForkLine, about clusterFork, f forkFlags,
) error {
	p := line.Plan
	if f.yes {
		for _, w := range about.warnings {
			runs.Warn(a, "%s", w)
		}
	}
	if err := a.Confirm(ctx, PreparedFork(e, p, about), f.yes); err != nil {
		return err
	}
	started, err := e.StartFork(ctx, p)
	if err != nil {
		return err
	}
	line.TaskID, line.ForkWorkflowID, line.ForkRunID = started.TaskID, started.WorkflowID, started.RunID
	line.Branch = started.Branch
	var rerun []ace.Phase
	for _, s := range p.Rerun {
		rerun = append(rerun, s.Phase)
	}
	if err := runs.Report(a, line, "%s is forked from %s at event %d; will rerun: %s; merges into %s",
		started.TaskID, p.Name(), p.Event, formatPhases(rerun), cmp.Or(started.Branch, "no branch")); err != nil {
		return err
	}
	if !f.follow {
		if e.Mode() != engine.Embedded {
			return nil
		}
		runs.Warn(a, "no other process runs workers for this data directory: this one waits until %s closes",
			started.TaskID)
	}
	in := p.Input
	in.TaskID = started.TaskID
	return runs.FollowTask(a, ctx, e, in, started.RunID, f.follow)
}

// readOriginal reads the run to fork from the server or from a file.
func readOriginal(a *cli.App, ctx context.Context, e *engine.Engine, name string) (*fork.Original, error) {
	var workflowID, runID string
	var events []*historypb.HistoryEvent
	path, _, err := cli.SplitHistoryName(name)
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		err, path = nil, "" // the name of a run
	}
	if err != nil {
		return nil, err
	}
	if path != "" && cli.IsHistoryFile(path) {
		h, err := a.HistoryOf(ctx, name, "")
		if err := cmp.Or(err, h.ReadErr); err != nil {
			return nil, err
		}
		events = h.Events
	} else {
		run, err := sourceruns.Resolve(ctx, e.Client, name)
		if err != nil {
			return nil, err
		}
		exec := run.GetWorkflowExecutionInfo().GetExecution()
		workflowID, runID = exec.GetWorkflowId(), exec.GetRunId()
		if events, err = cluster.ReadHistory(ctx, e.Client, e.Namespace(), workflowID, runID); err != nil {
			return nil, err
		}
	}
	o, err := fork.Read(workflowID, runID, events)
	if errors.Is(err, fork.ErrForeign) {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return o, err
}
