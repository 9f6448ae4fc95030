package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
	sourceruns "acescope/sources/runs"
	"acescope/views/console"
)

// PlanFork works a fork out and checks that it can be started here. Fields are the flags'
// names, or those that --set takes.
func PlanFork(a *cli.App, ctx context.Context, e *engine.Engine, o *fork.Original, at fork.Point, fields []console.Field) (*fork.Plan, error) {
	c, err := forkChanges(ctx, e, fields)
	if err != nil {
		return nil, err
	}
	p, err := o.Plan(at, c)
	if errors.Is(err, fork.ErrPoint) || errors.Is(err, fork.ErrNoChange) {
		return nil, cli.UsageError("%s: %w", o.WorkflowID, err)
	}
	if err != nil {
		return nil, err
	}
	if err := e.CheckFork(p); errors.Is(err, engine.ErrGone) {
		return nil, &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	} else if err != nil {
		return nil, err
	}
	return p, checkProviders(a, e, p)
}

func forkChanges(ctx context.Context, e *engine.Engine, fields []console.Field) (c fork.Changes, err error) {
	for _, f := range fields {
		value := f.Value
		switch f.Name {
		case "model":
			c.Model = &value
		case "provider":
			c.Provider = &value
		case "branch":
			c.Branch = &value
		case "prompt":
			if strings.TrimSpace(value) == "" {
				return c, cli.UsageError("the prompt is empty")
			}
			c.Prompt = &value
			if len(value) > ace.InlineBytes {
				ref, err := e.Artifacts.PutBytes(ctx, []byte(value), "text/plain; charset=utf-8")
				if err != nil {
					return c, err
				}
				c.PromptRef = &ref
			}
		case "playbook":
			hash, err := forkBook(e, value)
			if err != nil {
				return c, err
			}
			c.Playbook = &hash
		default:
			s, err := fork.ParseSetting(f.Name + "=" + value)
			if err != nil {
				return c, cli.UsageError("%w", err)
			}
			c.Set = append(c.Set, s)
		}
	}
	if c.Provider != nil && c.Model == nil { // the model of another provider means nothing to it
		if blueprint, program := ace.BlueprintOf(*c.Provider); program {
			c.Model = &blueprint
		}
		for _, p := range e.Providers {
			if p.Name() == *c.Provider {
				name := p.DefaultModel()
				c.Model = &name
			}
		}
	}
	return c, nil
}

// forkBook is the version that a file, a hash or a line of playbooks names; "" is the
// empty one.
func forkBook(e *engine.Engine, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if _, err := os.Stat(name); err != nil {
		if head, ok, err := e.Books.Head(name); err != nil || ok {
			return head, err
		}
	}
	hash, err := runs.StartBook(e, name)
	var c *cli.ExitError
	if errors.As(err, &c) && c.Code == cli.ExitNotFound {
		return "", &cli.ExitError{Code: cli.ExitNotFound, Err: fmt.Errorf("--playbook %s: no such file, no line of playbooks and no version of that hash", name)}
	}
	return hash, err
}

// checkProviders refuses a fork that nobody here could serve. A cluster may have other
// workers.
func checkProviders(a *cli.App, e *engine.Engine, p *fork.Plan) error {
	if e.Mode() == engine.Cluster {
		return nil
	}
	var known []string
	for _, x := range e.Providers {
		known = append(known, x.Name())
	}
	for _, s := range p.Rerun {
		if blueprint, program := ace.BlueprintOf(s.Provider); program {
			if err := runs.CheckBlueprint(a, string(s.Phase)+" by "+s.Provider, blueprint, s.Phase); err != nil {
				return err
			}
			continue
		}
		if s.Provider != "" && !slices.Contains(known, s.Provider) {
			return cli.UsageError("%s would be served by the provider %q, which is unknown here; give --provider; known: %s, and blueprint:NAME", s.Phase, s.Provider, strings.Join(known, ", "))
		}
	}
	return nil
}

// forkText says what a fork would do, a line for each matter.
func forkText(p *fork.Plan) []string {
	from := fmt.Sprintf("event %d, before %s", p.Event, p.Phase)
	if p.Within {
		from = fmt.Sprintf("event %d, within %s, which begins anew", p.Event, p.Phase)
	}
	lines := []string{"workflow    " + p.WorkflowID, "run         " + p.RunID, "forked at   " + from, "taken over  " + phaseList(p.Reused)}
	lines = append(lines, anewText(p)...)
	names := make([]string, 0, len(p.Changed))
	for name := range p.Changed {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		label := "changed     "
		if i > 0 {
			label = "            "
		}
		ch := p.Changed[name]
		lines = append(lines, label+name+": "+shortly(ch.From)+" → "+shortly(ch.To))
	}
	if p.Same() {
		lines = append(lines, "changed     nothing")
	}
	return append(lines, "merges into "+branchText(p), "costs       "+costText(p))
}

func phaseList(list []ace.Phase) string {
	var names []string
	for _, p := range list {
		names = append(names, string(p))
	}
	return cmp.Or(strings.Join(names, ", "), "nothing")
}

// anewText lists what is executed anew, steps with the same provider and model together.
func anewText(p *fork.Plan) []string {
	var lines []string
	for i := 0; i < len(p.Rerun); {
		s := p.Rerun[i]
		var names []ace.Phase
		for ; i < len(p.Rerun) && p.Rerun[i].Provider == s.Provider && p.Rerun[i].Model == s.Model; i++ {
			names = append(names, p.Rerun[i].Phase)
		}
		label := "            "
		if len(lines) == 0 {
			label = "anew        "
		}
		by := ""
		if s.Provider != "" {
			by = " (" + s.Provider + ", " + cmp.Or(s.Model, "no model") + ")"
		}
		lines = append(lines, label+phaseList(names)+by)
	}
	return lines
}

// shortly is a value in a line of a question.
func shortly(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 24 {
		return string(r[:23]) + "…"
	}
	return cmp.Or(s, "none")
}

func branchText(p *fork.Plan) string {
	switch {
	case p.OwnBranch:
		return "a line of playbooks of its own"
	case p.Input.Branch == "":
		return "nothing: the delta is only recorded"
	}
	return "the line of playbooks " + p.Input.Branch
}

func costText(p *fork.Plan) string {
	if !p.Costs() {
		return "nothing: " + fork.Free + " calls no language model"
	}
	tokens := p.Estimate.InputTokens + p.Estimate.OutputTokens
	said := fmt.Sprintf("about $%.4f, %d tokens, as these steps used before", p.Estimate.CostUSD, tokens)
	switch {
	case p.Estimate == (ace.Usage{}):
		return "money, but how much is not known: the run has no figures"
	case len(p.Unknown) > 0:
		said += "; not counted: " + phaseList(p.Unknown)
	}
	return said
}

// PreparedFork is a fork that waits for a yes.
func PreparedFork(e *engine.Engine, p *fork.Plan, about clusterFork) console.Prepared {
	return console.Prepared{Title: "Fork " + p.Name() + "?", Lines: append(forkText(p), about.text()...), Yes: "fork it",
		Do: func(ctx context.Context) (string, sourceruns.Run, error) {
			f, err := e.StartFork(ctx, p)
			if err != nil {
				return "", sourceruns.Run{}, err
			}
			return "forked as " + f.TaskID, sourceruns.Run{WorkflowID: f.WorkflowID, RunID: f.RunID, TaskID: f.TaskID}, nil
		}}
}
