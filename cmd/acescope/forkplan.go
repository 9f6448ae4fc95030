package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/fork"
	"acescope/sources"
	"acescope/views"
)

// historyOf reads a run's history as it is now.
func historyOf(ctx context.Context, c client.Client, workflowID, runID string) ([]*historypb.HistoryEvent, error) {
	var events []*historypb.HistoryEvent
	iter := c.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// planFork works a fork out and checks that it can be started here. Fields are the flags'
// names, or those that --set takes.
func (a *app) planFork(ctx context.Context, e *engine.Engine, o *fork.Original, at fork.Point, fields []views.Field) (*fork.Plan, error) {
	c, err := forkChanges(ctx, e, fields)
	if err != nil {
		return nil, err
	}
	p, err := o.Plan(at, c)
	if errors.Is(err, fork.ErrPoint) || errors.Is(err, fork.ErrNoChange) {
		return nil, usage("%s: %w", o.WorkflowID, err)
	}
	if err != nil {
		return nil, err
	}
	if err := e.CheckFork(p); errors.Is(err, engine.ErrGone) {
		return nil, &coded{exitNotFound, err}
	} else if err != nil {
		return nil, err
	}
	return p, a.checkProviders(e, p)
}

func forkChanges(ctx context.Context, e *engine.Engine, fields []views.Field) (c fork.Changes, err error) {
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
				return c, usage("the prompt is empty")
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
				return c, usage("%w", err)
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
	hash, err := startBook(e, name)
	var c *coded
	if errors.As(err, &c) && c.code == exitNotFound {
		return "", &coded{exitNotFound, fmt.Errorf("--playbook %s: no such file, no line of playbooks and no version of that hash", name)}
	}
	return hash, err
}

// checkProviders refuses a fork that nobody here could serve. A cluster may have other
// workers.
func (a *app) checkProviders(e *engine.Engine, p *fork.Plan) error {
	if e.Mode() == engine.Cluster {
		return nil
	}
	var known []string
	for _, x := range e.Providers {
		known = append(known, x.Name())
	}
	for _, s := range p.Anew {
		if blueprint, program := ace.BlueprintOf(s.Provider); program {
			if err := a.checkBlueprint(string(s.Phase)+" by "+s.Provider, blueprint, s.Phase); err != nil {
				return err
			}
			continue
		}
		if s.Provider != "" && !slices.Contains(known, s.Provider) {
			return usage("%s would be served by the provider %q, which is unknown here; give --provider; known: %s, and blueprint:NAME", s.Phase, s.Provider, strings.Join(known, ", "))
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
	lines := []string{"workflow    " + p.WorkflowID, "run         " + p.RunID, "forked at   " + from, "taken over  " + phaseList(p.Taken)}
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
	for i := 0; i < len(p.Anew); {
		s := p.Anew[i]
		var names []ace.Phase
		for ; i < len(p.Anew) && p.Anew[i].Provider == s.Provider && p.Anew[i].Model == s.Model; i++ {
			names = append(names, p.Anew[i].Phase)
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

// preparedFork is a fork that waits for a yes.
func preparedFork(e *engine.Engine, p *fork.Plan, about clusterFork) views.Prepared {
	return views.Prepared{Title: "Fork " + p.Name() + "?", Lines: append(forkText(p), about.text()...), Yes: "fork it",
		Do: func(ctx context.Context) (string, sources.Run, error) {
			f, err := e.StartFork(ctx, p)
			if err != nil {
				return "", sources.Run{}, err
			}
			return "forked as " + f.TaskID, sources.Run{WorkflowID: f.WorkflowID, RunID: f.RunID, TaskID: f.TaskID}, nil
		}}
}

// preparedReset is a reset that waits for a yes. The server ends whichever run of the id is
// open, so that one is named too.
func preparedReset(ctx context.Context, e *engine.Engine, of views.Target, at fork.Reset, reason string) (views.Prepared, error) {
	newest, open, err := e.Newest(ctx, of.WorkflowID)
	if err != nil {
		return views.Prepared{}, err
	}
	ends := "the run has ended; a new one of the same id begins"
	switch {
	case open && newest == of.RunID:
		ends = "the run   ends, and a new one of the same id goes on"
	case open:
		ends = "also ends run " + newest + ", which is open and newer, for the new one"
	}
	return views.Prepared{Title: "Reset " + ace.TaskIDOf(of.WorkflowID) + "?", Yes: "reset it",
		Lines: []string{"workflow  " + of.WorkflowID, "run       " + of.RunID,
			"keeps     events 1 to " + strconv.FormatInt(at.Kept, 10) + ", and the same input",
			"decides   anew what " + strconv.FormatInt(at.Lost, 10) + " events told; steps after it cost again",
			ends, "reason    " + reason},
		Do: func(ctx context.Context) (string, sources.Run, error) {
			runID, err := e.Reset(ctx, of.WorkflowID, of.RunID, at.Event, newest, reason)
			return "reset: it goes on as run " + runID, sources.Run{WorkflowID: of.WorkflowID, RunID: runID, TaskID: ace.TaskIDOf(of.WorkflowID)}, err
		}}, nil
}

func preparedTerminate(e *engine.Engine, of views.Target, reason string) views.Prepared {
	return views.Prepared{Title: "Terminate " + ace.TaskIDOf(of.WorkflowID) + "?", Yes: "terminate it",
		Lines: []string{"workflow  " + of.WorkflowID, "run       " + of.RunID, "it ends at once and cannot clean up; cancel asks it to end", "reason    " + reason},
		Do: func(ctx context.Context) (string, sources.Run, error) {
			return "terminated " + of.WorkflowID, sources.Run{}, e.Terminate(ctx, of.WorkflowID, of.RunID, reason)
		}}
}

func preparedSignal(e *engine.Engine, of views.Target, name string, arg []byte) views.Prepared {
	return views.Prepared{Title: "Signal " + ace.TaskIDOf(of.WorkflowID) + "?", Yes: "send it",
		Lines: []string{"workflow  " + of.WorkflowID, "run       " + of.RunID, "signal    " + name, "argument  " + cmp.Or(cut(arg, 60), "none")},
		Do: func(ctx context.Context) (string, sources.Run, error) {
			return "sent " + name + " to " + of.WorkflowID, sources.Run{}, e.Signal(ctx, of.WorkflowID, of.RunID, name, arg)
		}}
}
