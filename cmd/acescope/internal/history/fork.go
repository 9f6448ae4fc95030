package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/flowfork"
	"acescope/engine/temporal/fork"
	"acescope/engine/temporal/replay"
	"acescope/engine/workflows"
	"acescope/sources/cluster"
	sourceruns "acescope/sources/runs"
)

type forkFlags struct {
	at               fork.Point
	step             string // of a run of a flow
	promptFile       string
	phasePrompts     []string
	set              []string
	yes, follow, dry bool
	query            string // of the runs to fork, "" for one run
	wait             bool   // for all forks of the query
	limit            int    // largest number of runs of the query
}

// ForkCommand returns the command fork. ofFlow forks a run of a flow.
func ForkCommand(a *cli.App, ofFlow ForkFlow) *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use:   "fork TASK|TASK@RUN|FILE|-q QUERY",
		Short: "Run a task or a flow again from a point, with changes; the original does not change",
		Long: "Starts a run that reuses the results recorded before the point and reruns the phases after it. With --at\n" +
			"it keeps everything up to that event; a phase that started before the event is rerun from its start.\n" +
			"TASK@RUN is one of several runs of a task, FILE an exported history (FILE#2 the second history in it).\n" +
			"The fork merges its playbook delta into a new branch unless --branch names one. The command shows what\n" +
			"will rerun, with which model and at what cost, and asks for confirmation; scripts use --yes.\n\n" +
			"--query forks all tasks that match, from --phase or the generator, and records their deltas only. With --wait\n" +
			"it then shows which answers the changes fixed and which they broke; the exit code is 1 if a fork failed, and\n" +
			"4 if an answer is broken.\n\n" +
			"A fork of a run of a flow reuses what the run got from outside before --from STEP: results of operations\n" +
			"that have the same parameters in the fork, times, random values and decisions. --set inputs.NAME=VALUE\n" +
			"changes an input, --prompt or --prompt-file the prompt of that step in all its executions (expressions as\n" +
			"in the file), --flow FILE takes all steps and prompts from another file.",
		Example: "acescope fork finance-1-e1-0042 --phase reflector --model other\n" +
			"acescope fork finance-1-e1-0042 --phase-prompt generator=brief\n" +
			"acescope fork finance-1-e1-0042 --at 16 --prompt-file better.txt --yes --follow --json\n" +
			"acescope fork bug-report.json --phase generator --playbook finance-1 --set label=12.50\n" +
			"acescope fork release-17 --from each/3/build --flow ./release.yaml --set 'inputs.version=1.2'\n" +
			"acescope fork code-review-8 --from review --prompt-file better.md\n" +
			"acescope fork -q 'wrong exp=finance-1' --model other --wait --yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if f.query != "" {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.query != "" {
				return forkQuery(a, cmd, f)
			}
			return forkRun(a, cmd, args[0], f, ofFlow)
		},
	}
	f.add(a, cmd)
	return cmd
}

func (f *forkFlags) add(a *cli.App, cmd *cobra.Command) {
	runs.PointFlags(cmd, &f.at, "last event to keep", "first phase to rerun")
	pointGiven := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if pointKnown, err := f.check(); pointKnown || err != nil {
			return err
		}
		return pointGiven(cmd, args)
	}
	fs := cmd.Flags()
	fs.StringVar(&f.step, "from", "",
		"first step to rerun, by its path in a run of a flow, such as each/3/build")
	fs.String("flow", "", "take the steps of a run of a flow from this file or flow")
	fs.String("model", "", "use another model")
	fs.String("provider", "", "use another provider for every phase; blueprint:NAME is your own program")
	fs.String("prompt", "", "use another prompt; of a run of a flow the prompt of the step --from")
	fs.StringVar(&f.promptFile, "prompt-file", "", "use the prompt in this file; - is standard input")
	fs.StringArrayVar(&f.phasePrompts, "phase-prompt", nil,
		runs.PhasePromptHelp+"; without --at and --phase, the first phase with one is the first to rerun")
	fs.String("playbook", "",
		"use another playbook: a file, the hash of a version, or a branch for its newest version; empty for none")
	fs.String("branch", "",
		"merge the delta into this playbook branch; empty to only record it (default: a new branch)")
	fs.StringArrayVar(&f.set, "set", nil, "change another input field, as KEY=VALUE: "+
		strings.Join(fork.Keys(), ", "))
	fs.StringVarP(&f.query, "query", "q", "", "fork all tasks that match, as in list")
	fs.BoolVar(&f.wait, "wait", false, "with --query: wait until the forks close and show the scoreboard")
	fs.IntVar(&f.limit, "limit", 0, "with --query: fork the newest N tasks only (default all)")
	fs.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	fs.BoolVar(&f.dry, "dry-run", false, "show what the fork would do without starting it")
	fs.BoolVar(&f.follow, "follow", false, "wait until the fork closes and show its result")
	for _, name := range []string{"playbook", "branch"} {
		fs.Lookup(name).Annotations = map[string][]string{cli.MayBeEmpty: nil}
	}
	cmd.MarkFlagsMutuallyExclusive("dry-run", "follow", "wait")
	cmd.MarkFlagsMutuallyExclusive("prompt", "prompt-file")
	a.AgentDirsFlag(fs)
	runs.MustComplete(cmd, "provider", runs.CompleteProviders(a))
	runs.MustComplete(cmd, "set", runs.CompleteSettings(a))
}

// check rejects flags that exclude each other. pointKnown reports whether no flag has to give the point.
func (f *forkFlags) check() (pointKnown bool, err error) {
	switch {
	case f.step != "" && (f.at != fork.Point{}):
		return false, cli.UsageError("--from excludes --at and --phase")
	case f.query == "" && (f.wait || f.limit != 0):
		return false, cli.UsageError("--wait and --limit need --query; use --follow for one run")
	case f.query != "" && (f.step != "" || f.follow || f.at.Event != 0):
		return false, cli.UsageError("--query excludes --at, --from and --follow; use --phase and --wait")
	case f.limit < 0:
		return false, cli.UsageError("--limit %d: must not be negative", f.limit)
	case f.step != "", len(f.phasePrompts) > 0:
		return true, nil
	case f.query != "" && f.at == fork.Point{}:
		f.at.Phase = ace.PhaseGenerator
		return true, nil
	}
	return false, nil
}

// open connects for a fork. On a cluster this process must not serve runs: it may lack their artifacts.
func (f forkFlags) open(a *cli.App, cmd *cobra.Command) (
	e *engine.Engine, changes []sourceruns.Field, err error,
) {
	if changes, err = f.changes(cmd); err != nil {
		return nil, nil, err
	}
	serve := a.Cluster() == nil && !f.dry
	e, err = a.Open(cmd.Context(), serve)
	return e, changes, err
}

// maxPromptFile is the largest prompt that the phases read, in bytes.
const maxPromptFile = 16 << 20

// changes returns the input fields that the flags change.
func (f forkFlags) changes(cmd *cobra.Command) ([]sourceruns.Field, error) {
	var out []sourceruns.Field
	for _, name := range []string{"model", "provider", "prompt", "playbook", "branch", "flow"} {
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
	for _, value := range f.phasePrompts {
		out = append(out, sourceruns.Field{Name: PhasePrompt, Value: value})
	}
	for _, s := range f.set {
		if name, value, ok := strings.Cut(s, "="); ok && strings.HasPrefix(name, InputKey) {
			out = append(out, sourceruns.Field{Name: name, Value: value})
			continue
		}
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

func forkRun(a *cli.App, cmd *cobra.Command, name string, f forkFlags, forkFlow ForkFlow) error {
	e, changes, err := f.open(a, cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	of, err := readOriginal(a, ctx, e, name)
	if err != nil {
		return err
	}
	if IsFlow(of.events) {
		return f.forkFlow(a, ctx, e, of, changes, forkFlow)
	}
	if f.step != "" || slices.ContainsFunc(changes, onlyOfFlow) {
		return cli.UsageError("--from, --flow and --set inputs.NAME are for runs of flows; use --phase")
	}
	o, err := fork.Read(of.workflowID, of.runID, of.events)
	if errors.Is(err, fork.ErrForeign) {
		err = fmt.Errorf("%s: %w%s", name, err, insteadOfFork(of))
	}
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
	line := ForkLine{DryRun: f.dry, Plan: p, Needs: about.needs}
	if p.Costs() {
		line.Estimate = &p.Estimate
	}
	if !f.dry {
		return startFork(a, ctx, e, line, about, f)
	}
	if !p.OwnBranch {
		line.Branch = p.Input.Branch
	}
	return ReportDry(a, line, PreparedFork(e, p, about).Lines)
}

// insteadOfFork says what works for a run that only its own workers can execute, or returns "".
func insteadOfFork(of original) string {
	own := replay.Verifier{Register: workflows.Register}
	if own.Unknown(replay.OriginOf(of.events).WorkflowType) == "" {
		return ""
	}
	return fmt.Sprintf("; its own workers continue it from an event, with the same input: "+
		"acescope reset %s --at EVENT --reason TEXT", of.workflowID)
}

// forkFlow forks a run of a flow, which has no phases.
func (f forkFlags) forkFlow(
	a *cli.App, ctx context.Context, e *engine.Engine, of original, changes []sourceruns.Field, do ForkFlow,
) error {
	switch {
	case f.at.Phase != "":
		return cli.UsageError("--phase: a run of a flow has no phases; use --from STEP or --at EVENT")
	case len(f.phasePrompts) > 0:
		return cli.UsageError("--phase-prompt: a run of a flow has no phases; use --prompt and --from STEP")
	}
	return do(a, ctx, e, FlowFork{WorkflowID: of.workflowID, Events: of.events, Changes: changes,
		At: flowfork.Point{Step: f.step, Event: f.at.Event}, Yes: f.yes, Dry: f.dry, Follow: f.follow})
}

// ReportDry writes what would be done: the JSON line, or lines of text.
func ReportDry(a *cli.App, line any, lines []string) error {
	return cli.Show(a, line, func() error { return a.Print(lines, false) })
}

// startFork confirms and starts a fork. It waits for it with --follow, or if no other process serves it.
func startFork(
	a *cli.App, ctx context.Context, e *engine.Engine, line ForkLine, about clusterFork, f forkFlags,
) error {
	p := line.Plan
	if f.yes {
		for _, w := range about.warnings {
			cli.Warn(a, "%s", w)
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
	if err := cli.Report(a, line, "%s is forked from %s at event %d; will rerun: %s; merges into %s",
		started.TaskID, p.Name(), p.Event, formatPhases(rerun),
		cmp.Or(started.Branch, "no branch")); err != nil {
		return err
	}
	if !f.follow {
		if e.Mode() != engine.Embedded {
			return nil
		}
		cli.Warn(a, "no other process runs workers for this data directory: this one waits until %s closes",
			started.TaskID)
	}
	in := p.Input
	in.TaskID = started.TaskID
	return runs.FollowTask(a, ctx, e, in, started.RunID, f.follow)
}

// FlowFork is a fork of a run of a flow to plan and start.
type FlowFork struct {
	WorkflowID       string // "" of a file
	Events           []*historypb.HistoryEvent
	At               flowfork.Point
	Changes          []sourceruns.Field // inputs.NAME, inputs.NAME: (JSON), prompt, flow (a file or name)
	Yes, Dry, Follow bool
}

type ForkFlow func(*cli.App, context.Context, *engine.Engine, FlowFork) error

// InputKey begins the keys of --set that change an input of a flow.
const InputKey = "inputs."

// onlyOfFlow reports whether only forks of runs of flows can change a field.
func onlyOfFlow(f sourceruns.Field) bool {
	return f.Name == "flow" || strings.HasPrefix(f.Name, InputKey)
}

// IsFlow reports whether a history is that of a run of a flow.
func IsFlow(events []*historypb.HistoryEvent) bool {
	return len(events) > 0 &&
		events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName() == flow.Workflow
}

type original struct {
	workflowID, runID string // "" of a file
	events            []*historypb.HistoryEvent
}

// readOriginal reads the run to fork from the server or from a file.
func readOriginal(a *cli.App, ctx context.Context, e *engine.Engine, name string) (o original, err error) {
	path, _, err := cli.SplitHistoryName(name)
	if cli.IsDir(path) {
		err, path = nil, "" // not a file: the name of a run
	}
	if err != nil {
		return o, err
	}
	if path != "" && cli.IsHistoryFile(path) {
		h, err := cli.HistoryOf(a, ctx, name, "")
		o.events = h.Events
		return o, cmp.Or(err, h.ReadErr)
	}
	run, err := sourceruns.Resolve(ctx, e.Client, name)
	if err != nil {
		return o, err
	}
	exec := run.GetWorkflowExecutionInfo().GetExecution()
	o.workflowID, o.runID = exec.GetWorkflowId(), exec.GetRunId()
	o.events, err = cluster.ReadHistory(ctx, e.Client, e.Namespace(), o.workflowID, o.runID)
	return o, err
}
