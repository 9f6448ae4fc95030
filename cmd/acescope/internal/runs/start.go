package runs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/engine/learning/problems"
	"acescope/sources/runs"
)

// Launch is a run or an experiment as arguments of acescope run describe it. The console starts what its form describes
// through it, so that the defaults and the checks are those of the command.
type Launch struct {
	app      *cli.App // writes its warnings to warnings
	warnings bytes.Buffer
	prompt   string
	flags    runFlags
}

// ParseLaunch parses and checks arguments of acescope run. It reads no data set and no playbook.
func ParseLaunch(a *cli.App, args []string) (*Launch, error) {
	l := &Launch{}
	l.app = a.Quiet(&l.warnings)
	cmd := runCommand(l.app, &l.flags)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, cli.UsageError("%w", err)
	}
	if err := l.flags.applyPreset(cmd.Flags()); err != nil {
		return nil, err
	}
	l.prompt = strings.Join(cmd.Flags().Args(), " ")
	err := l.flags.check(l.prompt)
	if err == nil && l.flags.ExperimentID != "" {
		err = checkExperimentID(l.flags.ExperimentID)
	}
	if err != nil {
		return nil, err
	}
	return l, l.flags.resolve(l.app)
}

// Warnings returns what the command would write to standard error, a warning per line.
func (l *Launch) Warnings() []string {
	return strings.FieldsFunc(strings.ReplaceAll(l.warnings.String(), "acescope: ", ""),
		func(r rune) bool { return r == '\n' })
}

// Start starts the run or the experiment and returns it.
func (l *Launch) Start(ctx context.Context, e *engine.Engine) (r runs.Run, err error) {
	if l.prompt != "" {
		in, err := taskInput(l.app, ctx, e, l.prompt, l.flags)
		if err != nil {
			return r, err
		}
		r = runs.Run{WorkflowID: ace.WorkflowID(in.TaskID), TaskID: in.TaskID, Type: ace.TaskWorkflow}
		r.RunID, err = e.StartTask(ctx, in)
		return r, err
	}
	in, partial, err := experimentInput(l.app, ctx, e, l.flags)
	if err = cmp.Or(err, partial); err != nil {
		return r, fmt.Errorf("--dataset: %w", err)
	}
	r = runs.Run{WorkflowID: ace.ExperimentWorkflowID(in.ExperimentID), Experiment: in.ExperimentID,
		Type: ace.ExperimentWorkflow}
	r.RunID, err = e.StartExperiment(ctx, in)
	return r, err
}

// problemSet begins the names of data sets of generated problems: problems:N or problems:N:SEED.
const problemSet = "problems:"

// maxProblems bounds a data set of generated problems.
const maxProblems = 100_000

// openDataset opens a data set: a file, standard input or generated problems.
func openDataset(ctx context.Context, name string) (io.ReadCloser, error) {
	spec, generated := strings.CutPrefix(name, problemSet)
	if !generated {
		file, err := cli.OpenFile(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("cannot read the data set: %w", err)
		}
		return file, nil
	}
	count, seedText, _ := strings.Cut(spec, ":")
	n, err := strconv.Atoi(count)
	seed, seedErr := strconv.ParseUint(cmp.Or(seedText, "1"), 10, 64)
	if err != nil || seedErr != nil || n < 1 || n > maxProblems {
		return nil, cli.UsageError("data set %s: use %sN or %sN:SEED, with N from 1 to %d", name, problemSet,
			problemSet, maxProblems)
	}
	var b bytes.Buffer
	if err := problems.WriteJSONL(&b, problems.Finance(seed, n)); err != nil {
		return nil, err
	}
	return io.NopCloser(&b), nil
}

// CheckFiles returns why data sets that the arguments name cannot be opened.
func (l *Launch) CheckFiles(ctx context.Context) (wrong []error) {
	check := func(flag, name string) {
		if name == "" {
			return
		}
		file, err := openDataset(ctx, name)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--%s: %w", flag, err))
			return
		}
		_ = file.Close() // nothing was written
	}
	check("dataset", l.flags.dataset)
	check("eval", l.flags.eval)
	return wrong
}

// LaunchDefaults returns the default of each flag of acescope run.
func LaunchDefaults(a *cli.App) map[string]string {
	defaults := map[string]string{}
	runCommand(a.Quiet(io.Discard), &runFlags{}).Flags().VisitAll(func(f *pflag.Flag) {
		defaults[f.Name] = strings.TrimSuffix(f.DefValue, "[]") // of a list
	})
	return defaults
}

// Choices lists the known values of a field of a run: provider, model, playbook or prompts.PHASE. It leaves out what it cannot read.
func Choices(a *cli.App, ctx context.Context, e *engine.Engine, field string) (list []string) {
	if phase, ok := strings.CutPrefix(field, "prompts."); ok {
		named, _ := e.Prompts.List(ctx)
		list = []string{"default"}
		for _, p := range named {
			if string(p.Phase) == phase {
				list = append(list, p.PhasePrompt.Name)
			}
		}
		return list
	}
	switch field {
	case "provider":
		for _, name := range providerNames(a.Quiet(io.Discard), ctx) {
			name, _, _ := strings.Cut(name, "\t")
			list = append(list, name)
		}
	case "model":
		for _, p := range allProviders(a) {
			if name := p.DefaultModel(); name != "" {
				list = append(list, name)
			}
		}
	case "playbook":
		branches, _ := e.Books.Branches()
		slices.SortFunc(branches, func(a, b playbook.Branch) int { return b.At.Compare(a.At) })
		for _, b := range branches {
			list = append(list, b.Name)
		}
	}
	return list
}
