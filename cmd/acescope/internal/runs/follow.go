package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"acescope/cmd/acescope/internal/cli"
	"acescope/engine"
	"acescope/engine/ace"
	"acescope/engine/learning/stats"
	"acescope/engine/temporal/history"
	"acescope/sources/cluster"
	"acescope/sources/detail"
	"acescope/sources/evaluations"
	"acescope/sources/experiments"
	"acescope/sources/histories"
	"acescope/theme"
	"acescope/tui/widget"
)

// SummaryLine ends the output of acescope run.
type SummaryLine struct {
	ExperimentID string      `json:"experiment_id"`
	WorkflowID   string      `json:"workflow_id"`
	RunID        string      `json:"run_id"`
	Provider     string      `json:"provider"`
	Model        string      `json:"model"`
	Status       ace.Status  `json:"status"`
	Verdict      ace.Verdict `json:"verdict,omitempty"` // of a single task
	taskCounts
	Epochs []cli.EpochLine `json:"epochs"`
	Eval   []cli.EvalLine  `json:"eval"`
	ace.Usage
	DurationMS     float64      `json:"duration_ms,omitempty"` // from start to end; 0 in tail
	PlaybookBefore string       `json:"playbook_before"`
	PlaybookAfter  string       `json:"playbook_after"`
	Bullets        int          `json:"bullets"`
	Accepted       int          `json:"operations_accepted"`
	Rejected       int          `json:"operations_rejected"`
	Failure        *ace.Failure `json:"failure,omitempty"`
	Stopped        string       `json:"stopped,omitempty"` // why it ended early
}

// taskCounts counts closed tasks. Tasks leaves out the canceled ones.
type taskCounts struct {
	Tasks     int `json:"tasks"`
	Correct   int `json:"correct"`
	Wrong     int `json:"wrong"`
	Unlabeled int `json:"unlabeled"`
	Ungraded  int `json:"ungraded"`
	Failed    int `json:"failed"`
	Canceled  int `json:"canceled,omitempty"`
}

func countsOf(epochs ...ace.EpochResult) (c taskCounts) {
	for _, e := range epochs {
		c.Tasks += e.Tasks
		c.Correct += e.Correct
		c.Wrong += e.Wrong
		c.Unlabeled += e.Unlabeled
		c.Ungraded += e.Ungraded
		c.Failed += e.Failed
		c.Canceled += e.Canceled
	}
	return c
}

func (c taskCounts) String() string {
	return countsText(map[string]int{string(ace.Correct): c.Correct, string(ace.Wrong): c.Wrong,
		string(ace.Failed): c.Failed, string(ace.Unlabeled): c.Unlabeled, string(ace.Ungraded): c.Ungraded,
		string(ace.Canceled): c.Canceled})
}

// runExperiment starts an experiment and, without --detach, follows it until it closes.
func runExperiment(
	a *cli.App, ctx context.Context, e *engine.Engine, in ace.ExperimentInput, f runFlags,
) error {
	runID, err := e.StartExperiment(ctx, in)
	if errors.Is(err, engine.ErrExists) {
		if in.Answered = answeredBefore(ctx, e, in); in.Answered != nil {
			cli.Warn(a, "experiment %s: answering only the evaluation items that have no answer",
				in.ExperimentID)
			runID, err = e.StartExperiment(ctx, in)
		}
	}
	if err != nil {
		return err
	}
	id := ace.ExperimentWorkflowID(in.ExperimentID)
	reportDesign(a, in)
	reportProviders(a, e, f, "experiment "+in.ExperimentID)
	if f.detach {
		return reportStarted(a, id, runID, in.ExperimentID)
	}
	if f.review.on {
		defer reportReviews(a, ctx, e, id)()
	}
	start := time.Now()
	state, err := follow(a, ctx, e, in, id, runID)
	if err != nil {
		Interrupted(a, ctx, in.ExperimentID)
		return err
	}
	err = printSummary(a, state, id, runID, time.Since(start))
	if err == nil && in.Ablation != nil {
		err = reportAblation(a, ctx, e, in)
	}
	return err
}

// answeredBefore returns what a closed run of the experiment with the same input, except its bounds, has
// answered of an evaluation that it did not finish, or nil.
func answeredBefore(ctx context.Context, e *engine.Engine, in ace.ExperimentInput) []ace.AnsweredPart {
	g, err := ReadEvaluations(ctx, e, ace.ExperimentWorkflowID(in.ExperimentID))
	if err != nil {
		return nil
	}
	work := func(in ace.ExperimentInput) string {
		in.Answered, in.Progress, in.By, in.Revision, in.ExperimentBounds = nil, nil, "", 0,
			ace.ExperimentBounds{}
		text, _ := json.Marshal(in)
		return string(text)
	}
	if work(in) != work(g.Input) {
		return nil
	}
	parts, _ := g.Answered(ctx, e.Artifacts.Get) // without its items, the experiment exists
	return parts
}

// ClosedError returns nil for a run that completed, otherwise the error that makes the command exit with 1.
func ClosedError(what string, status ace.Status, failure *ace.Failure) error {
	switch {
	case !status.Bad():
		return nil
	case failure != nil && failure.Message != "":
		return fmt.Errorf("%s: %s: %s", what, status, failure.Message)
	}
	return fmt.Errorf("%s: %s", what, status)
}

// reportProviders writes to standard error which providers execute the phases, and the pace.
func reportProviders(a *cli.App, e *engine.Engine, f runFlags, what string) {
	for _, p := range e.Providers {
		if p.Name() == f.Provider {
			cli.Warn(a, "%s: %s", what, p.About())
		}
	}
	if blueprint, ok := ace.BlueprintOf(f.Provider); ok {
		cli.Warn(a, "%s: runs of the blueprint %s", what, blueprint)
	}
	for _, phase := range ace.PromptedPhases() {
		if provider := f.Steps[string(phase)]; provider != "" {
			cli.Warn(a, "%s: the %s by %s", what, phase, provider)
		}
	}
	if f.pace > 0 {
		cli.Warn(a, "every phase takes at least %s (--pace)", f.pace)
	}
}

// TaskError returns why a task has no result: the message of its failure without the wrapping.
func TaskError(id string, err error) error {
	var failed *temporal.ApplicationError
	if errors.As(err, &failed) {
		return fmt.Errorf("task %s: %s", id, history.FailureFrom(err).Message)
	}
	return fmt.Errorf("task %s: %w", id, err)
}

// StartedLine reports a detached run. PID is the background process that executes it, 0 on a cluster.
type StartedLine struct {
	ID         string `json:"id"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	PID        int    `json:"pid,omitempty"`
}

func reportStarted(a *cli.App, workflowID, runID, id string) error {
	a.Begun = true
	line := StartedLine{id, workflowID, runID, a.Background}
	return cli.Report(a, line, "started %s; follow it with \"acescope tail %s\"", id, id)
}

// Interrupted writes to standard error whether a run continues after its command was interrupted.
func Interrupted(a *cli.App, ctx context.Context, id string) {
	if ctx.Err() != nil {
		cli.Warn(a, "%s is kept and continues when acescope runs again; \"acescope cancel %s\" ends it", id,
			id)
	}
}

// follow writes each task that ends as a JSON line or to a progress bar.
func follow(
	a *cli.App, ctx context.Context, e *engine.Engine, in ace.ExperimentInput, id, runID string,
) (*ace.ExperimentState, error) {
	out := cli.NewLines(a)
	var bar *cli.ProgressBar
	if !a.JSON {
		bar = cli.NewProgressBar(a.Err)
	}
	defer bar.Clear()
	progress := cli.Progress{Total: int64(in.Tasks * in.Epochs), Since: time.Now()}
	counts := map[string]int{}
	var writeErr error
	state, err := experiments.Follow(ctx, e.Client, e.Namespace(), id, runID, ReportConnection(a),
		func(_ ace.ExperimentInput, f experiments.Finished) {
			counts[cmp.Or(string(f.Verdict), string(f.Status))]++
			progress.Done++
			progress.Note = countsText(counts)
			bar.Draw(func() cli.Progress { return progress })
			if a.JSON && writeErr == nil {
				writeErr = out.Write(cli.FinishedLine(f, in))
			}
		})
	return state, cmp.Or(err, writeErr)
}

func printSummary(
	a *cli.App, state *ace.ExperimentState, workflowID, runID string, duration time.Duration,
) error {
	in, p := state.Input, state.Progress
	s := SummaryLine{
		ExperimentID: in.ExperimentID, WorkflowID: workflowID, RunID: runID, Provider: in.Provider,
		Model: in.Model, Status: state.Status(), Usage: p.Usage, Epochs: cli.EpochLines(&in, p.Epochs),
		Eval: cli.EvalLines(&in, p.Eval), DurationMS: cluster.Millis(duration), PlaybookBefore: p.Before,
		PlaybookAfter: p.After, Bullets: p.Bullets, Accepted: p.Accepted, Rejected: p.Rejected,
		Failure: state.Failure, Stopped: p.Stopped, taskCounts: countsOf(p.Epochs...),
	}
	failed := ClosedError("experiment "+in.ExperimentID, s.Status, s.Failure)
	if a.JSON {
		return cmp.Or(cli.NewLines(a).Write(s), failed)
	}
	took := ""
	if duration > 0 {
		took = fmt.Sprintf(", %.1f s", duration.Seconds())
	}
	tasks := ""
	if in.Epochs > 0 {
		tasks = fmt.Sprintf(", %s: %s", ace.Count(s.Tasks, "task"), s.taskCounts)
	}
	out := cli.NewLines(a)
	out.Printf("experiment %s: %s%s%s, %s", s.ExperimentID, s.Status, tasks, took, s.Usage.Cost())
	printExperiment(out, &in, p)
	return cmp.Or(out.Flush(), failed)
}

// countsText lists numbers of tasks by verdict, or by status if they did not complete: "3 correct, 1 failed".
func countsText(counts map[string]int) string {
	words := []string{string(ace.Correct), string(ace.Wrong), string(ace.Unlabeled), string(ace.Ungraded)}
	for _, status := range ace.Statuses() {
		words = append(words, string(status))
	}
	var parts []string
	for _, word := range words {
		if counts[word] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[word], word))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none closed")
}

func printExperiment(out *cli.Lines, in *ace.ExperimentInput, p ace.ExperimentProgress) {
	for _, e := range p.Eval {
		counts := taskCounts{Correct: e.Correct, Wrong: e.Labeled() - e.Correct, Unlabeled: e.Unlabeled,
			Failed: e.Failed}
		out.Printf("eval     %s: %s: %s%s", evaluations.When(e), ace.Count(e.Tasks, "task"), counts,
			accuracyText(in, e.Correct, e.Labeled(), e.Score))
	}
	if learned := experiments.Learned(&p); learned != nil {
		out.Printf("eval     from the first to the last: %s", learned.Change())
	}
	for _, e := range p.Epochs {
		out.Printf("epoch    %d: %s: %s%s", e.Epoch, ace.Count(e.Tasks, "task"), countsOf(e),
			accuracyText(in, e.Correct, e.Labeled(), e.Score))
		if text := e.AgainText(); text != "" {
			out.Printf("again    %s", text)
		}
	}
	if b := p.Best; b != nil && len(p.Eval) > 1 {
		e, branch := p.Eval[b.Evaluation], ""
		if b.Branch != "" {
			branch = ", branch " + b.Branch
		}
		out.Printf("best     version %d, %s, accuracy %s%s", b.Evaluation, evaluations.When(e),
			widget.Accuracy(e.Correct, e.Labeled(), theme.Unicode()), branch)
	}
	if p.Stopped != "" {
		out.Printf("stopped  %s", p.Stopped)
	}
	if p.TotalEpochs > 0 {
		out.Printf("playbook %.12s → %.12s, %s, %s accepted, %s rejected", p.Before, p.After,
			ace.Count(p.Bullets, "bullet"), ace.Count(p.Accepted, "operation"), ace.Number(p.Rejected))
	}
}

// accuracyText returns the accuracy of the labeled tasks with its interval, and their mean score from the sum
// of their scores if the grader gives partial credit; "" without labels.
func accuracyText(in *ace.ExperimentInput, correct, labeled int, score float64) string {
	if labeled == 0 {
		return ""
	}
	g := theme.Unicode()
	return fmt.Sprintf("; accuracy %s of %d, 95%% interval %s",
		widget.Quantity(stats.Share(correct, labeled), "rate", g), labeled,
		widget.Range(stats.Wilson(correct, labeled), "rate", g)) +
		widget.MeanScore(in.MeanScore(score, labeled))
}

// runTask starts one task and, without --detach, follows it until it closes.
func runTask(a *cli.App, ctx context.Context, e *engine.Engine, in ace.TaskInput, f runFlags) error {
	runID, err := e.StartTask(ctx, in)
	if err != nil {
		return err
	}
	reportProviders(a, e, f, "task "+in.TaskID)
	if f.detach {
		return reportStarted(a, ace.WorkflowID(in.TaskID), runID, in.TaskID)
	}
	if f.review.on {
		defer reportReviews(a, ctx, e, ace.WorkflowID(in.TaskID))()
	}
	return FollowTask(a, ctx, e, in, runID, true)
}

// FollowTask waits until a task closes and, if show is set, writes the result.
func FollowTask(
	a *cli.App, ctx context.Context, e *engine.Engine, in ace.TaskInput, runID string, show bool,
) error {
	id := ace.WorkflowID(in.TaskID)
	var result ace.TaskResult
	if err := e.Client.GetWorkflow(ctx, id, runID).Get(ctx, &result); err != nil {
		Interrupted(a, ctx, in.TaskID)
		return TaskError(in.TaskID, err)
	}
	if !show {
		return nil
	}
	d, err := detail.Read(ctx, e.Client, id, runID)
	if err != nil {
		return err
	}
	if !a.JSON {
		return WriteRun(a, d)
	}
	return writeResult(a, in, d, result)
}

// writeResult writes the JSON lines of a closed task: the run and its summary.
func writeResult(a *cli.App, in ace.TaskInput, d *histories.Detail, r ace.TaskResult) error {
	out := cli.NewLines(a)
	finished := experiments.Finished{
		WorkflowID: d.WorkflowID, RunID: d.RunID, At: d.Close, Took: d.Close.Sub(d.Start), Result: r,
		Status: d.Phase.Status, Verdict: d.Phase.Verdict,
	}
	line := cli.FinishedLine(finished, ace.ExperimentInput{
		ExperimentID: in.ExperimentID, DatasetID: in.DatasetID, Model: in.Model, Adapter: in.Adapter,
	})
	line.TaskID, line.Start = in.TaskID, d.Start
	out.Put(line)
	sum := SummaryLine{
		ExperimentID: in.ExperimentID, WorkflowID: d.WorkflowID, RunID: d.RunID, Provider: in.Provider,
		Model: in.Model, Status: d.Phase.Status, Verdict: d.Phase.Verdict, taskCounts: taskCounts{Tasks: 1},
		Epochs: []cli.EpochLine{}, Eval: []cli.EvalLine{}, Usage: r.Summary.Usage,
		DurationMS: line.DurationMS, PlaybookBefore: d.Delta.PlaybookBefore, PlaybookAfter: r.PlaybookHash,
		Bullets: d.Delta.Bullets, Accepted: r.Summary.Accepted(), Rejected: r.Summary.Rejected,
		Stopped: r.Stopped,
	}
	switch d.Phase.Verdict {
	case ace.Correct:
		sum.Correct = 1
	case ace.Wrong:
		sum.Wrong = 1
	case ace.Unlabeled:
		sum.Unlabeled = 1
	default:
		sum.Ungraded = 1
	}
	return out.Write(sum)
}
