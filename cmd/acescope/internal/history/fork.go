package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
	"acescope/engine/temporal/historyfile"
	"acescope/sources/detail"
	"acescope/views/console"
)

// forkFlags are the flags of acescope fork.
type forkFlags struct {
	at               int64
	phase            string
	prompt, file     string
	model, provider  string
	playbook, branch string
	set              []string
	yes, follow, dry bool
	changed          func(string) bool
}

func ForkCommand(a *cli.App) *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use:   "fork TASK|TASK@RUN|FILE",
		Short: "Run a task again from a point, with something changed; the original stays as it is",
		Long: "Starts a new run that takes over what the original had recorded before the point, and executes anew what comes\n" +
			"after it. With --at everything up to that event counts; a phase that had begun there is executed anew from its\n" +
			"begin. TASK@RUN is one of several runs of an id, FILE an exported history (FILE#2 the second in it). The fork's playbook delta goes to a line of its own unless --branch names one.\n" +
			"It says what will be executed, with which model and at what cost, and asks; --yes is for scripts.",
		Example: "acescope fork finance-1-e1-0042 --phase reflector --model other\n" +
			"acescope fork finance-1-e1-0042 --at 16 --prompt-file better.txt --yes --follow --json\n" +
			"acescope fork bug-report.json --phase generator --playbook finance-1 --set label=12.50",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.changed = cmd.Flags().Changed
			return forkRun(a, cmd.Context(), args[0], f)
		},
	}
	fs := cmd.Flags()
	fs.Int64Var(&f.at, "at", 0, "the last event that counts")
	fs.StringVar(&f.phase, "phase", "", "the first phase that is executed anew: generator, skills, reflector, curator, persist")
	fs.StringVar(&f.model, "model", "", "another model")
	fs.StringVar(&f.provider, "provider", "", "another provider, for every step; blueprint:NAME is a program of yours")
	fs.StringVar(&f.prompt, "prompt", "", "another prompt")
	fs.StringVar(&f.file, "prompt-file", "", "another prompt, from a file; - is standard input")
	fs.StringVar(&f.playbook, "playbook", "", "another playbook: a file, the hash of a version, or a line of playbooks for its newest; empty for none")
	fs.StringVar(&f.branch, "branch", "", "merge the delta into this line of playbooks; empty: into none (default: a line of its own)")
	fs.StringArrayVar(&f.set, "set", nil, "another field of the input, as key=value: "+strings.Join(fork.Keys(), ", "))
	fs.BoolVar(&f.yes, "yes", false, "do not ask")
	fs.BoolVar(&f.dry, "dry-run", false, "say what would be done, and start nothing")
	fs.BoolVar(&f.follow, "follow", false, "wait for the fork's end and show how it ended")
	cmd.MarkFlagsMutuallyExclusive("at", "phase")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "follow")
	cmd.MarkFlagsMutuallyExclusive("prompt", "prompt-file")
	a.AgentDirsFlag(fs)
	runs.MustComplete(cmd, "provider", func(p0 *cobra.Command, p1 []string, p2 string) ([]string, cobra.ShellCompDirective) {
		return runs.CompleteProviders(a, p0, p1, p2)
	})
	runs.MustComplete(cmd, "set", func(p0 *cobra.Command, p1 []string, p2 string) ([]string, cobra.ShellCompDirective) {
		return runs.CompleteSettings(a, p0, p1, p2)
	})
	return cmd
}

// fields lists what the flags change.
func (f forkFlags) fields() ([]console.Field, error) {
	var out []console.Field
	for name, value := range map[string]string{"model": f.model, "provider": f.provider, "prompt": f.prompt, "playbook": f.playbook, "branch": f.branch} {
		if f.changed(name) {
			out = append(out, console.Field{Name: name, Value: value})
		}
	}
	if f.changed("prompt-file") {
		text, err := cli.ReadFile(f.file, maxPromptFile)
		if err != nil {
			return nil, err
		}
		out = append(out, console.Field{Name: "prompt", Value: string(text)})
	}
	for _, s := range f.set {
		setting, err := fork.ParseSetting(s)
		if err != nil {
			return nil, cli.UsageError("--set: %w", err)
		}
		out = append(out, console.Field{Name: setting.Key, Value: setting.Value})
	}
	return out, nil
}

// maxPromptFile is the largest prompt that steps read.
const maxPromptFile = 16 << 20

// ForkLine is a fork that was started.
type ForkLine struct {
	Type       string                    `json:"type"`              // fork
	DryRun     bool                      `json:"dry_run,omitempty"` // nothing was started; then there are no ids
	TaskID     string                    `json:"task_id,omitempty"`
	WorkflowID string                    `json:"workflow_id,omitempty"`
	RunID      string                    `json:"run_id,omitempty"`
	Of         string                    `json:"of"`
	OfRun      string                    `json:"of_run"`
	Event      int64                     `json:"event"`
	Phase      ace.Phase                 `json:"phase"`
	Within     bool                      `json:"within_phase,omitempty"`
	Changed    map[string]ace.ForkChange `json:"changed"`
	Taken      []ace.Phase               `json:"taken_over"`
	Anew       []forkStep                `json:"anew"`
	Estimate   *ace.Usage                `json:"estimate,omitempty"` // where it may cost money
	Branch     string                    `json:"branch"`             // "" where the delta is only recorded, and where a dry run would make one
	// Of a cluster: what its workers must have kept, which is not checked.
	Needs []forkNeed `json:"unchecked_needs,omitempty"`
}

type forkNeed struct {
	What string `json:"what"`
	Here bool   `json:"here"` // in this data directory
}

type forkStep struct {
	Phase    ace.Phase `json:"phase"`
	Provider string    `json:"provider,omitempty"`
	Model    string    `json:"model,omitempty"`
}

func forkRun(a *cli.App, ctx context.Context, name string, f forkFlags) error {
	if f.changed("at") == f.changed("phase") {
		return cli.UsageError("where? give --at EVENT or --phase PHASE")
	}
	fields, err := f.fields()
	if err != nil {
		return err
	}
	here := a.Cluster() == nil // whoever does not have what a cluster's runs need must not serve them
	e, done, err := a.Open(ctx, here && !f.dry, here && !f.dry)
	if err != nil {
		return err
	}
	defer done()
	o, err := original(a, ctx, e, name)
	if err != nil {
		return err
	}
	p, err := PlanFork(a, ctx, e, o, fork.Point{Event: f.at, Phase: ace.Phase(f.phase)}, fields)
	if err != nil {
		return err
	}
	about, err := AboutCluster(ctx, e, p)
	if err != nil {
		return err
	}
	prepared := PreparedFork(e, p, about)
	if f.dry {
		return wouldFork(a, p, prepared, about)
	}
	if f.yes {
		for _, w := range about.warnings() {
			fmt.Fprintln(a.Err, "acescope: "+cli.SafeText(w))
		}
	}
	if err := a.Confirm(ctx, prepared, f.yes); err != nil {
		return err
	}
	started, err := e.StartFork(ctx, p)
	if err != nil {
		return err
	}
	if err := saidFork(a, p, started, about); err != nil {
		return err
	}
	return afterFork(a, ctx, e, p, started, f.follow)
}

// original reads the history of a run, from the server or from a file.
func original(a *cli.App, ctx context.Context, e *engine.Engine, name string) (*fork.Original, error) {
	foreign := func(err error) error {
		if errors.Is(err, fork.ErrForeign) {
			return fmt.Errorf("%s: %w", name, err)
		}
		return err
	}
	if path, n, ok := historyNamed(name); ok {
		events, err := fileEvents(path, n)
		if err != nil {
			return nil, err
		}
		if s, err := a.FileCodec(); err != nil {
			return nil, err
		} else if s != nil {
			s.Events(ctx, events)
		}
		o, err := fork.Read("", "", events)
		return o, foreign(err)
	}
	run, err := cli.ResolveRun(ctx, e.Client, name)
	if err != nil {
		return nil, err
	}
	exec := run.GetWorkflowExecutionInfo().GetExecution()
	events, err := runs.HistoryOf(ctx, e.Client, exec.GetWorkflowId(), exec.GetRunId())
	if err != nil {
		return nil, err
	}
	o, err := fork.Read(exec.GetWorkflowId(), exec.GetRunId(), events)
	return o, foreign(err)
}

// wouldFork says what a fork would do.
func wouldFork(a *cli.App, p *fork.Plan, prepared console.Prepared, about clusterFork) error {
	if a.JSON {
		line := forkLineOf(p, about)
		line.DryRun = true
		if !p.OwnBranch {
			line.Branch = p.Input.Branch
		}
		return cli.NewLines(a.Out).Write(line)
	}
	out := cli.NewLines(a.Out)
	for _, l := range prepared.Lines {
		fmt.Fprintln(out.Buf, cli.SafeText(l))
	}
	return out.Flush()
}

// historyNamed tells whether a name is that of a file, and which history of it: FILE, or
// FILE#2. n is 0 where none is named.
func historyNamed(name string) (path string, n int, ok bool) {
	regular := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().IsRegular()
	}
	if name == "-" || regular(name) {
		return name, 0, true
	}
	if at := strings.LastIndexByte(name, '#'); at > 0 && regular(name[:at]) {
		if n, err := strconv.Atoi(name[at+1:]); err == nil && n > 0 {
			return name[:at], n, true
		}
	}
	return "", 0, false
}

// fileEvents reads the n-th history of a file, from 1; 0 for the only one.
func fileEvents(path string, n int) ([]*historypb.HistoryEvent, error) {
	data, err := cli.ReadFile(path, historyfile.MaxBytes)
	if err != nil {
		return nil, err
	}
	all, err := historyfile.Read(bytes.NewReader(data))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case n == 0 && len(all) != 1:
		return nil, cli.UsageError("%s holds %d histories; a fork has one original: name it as FILE#1 to FILE#%d", path, len(all), len(all))
	case n > len(all):
		return nil, cli.NotFound("%s holds %d histories: there is no number %d", path, len(all), n)
	}
	return all[max(n-1, 0)].Events, nil
}

func saidFork(a *cli.App, p *fork.Plan, f engine.Forked, about clusterFork) error {
	if !a.JSON {
		_, err := fmt.Fprintf(a.Out, "%s is forked from %s at event %d; executes anew: %s; merges into %s\n", f.TaskID, p.Name(), p.Event,
			phaseList(anewPhases(p)), orNone(f.Branch))
		return err
	}
	line := forkLineOf(p, about)
	line.TaskID, line.WorkflowID, line.RunID, line.Branch = f.TaskID, f.WorkflowID, f.RunID, f.Branch
	return cli.NewLines(a.Out).Write(line)
}

func forkLineOf(p *fork.Plan, about clusterFork) ForkLine {
	line := ForkLine{Type: "fork", Of: p.WorkflowID, OfRun: p.RunID, Event: p.Event, Phase: p.Phase, Within: p.Within, Changed: p.Changed,
		Taken: p.Reused}
	if line.Taken == nil {
		line.Taken = []ace.Phase{}
	}
	for _, s := range p.Rerun {
		line.Anew = append(line.Anew, forkStep{s.Phase, s.Provider, s.Model})
	}
	if p.Costs() {
		line.Estimate = &p.Estimate
	}
	for _, n := range about.needs {
		line.Needs = append(line.Needs, forkNeed{n.What, n.Here})
	}
	return line
}

func anewPhases(p *fork.Plan) (list []ace.Phase) {
	for _, s := range p.Rerun {
		list = append(list, s.Phase)
	}
	return list
}

func orNone(branch string) string {
	if branch == "" {
		return "no line of playbooks"
	}
	return branch
}

// afterFork waits for the fork's end where that was asked for, or where nobody else would
// carry it on: the process that hosts the server must stay.
func afterFork(a *cli.App, ctx context.Context, e *engine.Engine, p *fork.Plan, f engine.Forked, follow bool) error {
	if !follow && e.Mode() != engine.Embedded {
		return nil
	}
	if !follow {
		fmt.Fprintf(a.Err, "acescope: no other acescope serves this data directory: staying until %s has ended\n", f.TaskID)
	}
	var result ace.TaskResult
	if err := e.Client.GetWorkflow(ctx, f.WorkflowID, f.RunID).Get(ctx, &result); err != nil {
		runs.Interrupted(a, ctx, f.TaskID)
		return runs.TaskError(f.TaskID, err)
	}
	if !follow {
		return nil
	}
	d, err := detail.Read(ctx, e.Client, f.WorkflowID, f.RunID)
	if err != nil {
		return err
	}
	if !a.JSON {
		return runs.PrintShow(a.Out, d, runs.LineOf(d))
	}
	in := p.Input
	in.TaskID = f.TaskID
	return runs.TaskLines(a, in, d, result)
}
