package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"charm.land/bubbles/v2/progress"
	"github.com/charmbracelet/x/term"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/temporal/history"
	"acescope/sources/detail"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/sources/runs"
)

// SummaryLine ends the output of acescope run.
type SummaryLine struct {
	Type           string            `json:"type"` // summary
	ExperimentID   string            `json:"experiment_id"`
	WorkflowID     string            `json:"workflow_id"`
	RunID          string            `json:"run_id"`
	Provider       string            `json:"provider"`
	Model          string            `json:"model"`
	ExitStatus     ace.ExitStatus    `json:"exit_status"`
	Tasks          int               `json:"tasks"`
	Correct        int               `json:"correct"`
	Epochs         []ace.EpochResult `json:"epochs"`
	Eval           []ace.EvalResult  `json:"eval"`
	InputTokens    int64             `json:"input_tokens"`
	OutputTokens   int64             `json:"output_tokens"`
	CostUSD        float64           `json:"cost_usd"`
	Unpriced       bool              `json:"unpriced,omitempty"`    // the cost lacks what has no known price
	DurationMS     float64           `json:"duration_ms,omitempty"` // from start to end; not in a tail
	PlaybookBefore string            `json:"playbook_before"`
	PlaybookAfter  string            `json:"playbook_after"`
	Bullets        int               `json:"bullets"`
	Accepted       int               `json:"operations_accepted"`
	Rejected       int               `json:"operations_rejected"`
	Failure        *ace.Failure      `json:"failure,omitempty"`
}

// runExperiment starts an experiment and follows it to its end.
func runExperiment(a *cli.App, ctx context.Context, e *engine.Engine, in ace.ExperimentInput, f RunFlags) error {
	runID, err := e.StartExperiment(ctx, in)
	if err != nil {
		return lacking(ctx, e, err)
	}
	id := ace.ExperimentWorkflowID(in.ExperimentID)
	say(a, e, f, "experiment "+in.ExperimentID)
	if f.detach {
		return started(a, id, runID, in.ExperimentID)
	}
	begun := time.Now()
	state, err := follow(a, ctx, e, in, id, runID)
	if err != nil {
		Interrupted(a, ctx, in.ExperimentID)
		return err
	}
	sum := summaryOf(state)
	sum.WorkflowID, sum.RunID, sum.DurationMS = id, runID, cli.Millis(time.Since(begun))
	if err := printSummary(a, sum); err != nil {
		return err
	}
	if sum.ExitStatus != ace.Success {
		return fmt.Errorf("experiment %s: %s%s", in.ExperimentID, sum.ExitStatus, because(state.Failure))
	}
	return nil
}

func because(f *ace.Failure) string {
	if f == nil {
		return ""
	}
	return ": " + f.Message
}

// say tells on standard error what answers, and what slows it.
func say(a *cli.App, e *engine.Engine, f RunFlags, what string) {
	for _, p := range e.Providers {
		if p.Name() == f.Provider {
			fmt.Fprintf(a.Err, "acescope: %s: %s\n", what, p.About())
		}
	}
	if blueprint, program := ace.BlueprintOf(f.Provider); program {
		fmt.Fprintf(a.Err, "acescope: %s: runs of the blueprint %s\n", what, blueprint)
	}
	for _, step := range servedSteps() {
		if by := f.served[string(step)]; by != "" {
			fmt.Fprintf(a.Err, "acescope: %s: the %s by %s\n", what, step, cli.SafeText(by))
		}
	}
	if f.Pace > 0 {
		fmt.Fprintf(a.Err, "acescope: every phase is held for %s (--pace)\n", f.Pace)
	}
}

// TaskError says in one sentence why a task has no result: the words of whoever failed,
// without those of everything that handed them on.
func TaskError(id string, err error) error {
	var failed *temporal.ApplicationError
	if errors.As(err, &failed) {
		return fmt.Errorf("task %s: %s", id, history.FailureFrom(err).Message)
	}
	return fmt.Errorf("task %s: %w", id, err)
}

// lacking adds to an error of a start what the namespace lacks and how to add it, where
// that may be the reason.
func lacking(ctx context.Context, e *engine.Engine, err error) error {
	var refused *serviceerror.InvalidArgument
	if !errors.As(err, &refused) {
		return err
	}
	missing, listErr := runs.MissingAttributes(ctx, e.Client, e.Namespace())
	if listErr != nil || len(missing) == 0 {
		return err
	}
	return fmt.Errorf("%w; add what the namespace lacks: %s", err, ace.SearchAttributesCommand(e.Namespace(), missing))
}

// StartedLine says that a run goes on without this process. PID is the process in the
// background that carries it on, 0 on a cluster.
type StartedLine struct {
	Type       string `json:"type"` // started
	ID         string `json:"id"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	PID        int    `json:"pid,omitempty"`
}

func started(a *cli.App, workflowID, runID, id string) error {
	a.Begun = true
	if a.JSON {
		return cli.NewLines(a.Out).Write(StartedLine{"started", id, workflowID, runID, a.Background})
	}
	_, err := fmt.Fprintf(a.Out, "started %s; acescope tail %s follows it\n", id, id)
	return err
}

func Interrupted(a *cli.App, ctx context.Context, id string) {
	if ctx.Err() != nil {
		fmt.Fprintf(a.Err, "acescope: %s is kept and goes on when acescope runs again; acescope cancel %s ends it\n", id, id)
	}
}

// follow reports each task as it ends: as a line of JSON, or on a progress bar.
func follow(a *cli.App, ctx context.Context, e *engine.Engine, in ace.ExperimentInput, id, runID string) (*ace.ExperimentState, error) {
	out := cli.NewLines(a.Out)
	bar := newBar(a, in.Tasks*in.Epochs)
	defer bar.clear()
	var writeErr error
	state, err := experiments.FollowExperiment(ctx, e.Client, e.Namespace(), id, runID, func(p0 error) { away(a, p0) }, func(_ ace.ExperimentInput, f experiments.Finished) {
		bar.add(f.Result.Correct)
		if a.JSON && writeErr == nil {
			writeErr = out.Write(cli.FinishedLine(f, in))
		}
	})
	if err == nil {
		err = writeErr
	}
	return state, err
}

func summaryOf(state *ace.ExperimentState) SummaryLine {
	in, p := state.Input, state.Progress
	s := SummaryLine{Type: "summary", ExperimentID: in.ExperimentID, Provider: in.Provider, Model: in.Model,
		ExitStatus: state.ExitStatus(), Epochs: p.Epochs, Eval: p.Eval, InputTokens: p.Usage.InputTokens,
		OutputTokens: p.Usage.OutputTokens, CostUSD: p.Usage.CostUSD, Unpriced: p.Usage.Unpriced, PlaybookBefore: p.Before, PlaybookAfter: p.After,
		Bullets: p.Bullets, Accepted: p.Accepted, Rejected: p.Rejected, Failure: state.Failure}
	for _, e := range p.Epochs {
		s.Tasks += e.Tasks
		s.Correct += e.Correct
	}
	return s
}

func printSummary(a *cli.App, s SummaryLine) error {
	if a.JSON {
		return cli.NewLines(a.Out).Write(s)
	}
	took := ""
	if s.DurationMS > 0 {
		took = fmt.Sprintf(", %.1f s", s.DurationMS/1000)
	}
	cost := fmt.Sprintf("$%.4f", s.CostUSD)
	switch {
	case s.Unpriced && s.CostUSD == 0:
		cost = "cost not known"
	case s.Unpriced:
		cost = "more than " + cost
	}
	fmt.Fprintf(a.Out, "experiment %s: %s, %d tasks, %d correct%s, %s\n", s.ExperimentID, s.ExitStatus, s.Tasks, s.Correct, took, cost)
	return printExperiment(a.Out, ace.ExperimentProgress{Epochs: s.Epochs, Eval: s.Eval, Before: s.PlaybookBefore, After: s.PlaybookAfter,
		Bullets: s.Bullets, Accepted: s.Accepted, Rejected: s.Rejected})
}

// bar is a progress bar on standard error, if that is a terminal.
type bar struct {
	model   progress.Model
	w       *os.File
	total   int
	done    int
	correct int
	judged  int
}

func newBar(a *cli.App, total int) *bar {
	b := &bar{total: total}
	if f, ok := a.Err.(*os.File); ok && term.IsTerminal(f.Fd()) && !a.JSON {
		b.w = f
		b.model = progress.New(progress.WithWidth(40))
	}
	return b
}

func (b *bar) add(correct *bool) {
	b.done++
	if correct != nil {
		b.judged++
		if *correct {
			b.correct++
		}
	}
	if b.w == nil {
		return
	}
	fmt.Fprintf(b.w, "\r%s %d/%d tasks, %d of %d correct ", b.model.ViewAs(float64(b.done)/float64(max(b.total, 1))), b.done, b.total, b.correct, b.judged)
}

func (b *bar) clear() {
	if b.w != nil {
		fmt.Fprint(b.w, "\r"+strings.Repeat(" ", 79)+"\r")
	}
}

// runTask starts one task and follows it to its end.
func runTask(a *cli.App, ctx context.Context, e *engine.Engine, in ace.TaskInput, f RunFlags) error {
	runID, err := e.StartTask(ctx, in)
	if err != nil {
		return lacking(ctx, e, err)
	}
	id := ace.WorkflowID(in.TaskID)
	say(a, e, f, "task "+in.TaskID)
	if f.detach {
		return started(a, id, runID, in.TaskID)
	}
	var result ace.TaskResult
	if err := e.Client.GetWorkflow(ctx, id, runID).Get(ctx, &result); err != nil {
		Interrupted(a, ctx, in.TaskID)
		return TaskError(in.TaskID, err)
	}
	d, err := detail.Read(ctx, e.Client, id, runID)
	if err != nil {
		return err
	}
	if !a.JSON {
		return PrintShow(a.Out, d, LineOf(d))
	}
	return TaskLines(a, in, d, result)
}

func TaskLines(a *cli.App, in ace.TaskInput, d *histories.Detail, r ace.TaskResult) error {
	out := cli.NewLines(a.Out)
	line := cli.RunLine{Type: "run", TaskID: in.TaskID, WorkflowID: d.WorkflowID, RunID: d.RunID, ExperimentID: in.ExperimentID,
		DatasetID: in.DatasetID, Model: in.Model, Adapter: string(in.Adapter), ExitStatus: r.ExitStatus, Start: &d.Start,
		Close: &d.Close, DurationMS: cli.Millis(d.Close.Sub(d.Start)), Summary: &r.Summary, Answer: r.Answer, Correct: r.Correct,
		Playbook: r.PlaybookHash}
	if err := out.Write(line); err != nil {
		return err
	}
	sum := SummaryLine{Type: "summary", ExperimentID: in.ExperimentID, WorkflowID: d.WorkflowID, RunID: d.RunID,
		Provider: in.Provider, Model: in.Model, ExitStatus: r.ExitStatus, Tasks: 1, Epochs: []ace.EpochResult{}, Eval: []ace.EvalResult{},
		InputTokens: r.Summary.Usage.InputTokens, OutputTokens: r.Summary.Usage.OutputTokens, CostUSD: r.Summary.Usage.CostUSD,
		DurationMS: line.DurationMS, PlaybookBefore: d.Delta.PlaybookBefore, PlaybookAfter: r.PlaybookHash, Bullets: d.Delta.Bullets,
		Accepted: r.Summary.Accepted(), Rejected: r.Summary.Rejected}
	if r.Correct != nil && *r.Correct {
		sum.Correct = 1
	}
	return out.Write(sum)
}
