package main

import (
	"context"
	"encoding/json"
	"errors"

	"acescope/engine"
	"acescope/engine/blueprint"
	"acescope/engine/mcp"
	"acescope/engine/run"
)

// runVerbs are what can be done with the runs on an engine, with the blueprints that this
// command knows.
func (a *app) runVerbs(e *engine.Engine) (run.Verbs, error) {
	l, err := a.library()
	if err != nil {
		return nil, err
	}
	return e.Runs(blueprints{l}), nil
}

// blueprints gives runs the blueprints of a library.
type blueprints struct{ blueprint.Library }

// Load implements [engine.Blueprints].
func (b blueprints) Load(name string) (run.Blueprint, func(json.RawMessage) (json.RawMessage, error), error) {
	loaded, err := b.Library.Load(name)
	if err != nil || loaded.Params == nil {
		return loaded.Blueprint, nil, err
	}
	return loaded.Blueprint, loaded.Params.Check, nil
}

// agentRuns is what the commands about runs work with.
type agentRuns struct {
	run.Verbs
	artifacts mcp.Artifacts
	// alone tells that no other process would carry on what this one has started.
	alone bool
	app   *app
}

// withRuns connects to look, or to have something done: then this process serves where
// nobody else does.
func (a *app) withRuns(ctx context.Context, look bool, do func(*agentRuns) error) error {
	connect := a.speak
	if look {
		connect = a.look
	}
	e, done, err := connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	verbs, err := a.runVerbs(e)
	if err != nil {
		return err
	}
	return codedRun(do(&agentRuns{Verbs: verbs, artifacts: e.Artifacts, alone: e.Mode() == engine.Embedded && a.background == 0, app: a}))
}

// badRequest says what is wrong with what was asked for.
func badRequest(err error) error { return usage("%s", run.Sentence(err)) }

// codedRun gives what is wrong with a request its exit code.
func codedRun(err error) error {
	var c *coded
	switch {
	case errors.As(err, &c):
		return err
	case errors.Is(err, run.ErrBadRequest):
		return badRequest(err)
	case errors.Is(err, run.ErrNoBlueprint), errors.Is(err, run.ErrNotFound):
		return &coded{exitNotFound, err}
	}
	return err
}
