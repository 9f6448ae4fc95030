package runs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/playbook"
	"acescope/sources/runs"
)

// Launch is a run or an experiment that arguments of acescope run describe. The console starts its runs by a
// Launch, so that defaults and checks are those of the command.
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

// CheckNames returns why data sets, phase prompts and the experiment that the arguments name cannot be used.
// Without an engine it looks at files only.
func (l *Launch) CheckNames(ctx context.Context, e *engine.Engine) (wrong []error) {
	f := &l.flags
	add := func(flag string, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	add("dataset", checkDataset(ctx, e, f.dataset, dataSource))
	add("eval", checkDataset(ctx, e, f.eval, evalSource))
	if e == nil {
		return wrong
	}
	for _, phase := range ace.PromptedPhases() {
		if name := f.prompts[phase]; name != "" && !strings.HasPrefix(name, "@") {
			_, err := FindPhasePrompt(ctx, e.Prompts, phase, name)
			add(fmt.Sprintf("phase-prompt %s=%s", phase, name), err)
		}
	}
	if f.playbook != "" && !IsPlaybookPath(f.playbook) && !IsFile(f.playbook) {
		_, err := FindPlaybook(e.Books, f.playbook)
		add("playbook", err)
	}
	if f.ExperimentID != "" && l.prompt == "" {
		if _, _, err := e.Newest(ctx, ace.ExperimentWorkflowID(f.ExperimentID)); err == nil {
			add("experiment", fmt.Errorf("%s exists; choose another name", f.ExperimentID))
		}
	}
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

// Choices lists the known values of a field of a run: dataset, provider, model, model.PROVIDER, playbook,
// experiment or prompts.PHASE. It leaves out what it cannot read.
func Choices(a *cli.App, ctx context.Context, e *engine.Engine, field string) (list []string) {
	if phase, ok := strings.CutPrefix(field, "prompts."); ok {
		all, _ := e.Prompts.All(ctx)
		for _, p := range all {
			if string(p.Phase) == phase {
				list = append(list, p.PhasePrompt.String())
			}
		}
		return list
	}
	field, provider, _ := strings.Cut(field, ".")
	switch field {
	case "dataset":
		for _, id := range experimentIDs(ctx, e) {
			list = append(list, experimentSet+id)
		}
	case "experiment":
		list = experimentIDs(ctx, e)
	case "provider":
		for _, name := range providerNames(a.Quiet(io.Discard), ctx) {
			name, _, _ := strings.Cut(name, "\t")
			list = append(list, name)
		}
	case "model":
		for _, p := range allProviders(a) {
			if name := p.DefaultModel(); name != "" && (provider == "" || provider == p.Name()) {
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
