package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/fork"
	sourceruns "acescope/sources/runs"
	"acescope/sources/system"
)

// PlanFork plans a fork and checks that it can start here. The changes are named like the flags of the fork
// command or the keys of --set.
func PlanFork(
	a *cli.App, ctx context.Context, e *engine.Engine, o *fork.Original, at fork.Point,
	changes []sourceruns.Field,
) (*fork.Plan, error) {
	c, err := forkChanges(ctx, e, changes)
	if err != nil {
		return nil, err
	}
	return planFork(a, ctx, e, o, at, c)
}

func planFork(a *cli.App, ctx context.Context, e *engine.Engine, o *fork.Original, at fork.Point,
	c fork.Changes) (*fork.Plan, error) {
	p, err := o.Plan(at, c)
	if errors.Is(err, fork.ErrPoint) || errors.Is(err, fork.ErrNoChange) {
		return nil, cli.UsageError("%s: %w", o.WorkflowID, err)
	}
	if err != nil {
		return nil, err
	}
	if err := e.CheckFork(ctx, p); errors.Is(err, engine.ErrGone) {
		return nil, cli.NotFound("%w", err)
	} else if err != nil {
		return nil, err
	}
	return p, checkForkProviders(a, e, p)
}

func forkChanges(ctx context.Context, e *engine.Engine, changes []sourceruns.Field) (c fork.Changes,
	err error) {
	for _, f := range changes {
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
			if c.PromptRef, err = runs.StorePrompt(ctx, e, value); err != nil {
				return c, err
			}
		case PhasePrompt:
			if err := addPrompt(ctx, e, &c, value); err != nil {
				return c, err
			}
		case "playbook":
			hash, _, err := runs.PlaybookHash(ctx, e, value)
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
	if c.Provider != nil && c.Model == nil { // the original's model may be unknown to another provider
		if model, ok := runs.DefaultModel(*c.Provider, e.Providers); ok {
			c.Model = &model
		}
	}
	return c, nil
}

// PhasePrompt is the name of a change of a phase prompt, whose value is one of the flag --phase-prompt.
const PhasePrompt = "phase-prompt"

func addPrompt(ctx context.Context, e *engine.Engine, c *fork.Changes, value string) error {
	list, err := runs.ParsePhasePrompts([]string{value})
	if err != nil {
		return err
	}
	if c.Prompts == nil {
		c.Prompts = map[ace.Phase]*ace.PhasePrompt{}
	}
	for phase, name := range list {
		if _, ok := c.Prompts[phase]; ok {
			return cli.UsageError("--phase-prompt %s: set more than once", phase)
		}
		if c.Prompts[phase], err = runs.FindPhasePrompt(ctx, e.Prompts, phase, name); err != nil {
			return err
		}
	}
	return nil
}

// checkForkProviders returns a usage error if a phase has no provider here. A cluster may have other workers.
func checkForkProviders(a *cli.App, e *engine.Engine, p *fork.Plan) error {
	if e.Mode() == engine.Cluster {
		return nil
	}
	var known []string
	for _, x := range e.Providers {
		known = append(known, x.Name())
	}
	for _, s := range p.Rerun {
		if s.Prompt != nil {
			err := runs.CheckTakesPrompt(a, s.Provider, e.Providers)
			if _, changed := p.Changed["prompts."+string(s.Phase)]; changed && err != nil {
				return cli.UsageError("--phase-prompt %s=%s: %s; choose another provider to change a prompt",
					s.Phase, s.Prompt, cli.OneLine(err))
			} else if err != nil {
				return cli.UsageError("the %s has the prompt %s, but %s; use --phase-prompt %[1]s=default",
					s.Phase, s.Prompt, cli.OneLine(err))
			}
		}
		if blueprint, ok := ace.BlueprintOf(s.Provider); ok {
			if err := runs.CheckBlueprint(a, string(s.Phase)+" by "+s.Provider, blueprint,
				s.Phase); err != nil {
				return err
			}
			continue
		}
		if s.Provider == "" {
			continue
		}
		i := slices.Index(known, s.Provider)
		if i < 0 {
			return cli.UsageError(
				"provider %q of the %s is unknown here; use --provider; known: %s, and blueprint:NAME",
				s.Provider, s.Phase, strings.Join(known, ", "))
		}
		if err := runs.CheckReady(e.Providers[i], s.Provider, s.Model != "", false); err != nil {
			return err
		}
	}
	return nil
}

// PreparedFork returns a fork that waits for confirmation.
func PreparedFork(e *engine.Engine, p *fork.Plan, about clusterFork) sourceruns.Prepared {
	return sourceruns.Prepared{
		Title: "Fork " + p.Name() + "?", Lines: append(forkText(p), about.lines...), Yes: "fork the run",
		Do: func(ctx context.Context) (string, sourceruns.Run, error) {
			f, err := e.StartFork(ctx, p)
			if err != nil {
				return "", sourceruns.Run{}, err
			}
			run := sourceruns.Run{WorkflowID: f.WorkflowID, RunID: f.RunID, TaskID: f.TaskID}
			return "forked as " + f.TaskID, run, nil
		},
	}
}

// OriginalOf returns a run to fork with its history.
func OriginalOf(
	a *cli.App, ctx context.Context, e *engine.Engine, of sourceruns.ID, events []*historypb.HistoryEvent,
) (o sourceruns.Original, err error) {
	read, err := fork.Read(of.WorkflowID, of.RunID, events)
	if err != nil {
		return o, err
	}
	o.Plan = func(ctx context.Context, at sourceruns.Point, fields []sourceruns.Field) (p sourceruns.Prepared,
		err error) {
		plan, err := PlanFork(a, ctx, e, read, fork.Point(at), fields)
		if err != nil {
			return p, err
		}
		about, err := AboutCluster(ctx, e, plan)
		return PreparedFork(e, plan, about), err
	}
	o.Fields, err = forkFields(ctx, e, read.Input)
	return o, err
}

// forkFields returns the fields of an input that a fork may change, named like the changes.
func forkFields(ctx context.Context, e *engine.Engine, in ace.TaskInput) ([]sourceruns.Field, error) {
	prompt, label := in.Prompt, ""
	if in.PromptRef != nil {
		whole, err := e.Artifacts.Get(ctx, *in.PromptRef, maxPromptFile)
		if err != nil {
			return nil, fmt.Errorf("the prompt: %w", err)
		}
		prompt = string(whole)
	}
	if in.Label != nil {
		label = *in.Label
	}
	fields := []sourceruns.Field{{Name: "prompt", Value: prompt}, {Name: "label", Value: label},
		{Name: "playbook", Value: in.PlaybookHash[:min(len(in.PlaybookHash), shortHash)]},
		{Name: "provider", Value: in.Provider}, {Name: "model", Value: in.Model}}
	for _, step := range ace.Steps() {
		fields = append(fields, sourceruns.Field{Name: "steps." + string(step),
			Value: in.Steps[string(step)]},
			sourceruns.Field{Name: "models." + string(step), Value: in.Models[string(step)]},
			sourceruns.Field{Name: "prompts." + string(step), Value: in.Prompts.Of(step).String()})
	}
	return fields, nil
}

// shortHash is the number of digits of a hash that name a version.
const shortHash = 12

// Labeled returns lines with a label before the first.
func Labeled(label string, lines ...string) []string {
	var out []string
	for _, line := range lines {
		out = append(out, fmt.Sprintf("%-11s %s", label, line))
		label = ""
	}
	return out
}

// forkText describes what a fork does, one line per aspect.
func forkText(p *fork.Plan) []string {
	point := fmt.Sprintf("event %d, before %s", p.Event, p.Phase)
	if p.Within {
		point = fmt.Sprintf("event %d, within %s, which is rerun from its start", p.Event, p.Phase)
	}
	return slices.Concat(
		Labeled("workflow", p.WorkflowID),
		Labeled("run", p.RunID),
		Labeled("forked at", point),
		Labeled("reused", formatPhases(p.Reused)),
		Labeled("will rerun", rerunText(p)...),
		Labeled("changed", changedText(p)...),
		Labeled("merges into", branchText(p)),
		Labeled("costs", costText(p)),
	)
}

func changedText(p *fork.Plan) (changed []string) {
	for _, name := range slices.Sorted(maps.Keys(p.Changed)) {
		changed = append(changed, name+": "+ShortChange(p.Changed[name]))
	}
	if p.Same() {
		changed = []string{"nothing"}
	}
	return changed
}

func branchText(p *fork.Plan) string {
	switch {
	case p.OwnBranch:
		return "a new playbook branch"
	case p.Input.Branch == "":
		return "nothing: the delta is only recorded"
	}
	return "playbook branch " + p.Input.Branch
}

func formatPhases(list []ace.Phase) string {
	return cmp.Or(cli.Join(list), "nothing")
}

// askedAlike reports whether two phases have the same provider and model, and no prompts of their own.
func askedAlike(a, b fork.Step) bool {
	return a == b || a.Provider == b.Provider && a.Model == b.Model && a.Prompt == nil && b.Prompt == nil
}

// rerunText lists the phases to rerun, those with the same provider and model in one line.
func rerunText(p *fork.Plan) []string {
	var lines []string
	for i := 0; i < len(p.Rerun); {
		s := p.Rerun[i]
		var names []ace.Phase
		for ; i < len(p.Rerun) && askedAlike(p.Rerun[i], s); i++ {
			names = append(names, p.Rerun[i].Phase)
		}
		provider := ""
		if s.Provider != "" {
			provider = " (" + s.Provider + ", " + cmp.Or(s.Model, "no model") + ")"
		}
		if s.Prompt != nil {
			provider = strings.TrimSuffix(provider, ")") + ", prompt " + s.Prompt.String() + ")"
		}
		lines = append(lines, formatPhases(names)+provider)
	}
	return lines
}

// Shorten returns the beginning of a value, short enough for a line.
func Shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 24 {
		return string(r[:23]) + "…"
	}
	return cmp.Or(s, "none")
}

// ShortChange returns a change of a value in one line, from before the first difference.
func ShortChange(c ace.ForkChange) string {
	from := []rune(strings.Join(strings.Fields(c.From), " "))
	to := []rune(strings.Join(strings.Fields(c.To), " "))
	same := 0
	for same < min(len(from), len(to)) && from[same] == to[same] {
		same++
	}
	const context = 8 // characters before the difference
	if same <= 2*context {
		return Shorten(string(from)) + " → " + Shorten(string(to))
	}
	from, to = from[same-context:], to[same-context:]
	return Shorten("…"+string(from)) + " → " + Shorten("…"+string(to))
}

func costText(p *fork.Plan) string {
	switch {
	case !p.Costs():
		return "nothing: " + ace.Builtin + " calls no language model"
	case p.Estimate == (ace.Usage{}):
		return "an unknown amount: the original has no usage data"
	}
	amount := "about " + p.Estimate.Cost()
	if p.Estimate.Cost() == ace.UnknownCost {
		amount = "an unknown amount"
	}
	cost := fmt.Sprintf("%s, %s, as much as these phases of the original", amount,
		ace.Count(p.Estimate.InputTokens+p.Estimate.OutputTokens, "token"))
	if len(p.Unknown) > 0 {
		cost += "; without " + formatPhases(p.Unknown)
	}
	return cost
}

// clusterFork describes a fork on a cluster before it costs money. Workers may keep artifacts and playbooks
// where this process cannot look. The zero value is for the embedded server.
type clusterFork struct {
	needs    []engine.ForkNeed
	lines    []string // of the confirmation
	warnings []string // shown to the user even with --yes
}

func AboutCluster(ctx context.Context, e *engine.Engine, p *fork.Plan) (c clusterFork, err error) {
	if e.Mode() != engine.Cluster {
		return c, nil
	}
	if c.needs, err = e.ForkNeeds(ctx, p); err != nil {
		return c, err
	}
	queue, err := e.Client.DescribeTaskQueue(ctx, e.TaskQueue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return c, err
	}
	for _, n := range c.needs {
		where := ", which is in " + e.DataDir()
		if !n.Here {
			where = ", which is NOT in " + e.DataDir()
			c.warnings = append(c.warnings, "the fork needs "+n.What+where+
				"; a phase fails on a worker without it")
		}
		c.lines = append(c.lines, shortHashes(n.What)+where)
	}
	if len(c.lines) > 0 {
		c.lines = append(c.lines, "Every worker of the cluster needs this data. acescope cannot check the workers.",
			"A phase fails on a worker that does not have the data.")
	}
	alive, _ := system.LivePollers(queue.GetPollers(), time.Now())
	workers := ace.Count(len(alive), "worker") + " of the cluster"
	if strings.HasPrefix(workers, "0 ") {
		workers = "none; the fork waits until a worker polls task queue " + e.TaskQueue
		c.warnings = append(c.warnings, "workers: "+workers)
	}
	c.lines = append(Labeled("needs", c.lines...), Labeled("workers", workers)...)
	return c, nil
}

// shortHashes truncates the hashes in a text.
func shortHashes(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		if hash := strings.TrimRight(w, ")"); len(hash) == 64 {
			words[i] = hash[:12] + w[64:]
		}
	}
	return strings.Join(words, " ")
}
