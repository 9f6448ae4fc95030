package flows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/history"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/flowfork"
	"acescope/engine/temporal/fork"
	sourceruns "acescope/sources/runs"
)

// FlowForkLine is a fork of a run of a flow. A dry run has no IDs.
type FlowForkLine struct {
	DryRun         bool   `json:"dry_run,omitempty"`
	ID             string `json:"id,omitempty"`
	ForkWorkflowID string `json:"workflow_id,omitempty"`
	ForkRunID      string `json:"run_id,omitempty"`
	*flowfork.Plan
}

func Fork(a *cli.App, ctx context.Context, e *engine.Engine, f history.FlowFork) error {
	p, err := PlanFork(a, f)
	if err != nil {
		return err
	}
	line := FlowForkLine{DryRun: f.Dry, Plan: p}
	prepared := PreparedFork(e, p)
	if f.Dry {
		return history.ReportDry(a, line, prepared.Lines)
	}
	if err := a.Confirm(ctx, prepared, f.Yes); err != nil {
		return err
	}
	if line.ID, line.ForkRunID, err = engine.StartFlowFork(ctx, e, p, ace.User()); err != nil {
		return err
	}
	line.ForkWorkflowID = flow.IDPrefix + line.ID
	if err := cli.Report(a, line, "%s is forked from %s; reuses %s, will rerun %d", line.ID, p.Name(),
		ace.Count(len(p.Reused), "operation"), len(p.Rerun)); err != nil {
		return err
	}
	if !f.Follow && e.Mode() != engine.Embedded {
		return nil
	}
	if !f.Follow {
		cli.Warn(a, "no other process runs workers for this data directory: this one waits until %s closes",
			line.ID)
	}
	return Follow(a, ctx, e, line.ForkWorkflowID, line.ForkRunID, line.ID)
}

func PlanFork(a *cli.App, f history.FlowFork) (*flowfork.Plan, error) {
	in, ok := flow.InputOf(f.Events[0])
	if !ok {
		return nil, errors.New("the input of the run cannot be read; give --codec-endpoint if it is encoded")
	}
	current, err := flow.Parsed(in.Source, in.Digest)
	if err != nil {
		return nil, err
	}
	c, err := changesOf(a, f.Changes, current)
	if err != nil {
		return nil, err
	}
	id := cmp.Or(f.WorkflowID, f.Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId())
	p, err := flowfork.New(id, f.Events, f.At, c)
	if errors.Is(err, fork.ErrPoint) || errors.Is(err, fork.ErrNoChange) {
		return nil, cli.UsageError("%s: %w", id, err)
	}
	return p, err
}

// changesOf returns what a fork of a run of a flow changes.
func changesOf(a *cli.App, fields []sourceruns.Field, f *flow.Flow) (c flowfork.Changes, err error) {
	var inputs []string
	for _, field := range fields {
		switch name, isInput := strings.CutPrefix(field.Name, history.InputKey); {
		case isInput:
			inputs = append(inputs, name+"="+field.Value)
		case field.Name == "prompt":
			if strings.TrimSpace(field.Value) == "" {
				return c, cli.UsageError("the prompt is empty")
			}
			c.Prompt = &field.Value
		case field.Name == "flow":
			entry, err := Find(a, field.Value)
			if err != nil {
				return c, err
			}
			f = entry.Flow
			c.Source = &entry.Source
		default:
			return c, cli.UsageError(
				"%s: not possible for a run of a flow; a fork can change %sNAME, prompt and flow",
				cli.SafeText(field.Name), history.InputKey)
		}
	}
	data, err := agents.ParseParams(inputs, f.Schema)
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(data, &c.Inputs)
}

// PreparedFork returns a fork of a run of a flow that waits for confirmation.
func PreparedFork(e *engine.Engine, p *flowfork.Plan) sourceruns.Prepared {
	return sourceruns.Prepared{Title: "Fork " + p.Name() + "?", Yes: "fork the run", Lines: forkText(p),
		Do: func(ctx context.Context) (string, sourceruns.Run, error) {
			id, runID, err := engine.StartFlowFork(ctx, e, p, ace.User())
			if err != nil {
				return "", sourceruns.Run{}, err
			}
			return "forked as " + id, sourceruns.Run{WorkflowID: flow.IDPrefix + id, RunID: runID,
				Type: flow.Workflow}, nil
		}}
}

// forkText describes what a fork does, one line per aspect.
func forkText(p *flowfork.Plan) []string {
	point := fmt.Sprintf("event %d", p.Event)
	if p.Step != "" {
		point = "before step " + p.Step
	}
	changed := []string{"nothing"}
	if len(p.Changed) > 0 {
		changed = nil
	}
	for _, name := range slices.Sorted(maps.Keys(p.Changed)) {
		value := p.Changed[name]
		changed = append(changed, name+": "+history.ShortChange(value))
	}
	again := []string{"no operation"}
	if len(p.Rerun) > 0 {
		again = nil
	}
	for _, op := range p.Rerun {
		text := op.ID
		if op.Changed {
			text += " (before the point, but with other parameters)"
		}
		again = append(again, text)
	}
	return slices.Concat(history.Labeled("workflow", p.WorkflowID), history.Labeled("run", p.RunID),
		history.Labeled("forked at", point), history.Labeled("reused", few(p.Reused, "no operation")...),
		history.Labeled("will rerun", few(again, "")...), history.Labeled("changed", changed...),
		history.Labeled("costs", flowCost(p)))
}

// maxLines bounds the operations of a preview.
const maxLines = 12

// few returns the first [maxLines] lines of a list, and the number of the others.
func few(lines []string, none string) []string {
	switch n := len(lines); {
	case n == 0:
		return []string{none}
	case n > maxLines:
		return append(slices.Clone(lines[:maxLines]), fmt.Sprintf("and %d more", n-maxLines))
	}
	return lines
}

func flowCost(p *flowfork.Plan) string {
	text := "nothing that the original recorded"
	if p.Estimate != (ace.Usage{}) {
		amount := "about " + p.Estimate.Cost()
		if p.Estimate.Unpriced && p.Estimate.CostUSD == 0 {
			amount = "an unknown amount"
		}
		text = fmt.Sprintf("%s, %s, as much as these operations of the original", amount,
			ace.Count(p.Estimate.InputTokens+p.Estimate.OutputTokens, "token"))
	}
	if p.Unknown > 0 {
		text += fmt.Sprintf("; without %s that the original did not execute",
			ace.Count(p.Unknown, "operation"))
	}
	return text
}
