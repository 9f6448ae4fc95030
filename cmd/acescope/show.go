package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine/ace"
	"acescope/sources"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show TASK",
		Short:   "Show one run: phase, skills, playbook delta, answer; or how far an experiment has come",
		Example: "acescope show finance-1-e1-0042\nacescope show finance-1 --json | jq .experiment.eval",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.show(cmd.Context(), args[0]) },
	}
}

// showLine is one run, whole.
type showLine struct {
	Type         string                  `json:"type"` // task, or experiment
	TaskID       string                  `json:"task_id,omitempty"`
	WorkflowID   string                  `json:"workflow_id"`
	RunID        string                  `json:"run_id"`
	WorkflowType string                  `json:"workflow_type"`
	Status       ace.ExitStatus          `json:"exit_status"`
	From         sources.Origin          `json:"from"`
	Events       int64                   `json:"events"`
	Start        time.Time               `json:"start"`
	Close        *time.Time              `json:"close,omitempty"`
	Input        *ace.TaskInput          `json:"input,omitempty"`
	Phase        *ace.PhaseAnswer        `json:"phase,omitempty"`
	Skills       *ace.SkillAnswer        `json:"skills,omitempty"`
	Delta        *ace.DeltaAnswer        `json:"delta,omitempty"`
	Pending      []pendingLine           `json:"pending,omitempty"`
	Missing      []string                `json:"missing,omitempty"`
	Experiment   *ace.ExperimentProgress `json:"experiment,omitempty"`
}

type pendingLine struct {
	Activity  string `json:"activity"`
	State     string `json:"state"`
	Attempt   int32  `json:"attempt"`
	LastError string `json:"last_error,omitempty"`
}

func (a *app) show(ctx context.Context, id string) error {
	e, done, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer done()
	run, err := sources.Resolve(ctx, e.Client, id)
	if err != nil {
		return err
	}
	exec := run.GetWorkflowExecutionInfo().GetExecution()
	d, err := sources.Show(ctx, e.Client, exec.GetWorkflowId(), exec.GetRunId())
	if err != nil {
		return err
	}
	line := lineOf(d)
	if a.json {
		enc := json.NewEncoder(a.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(line)
	}
	return printShow(a.out, d, line)
}

func lineOf(d *sources.Detail) showLine {
	l := showLine{Type: "task", TaskID: d.Input.TaskID, WorkflowID: d.WorkflowID, RunID: d.RunID, WorkflowType: d.Type,
		Status: d.Phase.ExitStatus, From: d.From, Events: d.Events, Start: d.Start, Missing: d.Missing, Experiment: d.Experiment}
	if !d.Close.IsZero() {
		l.Close = &d.Close
	}
	for _, p := range d.Pending {
		l.Pending = append(l.Pending, pendingLine{p.Type, p.State, p.Attempt, p.LastError})
	}
	if d.Experiment != nil {
		l.Type, l.Status = "experiment", d.Experiment.ExitStatus
		return l
	}
	l.Input, l.Phase, l.Skills, l.Delta = &d.Input, &d.Phase, &d.Skills, &d.Delta
	return l
}

func printShow(w io.Writer, d *sources.Detail, l showLine) error {
	fmt.Fprintf(w, "%s  %s  %s (%s, %d events)\n", safe(l.WorkflowID), l.Status, l.Start.Local().Format(time.DateTime), l.From, l.Events)
	if d.Experiment != nil {
		return printExperiment(w, *d.Experiment)
	}
	for _, s := range d.Phase.Steps {
		took := ""
		if s.Time != nil {
			took = fmt.Sprintf("%.1f ms", s.Time.DurationMS)
		}
		fmt.Fprintf(w, "  %-10s %-9s %s\n", s.Phase, s.Status, took)
	}
	for _, p := range l.Pending {
		fmt.Fprintf(w, "  pending: %s %s, attempt %d %s\n", safe(p.Activity), p.State, p.Attempt, safe(p.LastError))
	}
	fmt.Fprintf(w, "prompt   %s\nanswer   %s\n", safe(d.Input.Prompt), safe(d.Phase.Answer))
	if d.Input.Label != nil {
		fmt.Fprintf(w, "label    %s\n", safe(*d.Input.Label))
	}
	for _, u := range d.Skills.Skills {
		fmt.Fprintf(w, "skill    %-12s calls %d  ok %d  failed %d  denied %d  p50 %.2f ms  p95 %.2f ms\n", safe(u.Name), u.Calls, u.OK, u.Failed, u.Denied, u.P50MS, u.P95MS)
	}
	for _, op := range d.Delta.Operations {
		fmt.Fprintf(w, "delta    %-8s %-6s %s %s %s\n", op.Fate, op.Type, safe(op.BulletID), safe(op.Content), safe(op.Reason))
	}
	fmt.Fprintf(w, "playbook %.12s → %.12s\n", d.Delta.PlaybookBefore, d.Delta.PlaybookAfter)
	if d.Phase.Failure != nil {
		fmt.Fprintf(w, "failure  %s: %s\n", d.Phase.Failure.Kind, safe(d.Phase.Failure.Message))
	}
	return nil
}

func printExperiment(w io.Writer, p ace.ExperimentProgress) error {
	for _, e := range p.Eval {
		when := fmt.Sprintf("after epoch %d", e.Epoch)
		if e.Epoch == 0 {
			when = "before"
		}
		fmt.Fprintf(w, "eval     %s: %d of %d correct, %.3f\n", when, e.Correct, e.Tasks, e.Accuracy)
	}
	for _, e := range p.Epochs {
		fmt.Fprintf(w, "epoch    %d: %d tasks, %d correct, %d wrong, %d failed, %d without label, accuracy %.3f\n", e.Epoch, e.Tasks, e.Correct, e.Wrong, e.Failed, e.Unlabeled, e.Accuracy)
	}
	_, err := fmt.Fprintf(w, "playbook %.12s → %.12s, %d bullets, %d operations accepted, %d rejected\n", p.Before, p.After, p.Bullets, p.Accepted, p.Rejected)
	return err
}
