package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/temporal/fork"
)

// servedSteps are the steps that a provider serves, in order.
func servedSteps() []ace.Phase {
	return []ace.Phase{ace.PhaseGenerator, ace.PhaseSkills, ace.PhaseReflector, ace.PhaseCurator}
}

// parseSteps reads what --step says.
func parseSteps(list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	steps := map[string]string{}
	for _, s := range list {
		step, provider, ok := strings.Cut(s, "=")
		switch {
		case !ok || provider == "":
			return nil, cli.UsageError("--step %q: give it as STEP=PROVIDER, such as curator=blueprint:my-curator", s)
		case !slices.Contains(servedSteps(), ace.Phase(step)):
			return nil, cli.UsageError("--step %q: there is no step %q; there are generator, skills, reflector and curator", s, step)
		case steps[step] != "":
			return nil, cli.UsageError("--step %s: said twice", step)
		}
		steps[step] = provider
	}
	return steps, nil
}

// providerOf is who serves a step, and what says so.
func (f RunFlags) providerOf(step ace.Phase) (name, said string) {
	if name := f.served[string(step)]; name != "" {
		return name, "--step " + string(step) + "=" + name
	}
	return f.Provider, "--provider " + f.Provider
}

// checkServed refuses steps that nobody here could serve.
func checkServed(a *cli.App, f RunFlags) error {
	known := slices.Concat(a.Providers(), a.AgentProviders())
	if _, program := ace.BlueprintOf(f.Provider); !program {
		if err := f.checkProvider(f.Provider, "--provider "+f.Provider, known, a.Cluster() != nil); err != nil {
			return err
		}
	}
	for _, step := range servedSteps() {
		name, said := f.providerOf(step)
		var err error
		if blueprint, program := ace.BlueprintOf(name); program {
			err = CheckBlueprint(a, said, blueprint, step)
		} else if name != f.Provider {
			err = f.checkProvider(name, said, known, a.Cluster() != nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckBlueprint refuses a blueprint that cannot serve a step. The blueprint is looked for where
// this command does; a process that serves the step does so again.
func CheckBlueprint(a *cli.App, said, blueprint string, step ace.Phase) error {
	l, err := a.Library()
	if err != nil {
		return err
	}
	if err := engine.CheckStep(cli.Blueprints{Library: l}, blueprint, step); err != nil {
		return cli.UsageError("%s: %w", said, withoutCode(err))
	}
	return nil
}

// withoutCode is an error in words: a blueprint that is named by a flag is a wrong flag.
func withoutCode(err error) error { return errors.New(cli.OneLine(err)) }

// stepProviders are the providers that those blueprints make.
func stepProviders(a *cli.App, ctx context.Context) (all []model.Provider) {
	for _, d := range a.StepBlueprints(ctx) {
		if d.Error == "" {
			all = append(all, engine.StepProvider(d))
		}
	}
	return all
}

// CompleteProviders completes the name of a provider.
func CompleteProviders(a *cli.App, cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if a.Load(cmd, given) != nil {
		return nil, none
	}
	var names []string
	for _, p := range slices.Concat(a.Providers(), a.AgentProviders(), stepProviders(a, cmd.Context())) {
		if strings.HasPrefix(p.Name(), begun) && p.Name() == cli.SafeText(p.Name()) {
			names = append(names, p.Name()+"\t"+cli.SafeText(p.About()))
		}
	}
	return names, none
}

// completeSteps completes what --step takes.
func completeSteps(a *cli.App, cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	return completeServed(a, cmd, given, begun, "")
}

// CompleteSettings completes what fork's --set takes.
func CompleteSettings(a *cli.App, cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	if strings.HasPrefix(begun, "steps.") {
		return completeServed(a, cmd, given, begun, "steps.")
	}
	var names []string
	for _, key := range fork.Keys() {
		if strings.HasPrefix(key, begun) {
			names = append(names, key+"=")
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func completeServed(a *cli.App, cmd *cobra.Command, given []string, begun, prefix string) ([]string, cobra.ShellCompDirective) {
	step, provider, ok := strings.Cut(strings.TrimPrefix(begun, prefix), "=")
	var names []string
	if !ok {
		for _, s := range servedSteps() {
			if strings.HasPrefix(string(s), step) {
				names = append(names, prefix+string(s)+"=")
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	found, how := CompleteProviders(a, cmd, given, provider)
	for _, name := range found {
		names = append(names, fmt.Sprintf("%s%s=%s", prefix, step, name))
	}
	return names, how
}

// MustComplete has a flag completed.
func MustComplete(cmd *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err) // the flag is not there
	}
}
