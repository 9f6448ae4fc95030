package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"acescope/engine/ace"
	"acescope/sources"
	"acescope/tui/text"
)

// lineageLine is a run of a lineage.
type lineageLine struct {
	Type       string         `json:"type"` // lineage
	TaskID     string         `json:"task_id"`
	WorkflowID string         `json:"workflow_id"`
	RunID      string         `json:"run_id"`
	Depth      int            `json:"depth"` // 0: the run that the others come from
	ForkedFrom *ace.Forked    `json:"forked_from,omitempty"`
	Asked      bool           `json:"asked,omitempty"` // the run that the command named
	ExitStatus ace.ExitStatus `json:"exit_status"`
	Answer     string         `json:"answer,omitempty"`
	Correct    *bool          `json:"correct,omitempty"` // left out where there was no label, or no answer yet
	Model      string         `json:"model,omitempty"`
	CostUSD    *float64       `json:"cost_usd,omitempty"` // of what it executed itself; left out while it runs
	Tokens     int64          `json:"tokens,omitempty"`
	Start      time.Time      `json:"start"`
	Close      *time.Time     `json:"close,omitempty"`
}

func (a *app) lineageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lineage TASK",
		Short: "Show a run with all its forks as a tree: what was changed, how they ended, what they cost",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.lineage(cmd.Context(), args[0]) },
	}
}

// maxAnswers bounds the runs whose results are read, one by one.
const maxAnswers = 200

func (a *app) lineage(ctx context.Context, name string) error {
	e, done, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer done()
	run, err := sources.Resolve(ctx, e.Client, name)
	if err != nil {
		return err
	}
	exec := run.GetWorkflowExecutionInfo().GetExecution()
	tree, err := sources.ReadLineage(ctx, e.Client, exec.GetWorkflowId())
	if err != nil {
		return err
	}
	out := newLines(a.out)
	for i, n := range tree.Nodes {
		result := ace.TaskResult{}
		if i < maxAnswers && (n.Run.Exit == ace.Success || n.Run.Exit == ace.Wrong) {
			if err := e.Client.GetWorkflow(ctx, n.Run.WorkflowID, n.Run.RunID).Get(ctx, &result); err != nil {
				return err
			}
		}
		asked := n.Run.RunID == exec.GetRunId()
		if a.json {
			err = out.put(lineageLineOf(n, result, asked))
		} else {
			_, err = fmt.Fprintln(out.buf, lineageText(n, result, asked))
		}
		if err != nil {
			return err
		}
	}
	if tree.Dropped > 0 {
		fmt.Fprintf(a.err, "acescope: %d more runs are not shown\n", tree.Dropped)
	}
	return out.flush()
}

func lineageLineOf(n sources.LineageNode, result ace.TaskResult, asked bool) lineageLine {
	r := n.Run
	l := lineageLine{Type: "lineage", TaskID: r.TaskID, WorkflowID: r.WorkflowID, RunID: r.RunID, Depth: n.Depth, ForkedFrom: r.Fork,
		Asked: asked, ExitStatus: r.Exit, Answer: result.Answer, Correct: result.Correct, Model: r.Model, Start: r.Start, Close: timeOrNil(r.Close)}
	if r.Summary != nil {
		l.CostUSD = &r.Summary.Usage.CostUSD
		l.Tokens = r.Summary.Usage.InputTokens + r.Summary.Usage.OutputTokens
	}
	return l
}

// lineageText is a run in a line of the tree.
func lineageText(n sources.LineageNode, result ace.TaskResult, asked bool) string {
	var b strings.Builder
	for i, more := range n.More {
		if i == 0 {
			continue // the roots stand side by side
		}
		b.WriteString(map[bool]string{true: "│  ", false: "   "}[more])
	}
	if n.Depth > 0 {
		b.WriteString(map[bool]string{true: "└─ ", false: "├─ "}[n.Last])
	}
	r := n.Run
	b.WriteString(safe(r.TaskID))
	line := text.Fit(b.String(), 44, "~") + " " + text.Fit(string(r.Exit), 9, "~")
	if r.Summary != nil {
		line += fmt.Sprintf(" $%.4f", r.Summary.Usage.CostUSD)
	} else {
		line += "      –"
	}
	if result.Answer != "" {
		line += "  " + safe(shortly(result.Answer))
	}
	if f := r.Fork; f != nil {
		line += fmt.Sprintf("  at event %d, before %s", f.Event, safe(string(f.Phase)))
		for _, name := range slices.Sorted(maps.Keys(f.Changed)) {
			line += "; " + safe(name+": "+shortly(f.Changed[name].From)+" → "+shortly(f.Changed[name].To))
		}
	}
	if asked {
		line += "  ← asked for"
	}
	return strings.TrimRight(line, " ")
}
