package runs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/prompts"
	"acescope/engine/store/artifact"
)

const PhasePromptHelp = "prompt of one phase, as PHASE=NAME, PHASE=NAME@VERSION or PHASE=@FILE; " +
	"\"acescope phase-prompt list\" lists them; repeatable"

// ParsePhasePrompts parses values of --phase-prompt to prompts by phase.
func ParsePhasePrompts(values []string) (map[ace.Phase]string, error) {
	return byPhase[ace.Phase](values, "--phase-prompt", "PHASE=NAME, such as generator=brief")
}

// byPhase parses values PHASE=TEXT of a flag to texts by phase.
func byPhase[P ~string](values []string, flag, form string) (map[P]string, error) {
	list := map[P]string{}
	for _, value := range values {
		phase, text, ok := strings.Cut(value, "=")
		switch {
		case !ok || text == "":
			return nil, cli.UsageError("%s %q: use %s", flag, value, form)
		case !slices.Contains(ace.PromptedPhases(), ace.Phase(phase)):
			return nil, cli.UsageError("%s %q: unknown phase %q; use generator, skills, reflector or curator",
				flag, value, phase)
		case list[P(phase)] != "":
			return nil, cli.UsageError("%s %s: set more than once", flag, phase)
		}
		list[P(phase)] = text
	}
	return list, nil
}

// FindPhasePrompt returns the prompt that a value of --phase-prompt names after the phase, or nil for the
// default. It stores the text of a file, and checks the text of any other.
func FindPhasePrompt(ctx context.Context, s *prompts.Store, phase ace.Phase, value string) (*ace.PhasePrompt,
	error) {
	if path, ok := strings.CutPrefix(value, "@"); ok {
		text, err := cli.ReadFile(ctx, path, prompts.MaxText)
		if err != nil {
			return nil, err
		}
		p, err := s.PutText(ctx, phase, filepath.Base(path), string(text))
		return &p, PromptError(path, err)
	}
	v, err := s.Find(ctx, phase, value)
	if err != nil {
		return nil, PromptError("", err)
	}
	if v.Name == ace.DefaultPrompt {
		return nil, nil
	}
	text, err := s.Text(ctx, v.PhasePrompt)
	if err == nil {
		_, err = prompts.Parse(phase, text)
	}
	return &v.PhasePrompt, PromptError(v.PhasePrompt.String(), err)
}

// PromptError gives the errors of package prompts their exit codes. of is the file or the prompt with the
// text, "" if the error names it.
func PromptError(of string, err error) error {
	var mistake *prompts.SyntaxError
	switch {
	case errors.As(err, &mistake) && of != "":
		return cli.UsageError("%s:%w", of, err)
	case errors.As(err, &mistake), errors.Is(err, prompts.ErrName), errors.Is(err, prompts.ErrShipped):
		return cli.UsageError("%w", err)
	}
	return err
}

// CheckTakesPrompt returns an error in one line if a provider does not follow a phase prompt. Workers of a
// cluster may have providers that this process does not know.
func CheckTakesPrompt(a *cli.App, provider string, known []model.Provider) error {
	if blueprint, ok := ace.BlueprintOf(provider); ok {
		l, err := a.Library()
		if err != nil {
			return err
		}
		return engine.CheckStepPrompt(cli.Blueprints{Library: l}, blueprint)
	}
	for _, p := range known {
		if p.Name() == provider {
			return model.CheckPrompt(p)
		}
	}
	return nil
}

// checkPrompts parses the values of --phase-prompt and adds those of the configuration for phases that take
// one. It returns a usage error if a phase does not take the prompt that a flag gives it.
func (f *runFlags) checkPrompts(a *cli.App) (err error) {
	if f.prompts, err = ParsePhasePrompts(f.phasePrompts); err != nil {
		return err
	}
	known := allProviders(a)
	for _, phase := range ace.PromptedPhases() {
		name, _ := f.providerOf(phase)
		err := CheckTakesPrompt(a, name, known)
		if phase == ace.PhaseSkills && f.NoSkills {
			err = errors.New("--no-skills leaves out the phase")
		}
		switch value := f.prompts[phase]; {
		case value == ace.DefaultPrompt:
		case value != "" && err != nil:
			return cli.UsageError("--phase-prompt %s=%s: %s", phase, value, cli.OneLine(err))
		case value == "" && err == nil && a.Settings.File.Prompts[string(phase)] != "":
			f.prompts[phase] = a.Settings.File.Prompts[string(phase)]
		}
	}
	return nil
}

// promptsOf returns the prompts of the input of a run.
func (f runFlags) promptsOf(ctx context.Context, e *engine.Engine) (list ace.Prompts, err error) {
	for _, phase := range ace.PromptedPhases() {
		if f.prompts[phase] == "" {
			continue
		}
		p, err := FindPhasePrompt(ctx, e.Prompts, phase, f.prompts[phase])
		if err != nil {
			return nil, err
		}
		list = list.With(phase, p)
	}
	return list, nil
}

// OpenPrompts opens the phase prompts of the data directory, which needs no server, or those of a cluster.
func OpenPrompts(a *cli.App, ctx context.Context, readOnly bool) (s *prompts.Store, err error) {
	if a.Cluster() != nil {
		e, err := a.Connect(ctx, engine.Options{LookOnly: readOnly})
		if err != nil {
			return nil, err
		}
		return e.Prompts, nil
	}
	if readOnly {
		dir, err := a.DataDir()
		if err == nil {
			s, err = prompts.OpenDirReadOnly(ctx, dir, artifact.OpenReadOnly(filepath.Join(dir, "artifacts")))
		}
		return s, err
	}
	dir, err := a.OpenDataDir()
	if err != nil {
		return nil, err
	}
	texts, err := artifact.Open(filepath.Join(dir, "artifacts"))
	if err == nil {
		s, err = prompts.OpenDir(ctx, dir, texts)
	}
	return s, err
}

// CompletePhasePrompts completes PHASE, the separator and NAME.
func CompletePhasePrompts(a *cli.App, separator string) cobra.CompletionFunc {
	return cli.Complete(a, func(ctx context.Context) (all []cobra.Completion) {
		s, err := OpenPrompts(a, ctx, true)
		if err != nil {
			return nil
		}
		list, _ := s.List(ctx)
		for _, v := range list {
			about := "shipped"
			if v.Version > 0 {
				about = fmt.Sprintf("version %d", v.Version)
			}
			all = append(all, cobra.CompletionWithDesc(string(v.Phase)+separator+v.Name, about))
		}
		return all
	})
}
