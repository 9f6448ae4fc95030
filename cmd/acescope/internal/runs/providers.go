package runs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/conffile"
	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/agent"
	"acescope/engine/temporal/fork"
)

// providerOf returns the provider of a phase and the flag that sets it.
func (f runFlags) providerOf(phase ace.Phase) (name, flag string) {
	if name := f.Steps[string(phase)]; name != "" {
		return name, "--phase " + string(phase) + "=" + name
	}
	return f.Provider, "--provider " + f.Provider
}

// allProviders returns the step providers, those of agents included.
func allProviders(a *cli.App) []model.Provider {
	return slices.Concat(a.Providers(), agent.Providers(a.AgentRunner()))
}

// checkProviders returns a usage error if a phase has no provider here that can execute it.
func (f *runFlags) checkProviders(a *cli.App) error {
	known := allProviders(a)
	if _, ok := ace.BlueprintOf(f.Provider); !ok {
		if err := f.checkProvider(f.Provider, "--provider "+f.Provider, known,
			a.Cluster() != nil); err != nil {
			return err
		}
	}
	for _, phase := range ace.PromptedPhases() {
		name, flag := f.providerOf(phase)
		var err error
		if blueprint, ok := ace.BlueprintOf(name); ok {
			err = CheckBlueprint(a, flag, blueprint, phase)
		} else if name != f.Provider {
			err = f.checkProvider(name, flag, known, a.Cluster() != nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkProvider checks that a provider is known, has a model and, without a cluster, is ready. Workers of
// a cluster may have what this process lacks.
func (f runFlags) checkProvider(name, flag string, known []model.Provider, cluster bool) error {
	var names []string
	for _, p := range known {
		if p.Name() != name {
			names = append(names, p.Name())
			continue
		}
		return CheckReady(p, flag, f.hasModel(name), cluster)
	}
	return cli.UsageError("%s: provider %q not found; known: %s, and blueprint:NAME",
		flag, name, strings.Join(names, ", "))
}

// CheckReady checks that a provider has a model and, without a cluster, is ready.
func CheckReady(p model.Provider, flag string, hasModel, cluster bool) error {
	if c, ok := p.(model.Checker); ok && !cluster && c.Ready() != nil {
		return cli.UsageError("%s: %s", flag, strings.TrimPrefix(c.Ready().Error(), p.Name()+": "))
	}
	if p.DefaultModel() == "" && !hasModel {
		return cli.UsageError(
			"%s needs a model: give --model, or model in [providers.%[1]s] of config.toml", p.Name())
	}
	return nil
}

// CheckBlueprint returns a usage error if a blueprint cannot execute a phase. It searches the directories
// of this command; the process that executes the phase checks again.
func CheckBlueprint(a *cli.App, flag, blueprint string, phase ace.Phase) error {
	l, err := a.Library()
	if err != nil {
		return err
	}
	if err := engine.CheckStep(cli.Blueprints{Library: l}, blueprint, phase); err != nil {
		return cli.UsageError("%s: %s", flag, cli.OneLine(err))
	}
	return nil
}

// checkGrader returns a usage error if nothing can grade: a judge needs the model of the reflector, a program
// must be in the configuration. Workers of a cluster may have programs that this process lacks.
func (f runFlags) checkGrader(a *cli.App, grader string) error {
	program, isProgram := grade.ProgramOf(grader)
	named := func(g conffile.Grader) bool { return g.Name == program }
	switch file := a.Settings.File; {
	case isProgram && a.Cluster() == nil && !slices.ContainsFunc(file.Graders, named):
		return cli.UsageError("the grader %s needs [graders.%s] with a command in %s",
			grader, program, file.Path)
	case grader != grade.Judge:
		return nil
	}
	name, _ := f.providerOf(ace.PhaseReflector)
	for _, p := range allProviders(a) {
		if _, ok := p.(model.Judge); ok && p.Name() == name {
			return nil
		}
	}
	return cli.UsageError("the grader judge asks the model of the reflector, but %s asks no model; "+
		"name a model server with --provider or --phase reflector=PROVIDER", name)
}

// modelName returns the model that is recorded and passed to every phase: the default of the first
// provider that uses a model, otherwise the name of the blueprint or of the provider's model.
func (f runFlags) modelName(known []model.Provider) string {
	if f.Model != "" {
		return f.Model
	}
	names := []string{f.Provider}
	for _, phase := range ace.PromptedPhases() {
		name, _ := f.providerOf(phase)
		names = append(names, name)
	}
	i := slices.IndexFunc(names, func(name string) bool {
		_, ok := ace.BlueprintOf(name)
		return !ok && name != ace.Builtin
	})
	name, _ := DefaultModel(names[max(i, 0)], known)
	return cmp.Or(name, f.Models[string(ace.PhaseGenerator)])
}

// DefaultModel returns the model of a provider, for a blueprint its name, and whether the provider is known.
func DefaultModel(provider string, known []model.Provider) (name string, ok bool) {
	if blueprint, ok := ace.BlueprintOf(provider); ok {
		return blueprint, true
	}
	for _, p := range known {
		if p.Name() == provider {
			return p.DefaultModel(), true
		}
	}
	return "", false
}

func providerNames(a *cli.App, ctx context.Context) (names []cobra.Completion) {
	all := allProviders(a)
	for _, d := range a.StepBlueprints(ctx) {
		if d.Error == "" {
			all = append(all, engine.StepProvider(d))
		}
	}
	for _, p := range all {
		names = append(names, cobra.CompletionWithDesc(p.Name(), p.About()))
	}
	return names
}

func CompleteProviders(a *cli.App) cobra.CompletionFunc {
	return cli.Complete(a, func(ctx context.Context) []cobra.Completion { return providerNames(a, ctx) })
}

// completeKeys completes KEY= for the keys, and PHASE=PROVIDER after the text in front of it.
func completeKeys(a *cli.App, keys []string, front string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		var all []cobra.Completion
		for _, key := range keys {
			all = append(all, key+"=")
		}
		for _, phase := range ace.PromptedPhases() {
			key := front + string(phase) + "="
			if all = append(all, key); !strings.HasPrefix(prefix, key) || a.Load(cmd, args) != nil {
				continue
			}
			for _, name := range providerNames(a, cmd.Context()) {
				all = append(all, key+name)
			}
			return cli.Completions(all, prefix), cobra.ShellCompDirectiveNoFileComp
		}
		// A value follows.
		return cli.Completions(all, prefix),
			cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// CompleteSettings completes the values of --set of the fork command.
func CompleteSettings(a *cli.App) cobra.CompletionFunc { return completeKeys(a, fork.Keys(), "steps.") }

// MustComplete registers the completion of a flag, which must exist.
func MustComplete(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}
