package engine

import (
	"encoding/json"
	"errors"
	"fmt"

	"acescope/engine/ace"
	"acescope/engine/model"
	"acescope/engine/model/command"
	"acescope/engine/run"
)

// ErrNotAStep means that a blueprint is there and cannot serve a step.
var ErrNotAStep = errors.New("it cannot serve steps")

// CheckStep tells whether a blueprint of a library can serve a step: it is a program, and its
// schema takes what the step is given.
func CheckStep(lib Blueprints, blueprint string, step ace.Phase) error {
	_, check, err := stepBlueprint(lib, blueprint)
	if err != nil || check == nil {
		return err
	}
	if _, err := check(command.Sample(step)); err != nil {
		return fmt.Errorf("blueprint %s: %w of the %s: %w", blueprint, ErrNotAStep, step, err)
	}
	return nil
}

func stepBlueprint(lib Blueprints, name string) (run.Blueprint, func(json.RawMessage) (json.RawMessage, error), error) {
	b, check, err := lib.Load(name)
	if err == nil && b.Type != run.Deterministic {
		err = fmt.Errorf("blueprint %s: %w: it is an agent, a step needs a program (type deterministic)", name, ErrNotAStep)
	}
	return b, check, err
}

// StepProvider is the provider whose steps are runs of a blueprint, for those who only want to
// know what it is called and about.
func StepProvider(b run.Described) model.Provider {
	return command.New(nil, nil, b.Name, b.Description)
}

// stepProviders gives the providers whose steps are runs of blueprints, as a library has them
// when a step is served.
func (e *Engine) stepProviders(lib Blueprints) func(blueprint string) (model.Provider, error) {
	if lib == nil {
		return nil
	}
	runs := e.Runs(lib)
	return func(name string) (model.Provider, error) {
		b, _, err := stepBlueprint(lib, name)
		switch {
		case errors.Is(err, run.ErrNoBlueprint):
			return nil, command.NoBlueprint(name, err)
		case err != nil:
			return nil, model.Errorf(model.BadRequest, "%s: %v", ace.BlueprintProvider(name), err)
		}
		return command.New(runs, e.Artifacts, name, b.Description), nil
	}
}
