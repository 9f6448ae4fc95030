package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/fork"
	"acescope/engine/model"
	"acescope/engine/run"
)

// stepTag is the tag of blueprints that serve steps: those are listed among the providers.
// Others serve steps too, where somebody names them.
const stepTag = "ace-step"

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
			return nil, usage("--step %q: give it as STEP=PROVIDER, such as curator=blueprint:my-curator", s)
		case !slices.Contains(servedSteps(), ace.Phase(step)):
			return nil, usage("--step %q: there is no step %q; there are generator, skills, reflector and curator", s, step)
		case steps[step] != "":
			return nil, usage("--step %s: said twice", step)
		}
		steps[step] = provider
	}
	return steps, nil
}

// providerOf is who serves a step, and what says so.
func (f runFlags) providerOf(step ace.Phase) (name, said string) {
	if name := f.served[string(step)]; name != "" {
		return name, "--step " + string(step) + "=" + name
	}
	return f.provider, "--provider " + f.provider
}

// checkServed refuses steps that nobody here could serve.
func (a *app) checkServed(f runFlags) error {
	known := slices.Concat(a.providers(), a.agentProviders())
	if _, program := ace.BlueprintOf(f.provider); !program {
		if err := f.checkProvider(f.provider, "--provider "+f.provider, known, a.cluster() != nil); err != nil {
			return err
		}
	}
	for _, step := range servedSteps() {
		name, said := f.providerOf(step)
		var err error
		if blueprint, program := ace.BlueprintOf(name); program {
			err = a.checkBlueprint(said, blueprint, step)
		} else if name != f.provider {
			err = f.checkProvider(name, said, known, a.cluster() != nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkBlueprint refuses a blueprint that cannot serve a step. The blueprint is looked for where
// this command does; a process that serves the step does so again.
func (a *app) checkBlueprint(said, blueprint string, step ace.Phase) error {
	l, err := a.library()
	if err != nil {
		return err
	}
	if err := engine.CheckStep(blueprints{l}, blueprint, step); err != nil {
		return usage("%s: %w", said, withoutCode(err))
	}
	return nil
}

// withoutCode is an error in words: a blueprint that is named by a flag is a wrong flag.
func withoutCode(err error) error { return errors.New(oneLine(err)) }

// stepBlueprints are the blueprints that serve steps, to list them.
func (a *app) stepBlueprints(ctx context.Context) []run.Described {
	l, err := a.library()
	if err != nil {
		return nil
	}
	all, err := l.List(ctx)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(d run.Described) bool {
		return !slices.Contains(d.Tags, stepTag) || d.Type == run.Agent
	})
}

// stepProviders are the providers that those blueprints make.
func (a *app) stepProviders(ctx context.Context) (all []model.Provider) {
	for _, d := range a.stepBlueprints(ctx) {
		if d.Error == "" {
			all = append(all, engine.StepProvider(d))
		}
	}
	return all
}

// completeProviders completes the name of a provider.
func (a *app) completeProviders(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if a.load(cmd, given) != nil {
		return nil, none
	}
	var names []string
	for _, p := range slices.Concat(a.providers(), a.agentProviders(), a.stepProviders(cmd.Context())) {
		if strings.HasPrefix(p.Name(), begun) && p.Name() == safe(p.Name()) {
			names = append(names, p.Name()+"\t"+safe(p.About()))
		}
	}
	return names, none
}

// completeSteps completes what --step takes.
func (a *app) completeSteps(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	return a.completeServed(cmd, given, begun, "")
}

// completeSettings completes what fork's --set takes.
func (a *app) completeSettings(cmd *cobra.Command, given []string, begun string) ([]string, cobra.ShellCompDirective) {
	if strings.HasPrefix(begun, "steps.") {
		return a.completeServed(cmd, given, begun, "steps.")
	}
	var names []string
	for _, key := range fork.Keys() {
		if strings.HasPrefix(key, begun) {
			names = append(names, key+"=")
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (a *app) completeServed(cmd *cobra.Command, given []string, begun, prefix string) ([]string, cobra.ShellCompDirective) {
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
	found, how := a.completeProviders(cmd, given, provider)
	for _, name := range found {
		names = append(names, fmt.Sprintf("%s%s=%s", prefix, step, name))
	}
	return names, how
}

// mustComplete has a flag completed.
func mustComplete(cmd *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic(err) // the flag is not there
	}
}
