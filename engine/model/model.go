// Package model says what a provider of ACE's steps is. Its sub-packages are the
// providers. It may import engine/ace and engine/playbook.
//
// A provider is called from activities, many at a time: it must be safe for
// concurrent use, honour its context, and hold nothing between calls that a retry on
// another machine would miss.
package model

import (
	"context"
	"errors"

	"acescope/engine/ace"
	"acescope/engine/playbook"
)

// ErrPermanent marks an error that no retry will mend.
var ErrPermanent = errors.New("permanent")

// Provider serves the four steps of the loop that need judgement.
type Provider interface {
	// Name is what --provider takes.
	Name() string
	// About says in a sentence what answers: shown on screen and by the doctor.
	About() string
	// DefaultModel is the model name recorded where the user gives none.
	DefaultModel() string
	Generate(ctx context.Context, in ace.GeneratorInput, book *playbook.Playbook) (ace.GeneratorResult, error)
	// Skills runs the plan with real tools, each call through the toolbox.
	Skills(ctx context.Context, in ace.SkillsInput, book *playbook.Playbook, tools Toolbox) (ace.SkillSessionResult, error)
	Reflect(ctx context.Context, in ace.ReflectorInput, book *playbook.Playbook) (ace.ReflectorResult, error)
	Curate(ctx context.Context, in ace.CuratorInput, book *playbook.Playbook) (ace.CuratorResult, error)
}

// ErrDenied is what a [Toolbox] returns for a call that a permission rule refused.
var ErrDenied = errors.New("tool call denied")

// Toolbox runs tool calls and records each: name, arguments, outcome and latency. The
// skills session's invocations are filled in by the toolbox, not by the provider.
type Toolbox interface {
	// Call records the call, runs fn unless the tool is not allowed, and returns its
	// result or error unchanged, or ErrDenied.
	Call(ctx context.Context, name string, args any, fn func(context.Context) (any, error)) (any, error)
}

// Streamer is a [Provider] that can show what its model says while it says it.
type Streamer interface {
	// Live is the same provider with a place for the text of its answers, piece by piece.
	Live(to func(text string)) Provider
}

// Checker is a [Provider] that may lack something.
type Checker interface {
	// Ready is what it lacks, nil where it can be used.
	Ready() error
}
