package admin

import (
	"context"
	"errors"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/flows"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/learning"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/agents/agentcli"
	"acescope/engine/agents/session"
	"acescope/engine/flow"
	"acescope/engine/flow/flowfork"
	"acescope/engine/learning/prompts"
	"acescope/engine/tasks/run"
	"acescope/engine/tasks/runner"
	"acescope/engine/temporal/fork"
	"acescope/sources/cluster"
	sourceruns "acescope/sources/runs"
	"acescope/views/console"
)

var errNotConnected = errors.New("not connected yet")

// ready returns the engine, or errNotConnected if it is not connected yet.
func (l *Link) ready() (*engine.Engine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Engine == nil {
		return nil, errNotConnected
	}
	return l.Engine, nil
}

// The exported methods of Link implement the interfaces of [console.Actions].

// do calls f with the engine.
func (l *Link) do(f func(e *engine.Engine) error) error {
	e, err := l.ready()
	if err != nil {
		return err
	}
	return f(e)
}

// with calls f with the engine and returns its result.
func with[T any](l *Link, f func(e *engine.Engine) (T, error)) (v T, err error) {
	e, err := l.ready()
	if err != nil {
		return v, err
	}
	return f(e)
}

func (l *Link) Cancel(ctx context.Context, workflowID, runID string) error {
	return l.do(func(e *engine.Engine) error { return e.Cancel(ctx, workflowID, runID) })
}

func (l *Link) StartDemo(ctx context.Context) error {
	return l.do(func(e *engine.Engine) error { return startDemo(l.app, ctx, e, demoTasks, demoPace) })
}

func (l *Link) ExportPlaybook(ctx context.Context, version, path, form string) (lines []string, err error) {
	return with(l, func(e *engine.Engine) ([]string, error) {
		return learning.ExportPlaybook(l.app, ctx, e.Books, version, path, form)
	})
}

func (l *Link) LaunchDefaults() map[string]string { return runs.LaunchDefaults(l.app) }

func (l *Link) CheckLaunch(ctx context.Context, args []string) (wrong []error, warnings []string) {
	launch, err := runs.ParseLaunch(l.app, args)
	if err != nil {
		return []error{err}, nil
	}
	e, _ := l.ready() // without a connection, only files are checked
	return launch.CheckNames(ctx, e), launch.Warnings()
}

func (l *Link) Launch(ctx context.Context, args []string) (r sourceruns.Run, err error) {
	launch, err := runs.ParseLaunch(l.app, args)
	if err != nil {
		return r, err
	}
	return with(l, func(e *engine.Engine) (sourceruns.Run, error) { return launch.Start(ctx, e) })
}

func (l *Link) Choices(ctx context.Context, field string) []string {
	e, err := l.ready()
	if err != nil {
		return nil
	}
	return runs.Choices(l.app, ctx, e, field)
}

func (l *Link) PromptBase(ctx context.Context, phase ace.Phase, ref string) (p prompts.Prompt, err error) {
	return with(l, func(e *engine.Engine) (prompts.Prompt, error) {
		p, err := e.Prompts.Base(ctx, phase, ref)
		return p, runs.PromptError("", err)
	})
}

func (l *Link) PutPrompt(ctx context.Context, phase ace.Phase, name, text, from string) (p prompts.Prompt,
	err error) {
	return with(l, func(e *engine.Engine) (prompts.Prompt, error) {
		p, _, err := e.Prompts.Put(ctx, phase, name, text, from)
		return p, err
	})
}

func (l *Link) Freeze(ctx context.Context, workflowID string) (id sourceruns.ID, err error) {
	return with(l, func(e *engine.Engine) (sourceruns.ID, error) {
		r, err := e.Client.DescribeWorkflowExecution(ctx, workflowID, "")
		exec := r.GetWorkflowExecutionInfo().GetExecution()
		return sourceruns.ID{WorkflowID: exec.GetWorkflowId(), RunID: exec.GetRunId()}, err
	})
}

func (l *Link) Prepare(
	ctx context.Context, of sourceruns.ID, c sourceruns.Change,
) (p sourceruns.Prepared, err error) {
	e, err := l.ready()
	if err != nil {
		return p, err
	}
	if c.Verb != "fork" {
		p, _, err := runs.Prepare(ctx, e, of, c)
		return p, err
	}
	events, err := cluster.ReadHistory(ctx, e.Client, e.Namespace(), of.WorkflowID, of.RunID)
	if err != nil {
		return p, err
	}
	if history.IsFlow(events) {
		plan, err := flows.PlanFork(l.app, history.FlowFork{WorkflowID: of.WorkflowID, Events: events,
			Changes: c.Fields, At: flowfork.Point{Step: c.Step, Event: c.At.Event}})
		if err != nil {
			return p, err
		}
		return flows.PreparedFork(e, plan), nil
	}
	o, err := history.OriginalOf(l.app, ctx, e, of, events)
	if err != nil {
		return p, err
	}
	return o.Plan(ctx, c.At, c.Fields)
}

func (l *Link) Original(ctx context.Context, of sourceruns.ID) (o sourceruns.Original, err error) {
	return with(l, func(e *engine.Engine) (o sourceruns.Original, err error) {
		events, err := cluster.ReadHistory(ctx, e.Client, e.Namespace(), of.WorkflowID, of.RunID)
		if err != nil {
			return o, err
		}
		return history.OriginalOf(l.app, ctx, e, of, events)
	})
}

func (l *Link) Matching(ctx context.Context, query string, limit int) (list []sourceruns.Run, err error) {
	err = l.do(func(e *engine.Engine) error {
		return sourceruns.ListNewest(ctx, e.Client, query, limit, func(r sourceruns.Run) error {
			list = append(list, r)
			return nil
		})
	})
	return list, err
}

func (l *Link) PlanForks(ctx context.Context, originals []sourceruns.Run, c sourceruns.Change,
	progress sourceruns.Progress) (b sourceruns.Batch, err error) {
	return with(l, func(e *engine.Engine) (b sourceruns.Batch, err error) {
		plan, err := history.PlanBatch(l.app, ctx, e, originals, fork.Point(c.At), c.Fields, progress)
		if err == nil {
			b = plan.Prepared(e)
		}
		return b, err
	})
}

func (l *Link) StartChoices(_ context.Context, dirs []string) console.StartChoices {
	c := console.StartChoices{Install: map[string]string{}}
	runner := l.app.AgentRunner()
	for _, name := range agentcli.CLIs() {
		if in := runner.Find(name); in.Path != "" {
			c.Agents = append(c.Agents, string(name))
		} else {
			c.Install[string(name)] = in.Hint
		}
	}
	for _, dir := range dirs {
		if cli.IsDir(dir) {
			c.Dirs = append(c.Dirs, dir)
		}
	}
	return c
}

func (l *Link) StartSession(ctx context.Context, in session.Input, first string) (id string, err error) {
	if err := agents.Adopt(l.app, ctx, &in); err != nil {
		return "", err
	}
	return with(l, func(e *engine.Engine) (string, error) {
		in, _, err := agents.StartSession(ctx, e, in, first)
		return in.SessionID, err
	})
}

func (l *Link) SendMessage(ctx context.Context, id, text string) (waiting int, err error) {
	return with(l, func(e *engine.Engine) (int, error) {
		r, err := agents.SendMessage(ctx, e, id, "", text)
		return r.Waiting, err
	})
}

func (l *Link) DecideCall(ctx context.Context, id, call string, allow bool, reason string) error {
	return l.do(func(e *engine.Engine) error {
		_, err := e.Decide(ctx, id, agents.Decision(call, allow, reason))
		return agents.SessionError(id, err)
	})
}

func (l *Link) DecideFlow(ctx context.Context, of sourceruns.ID, step string, approved bool,
	comment string) error {
	return l.do(func(e *engine.Engine) error {
		d := flow.Decision{Step: step, Approved: approved, Comment: comment, By: ace.User()}
		_, err := engine.DecideFlow(ctx, e, of.WorkflowID, of.RunID, d)
		return err
	})
}

func (l *Link) DecideReview(ctx context.Context, of sourceruns.ID, d ace.ReviewDecision) error {
	d.By = ace.User()
	return l.do(func(e *engine.Engine) error {
		return engine.DecideReview(ctx, e, of.WorkflowID, of.RunID, d)
	})
}

func (l *Link) InterruptSession(ctx context.Context, id string) error {
	return l.do(func(e *engine.Engine) error {
		_, err := e.Interrupt(ctx, id, session.Note{By: ace.User()})
		return agents.SessionError(id, err)
	})
}

func (l *Link) StopSession(ctx context.Context, id string) error {
	return l.do(func(e *engine.Engine) error {
		_, err := e.Stop(ctx, id, session.Note{By: ace.User()})
		return agents.SessionError(id, err)
	})
}

func (l *Link) Arguments(ctx context.Context, ref ace.Ref) (data []byte, err error) {
	return with(l, func(e *engine.Engine) ([]byte, error) {
		return e.Artifacts.Get(ctx, ref, agents.MaxArguments)
	})
}

func (l *Link) StopRun(ctx context.Context, id string) error {
	return l.do(func(e *engine.Engine) error {
		service, err := agents.RunService(l.app, e)
		if err != nil {
			return err
		}
		_, err = service.Stop(ctx, id, run.StopRequest{By: ace.User()})
		if errors.Is(err, context.DeadlineExceeded) {
			return errors.New(`no worker answered in time; run "acescope serve"`)
		}
		return err
	})
}

func (l *Link) DrainRunner(ctx context.Context, id string) error {
	return l.do(func(e *engine.Engine) error {
		_, err := e.DrainRunner(ctx, id, runner.Note{By: ace.User()})
		return err
	})
}
