package flows

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/history"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/flowfork"
	"acescope/engine/flow/library"
	"acescope/engine/temporal/fork"
	"acescope/sources/cluster"
	flowsource "acescope/sources/flows"
	sourceruns "acescope/sources/runs"
)

type runFlags struct {
	inputs []string
	all    string
	prompt string
	dir    string
	id     string
	detach bool
}

func runCommand(a *cli.App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FLOW",
		Short: "Run a flow and show its steps",
		Long: "Run a flow. The command writes each step that ends to standard error and the outputs to standard output. The exit\n" +
			"code is 0 if the flow completed and 1 if it failed. Programs and agents work in --dir. An interrupted run is kept:\n" +
			"it continues when acescope runs on the same data directory again.",
		Example: "acescope flow run package-build --dir . --prompt 'A command that counts words'\n" +
			"acescope flow run ./release.yaml --input version=1.2.0 --input 'targets:=[\"linux\"]' --json",
		RunE: func(cmd *cobra.Command, args []string) error { return run(a, cmd.Context(), args[0], f) },
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&f.inputs, "input", nil, "input as NAME=VALUE or NAME:=JSON; can be repeated")
	fs.StringVar(&f.all, "inputs", "", "all inputs as a JSON object; @FILE reads a file, - standard input")
	fs.StringVar(&f.prompt, "prompt", "", "the input \"prompt\"; @FILE reads a file, - standard input")
	fs.StringVar(&f.dir, "dir", ".", "directory in which programs and agents work")
	fs.StringVar(&f.id, "id", "", "ID of the run (default: name of the flow and time)")
	fs.BoolVar(&f.detach, "detach", false, "start it and return; a background process executes it")
	a.AgentDirsFlag(fs)
	cli.ProgramFlags(a, fs)
	cmd.MarkFlagsMutuallyExclusive("input", "inputs")
	cmd.MarkFlagsMutuallyExclusive("prompt", "inputs")
	return cmd
}

func run(a *cli.App, ctx context.Context, name string, f runFlags) error {
	entry, err := Find(a, name)
	if err != nil {
		return err
	}
	in, err := f.input(ctx, entry)
	if err != nil {
		return err
	}
	f.id = cmp.Or(f.id, cli.NewID(entry.Name))
	if f.id != cli.SafeText(f.id) || len(f.id) > 200 {
		return cli.UsageError("--id %q: use at most 200 letters, digits, dots, dashes and underscores", f.id)
	}
	begin := func() error {
		e, err := a.Open(ctx, !f.detach)
		if err != nil {
			return err
		}
		return start(a, ctx, e, in, f)
	}
	if f.detach {
		return runs.HandOver(a, ctx, begin)
	}
	return begin()
}

// input returns the checked input of a run.
func (f runFlags) input(ctx context.Context, entry library.Entry) (in flow.Input, err error) {
	in = flow.Input{Name: entry.Name, Source: entry.Source, By: ace.User()}
	if in.Dir, err = filepath.Abs(f.dir); err != nil {
		return in, err
	}
	if !cli.IsDir(in.Dir) {
		return in, cli.UsageError("--dir %s: there is no such directory", cli.SafeText(f.dir))
	}
	in.Inputs, err = f.values(ctx, entry.Flow)
	if err != nil {
		return in, err
	}
	if in.Inputs, err = entry.Flow.CheckInputs(in.Inputs); err != nil {
		return in, cli.UsageError("%w; \"acescope flow show %s\" lists them", err, entry.Name)
	}
	return in, nil
}

func (f runFlags) values(ctx context.Context, fl *flow.Flow) (json.RawMessage, error) {
	if f.all != "" {
		return agents.ReadArgument(ctx, "--inputs", f.all, flow.MaxSource)
	}
	params := f.inputs
	if f.prompt != "" {
		prompt, err := agents.ReadArgument(ctx, "--prompt", f.prompt, flow.MaxSource)
		if err != nil {
			return nil, err
		}
		params = append(params, "prompt="+string(prompt))
	}
	return agents.ParseParams(params, fl.Schema)
}

// StartedLine reports that a run of a flow has begun.
type StartedLine struct {
	Name       string `json:"name"`
	ID         string `json:"id"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Digest     string `json:"digest"`
	PID        int    `json:"pid,omitempty"` // of the background process that executes it
}

// ResultLine reports the end of a run.
type ResultLine struct {
	Name       string         `json:"name"`
	WorkflowID string         `json:"workflow_id"`
	RunID      string         `json:"run_id"`
	Status     ace.Status     `json:"status"`
	Outputs    map[string]any `json:"outputs"`
	Usage      ace.Usage      `json:"usage,omitzero"`
	Operations int            `json:"operations"`
	DurationMS float64        `json:"duration_ms" jsonschema:"time that the command followed the run"`
	Failure    *ace.Failure   `json:"failure,omitempty"`
}

func start(a *cli.App, ctx context.Context, e *engine.Engine, in flow.Input, f runFlags) error {
	in.Queue = engine.FlowQueue(e)
	runID, err := engine.StartFlow(ctx, e, f.id, in)
	if err != nil {
		return err
	}
	a.Begun = true
	id := flow.IDPrefix + f.id
	line := StartedLine{in.Name, f.id, id, runID, in.Source.Digest(), a.Background}
	if f.detach {
		return cli.Report(a, line, "started %s; follow it with \"acescope tail %s\"", f.id, f.id)
	}
	if a.JSON {
		if err := cli.NewLines(a).Write(line); err != nil {
			return err
		}
	} else {
		cli.Warn(a, "started %s", f.id)
	}
	return Follow(a, ctx, e, id, runID, f.id)
}

// Follow reports the steps of a run until it closes.
func Follow(a *cli.App, ctx context.Context, e *engine.Engine, workflowID, runID, id string) error {
	begun := time.Now()
	p := &printer{a: a, seen: map[string]flow.Status{}}
	r, err := flowsource.Follow(ctx, e.Client, e.Namespace(), workflowID, runID, runs.ReportConnection(a),
		p.changed)
	if err != nil {
		runs.Interrupted(a, ctx, id)
		return err
	}
	line := ResultLine{Name: r.Input.Name, WorkflowID: workflowID, RunID: runID, Status: r.Status,
		Usage: r.State.Usage, Operations: r.State.Operations, DurationMS: cluster.Millis(time.Since(begun)),
		Failure: r.Failure}
	if r.Result != nil {
		line.Outputs = r.Result.Outputs
	}
	return cmp.Or(p.err, p.result(line))
}

// printer reports steps as they change.
type printer struct {
	a    *cli.App
	seen map[string]flow.Status
	err  error
}

func (p *printer) changed(r flowsource.Run) {
	for i := range r.State.Steps {
		p.report(r.State.Steps[i:])
	}
}

// report reports the first of the steps if its status is new. One event may end a step together with steps in
// it, which are reported before it.
func (p *printer) report(steps []flow.StepState) {
	s := steps[0]
	if p.seen[s.Path] == s.Status || p.err != nil {
		return
	}
	p.seen[s.Path] = s.Status
	for i, inner := range steps {
		if s.Status.Over() && strings.HasPrefix(inner.Path, s.Path+"/") {
			p.report(steps[i:])
		}
	}
	switch {
	case p.err != nil:
	case p.a.JSON:
		p.err = cli.NewLines(p.a).Write(s)
	case s.Status != flow.StepRunning:
		cli.Warn(p.a, "%s", stepText(s))
	}
}

// stepText describes the state of a step in one line.
func stepText(s flow.StepState) string {
	text := fmt.Sprintf("%-9s %s", s.Status, s.Path)
	if s.Name != "" {
		text += " (" + s.Name + ")"
	}
	if s.Status.Over() && !s.End.IsZero() && s.End.Sub(s.Start) >= time.Second {
		text += " " + s.End.Sub(s.Start).Round(100*time.Millisecond).String()
	}
	if detail := cmp.Or(s.Error, s.Detail); detail != "" {
		text += ": " + detail
	}
	if s.Status == flow.StepWaiting && s.Approval {
		text += " (decide with \"acescope flow approve\" or \"flow reject\")"
	}
	return text
}

func (p *printer) result(line ResultLine) error {
	var failed error
	if line.Status.Bad() {
		failed = fmt.Errorf("the flow %s: %s", line.Name, line.Status)
		if line.Failure != nil {
			failed = fmt.Errorf("the flow %s: %s: %s", line.Name, line.Status, line.Failure.Message)
		}
	}
	if p.a.JSON {
		return cmp.Or(cli.NewLines(p.a).Write(line), failed)
	}
	if failed == nil {
		text := ace.Count(line.Operations, "operation")
		if line.Usage != (ace.Usage{}) {
			text += ", " + line.Usage.Cost()
		}
		cli.Warn(p.a, "%s in %.1f s, %s", line.Status, line.DurationMS/1000, text)
	}
	if failed != nil && line.Outputs == nil {
		return failed
	}
	outputs, err := json.MarshalIndent(line.Outputs, "", "  ")
	if err == nil {
		_, err = fmt.Fprintln(p.a.Out, string(outputs))
	}
	return cmp.Or(failed, err)
}

// FlowForkLine is a fork of a run of a flow. A dry run has no IDs.
type FlowForkLine struct {
	DryRun         bool   `json:"dry_run,omitempty"`
	ID             string `json:"id,omitempty" jsonschema:"id of the fork"`
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
