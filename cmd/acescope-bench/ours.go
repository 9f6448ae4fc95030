package main

import (
	"context"
	"fmt"
	"time"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/playbook"
)

// calls is how many tool calls a task makes; each is two tool events.
const calls = 10

// noop is a provider whose steps do nothing, but whose sessions call tools.
type noop struct {
	calls  int
	before time.Duration // how long the session waits before its calls
	each   time.Duration // how long a call takes
	pause  time.Duration // after each call
	linger time.Duration // how long the session lasts after its calls
	began  func()        // called by the first step, where it is set
}

func (*noop) Name() string         { return "noop" }
func (*noop) About() string        { return "does nothing, for measurements" }
func (*noop) DefaultModel() string { return "none" }

func (n *noop) Generate(context.Context, ace.GeneratorInput, *playbook.Playbook) (ace.GeneratorResult, error) {
	if n.began != nil {
		n.began()
	}
	return ace.GeneratorResult{Plan: "nothing", Usage: &ace.Usage{InputTokens: 100, OutputTokens: 10}}, nil
}

func (n *noop) Skills(ctx context.Context, _ ace.SkillsInput, _ *playbook.Playbook, tools model.Toolbox) (ace.SkillSessionResult, error) {
	if err := wait(ctx, n.before); err != nil {
		return ace.SkillSessionResult{}, err
	}
	for i := range n.calls {
		_, err := tools.Call(ctx, "calculate", map[string]int{"n": i}, func(ctx context.Context) (any, error) {
			return map[string]int{"value": i}, wait(ctx, n.each)
		})
		if err == nil {
			err = wait(ctx, n.pause)
		}
		if err != nil {
			return ace.SkillSessionResult{}, err
		}
	}
	return ace.SkillSessionResult{Answer: "42"}, wait(ctx, n.linger)
}

func (*noop) Reflect(context.Context, ace.ReflectorInput, *playbook.Playbook) (ace.ReflectorResult, error) {
	correct := true
	return ace.ReflectorResult{Insights: "none", Correct: &correct}, nil
}

func (*noop) Curate(context.Context, ace.CuratorInput, *playbook.Playbook) (ace.CuratorResult, error) {
	return ace.CuratorResult{Rationale: "none"}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// oursRunner runs AceTaskWorkflow on acescope's engine.
type oursRunner struct{ e *engine.Engine }

func openOurs(ctx context.Context, dir string, p *noop) (*oursRunner, error) {
	e, err := engine.Open(ctx, engine.Options{DataDir: dir, Version: "bench", Worker: true, Providers: []model.Provider{p}})
	if err != nil {
		return nil, err
	}
	return &oursRunner{e}, nil
}

// group is how many tasks share an experiment id, by which the list can be cut.
const group = 1000

func experimentOf(n int) string { return fmt.Sprintf("bench-%03d", n/group) }

func taskInput(n int) ace.TaskInput {
	label := "42"
	return ace.TaskInput{TaskID: fmt.Sprintf("bench-%06d", n), Prompt: "a task that does nothing", Label: &label,
		Adapter: ace.Offline, Provider: "noop", Model: "none", ExperimentID: experimentOf(n), DatasetID: "bench"}
}

func (r *oursRunner) one(ctx context.Context, n int) error {
	in := taskInput(n)
	runID, err := r.e.StartTask(ctx, in)
	if err != nil {
		return err
	}
	var result ace.TaskResult
	if err := r.e.Client.GetWorkflow(ctx, ace.WorkflowID(in.TaskID), runID).Get(ctx, &result); err != nil {
		return err
	}
	if result.ExitStatus != ace.Success || result.Summary.Skills != calls {
		return fmt.Errorf("task %s: %s with %d skills", in.TaskID, result.ExitStatus, result.Summary.Skills)
	}
	return nil
}

func (r *oursRunner) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	return r.e.Close(ctx)
}
