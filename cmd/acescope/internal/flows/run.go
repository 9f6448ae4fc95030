package flows

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/cmd/acescope/internal/agents"
	"acescope/cmd/acescope/internal/cli"
	"acescope/cmd/acescope/internal/runs"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/flow"
	"acescope/engine/flow/library"
	"acescope/sources/cluster"
	flowsource "acescope/sources/flows"
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
		Args: cobra.ExactArgs(1),
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
	DurationMS float64        `json:"duration_ms"`
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
