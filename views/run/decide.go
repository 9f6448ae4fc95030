package run

import (
	"context"
	"maps"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/flow"
	"acescope/sources/flows"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/views/console"
)

// decideKey returns the key that decides on a step of a flow or on operations. view is the name of the view
// that has it.
func (r *reading) decideKey(view string) []tui.Binding {
	if r.actions.Flows == nil {
		return nil
	}
	short := ""
	if d := r.current(); d != nil && d.Close.IsZero() &&
		(d.Flow != nil && len(d.Flow.Waiting()) > 0 || len(d.UnderReview()) > 0) {
		short = "approve"
	}
	return []tui.Binding{console.MutatingKey(view+".answer",
		"approve or reject what waits (asks first)", short, r.decide, "w")}
}

// decide asks for the decision on the operations that wait for review, on the selected step, or on the first
// that waits.
func (r *reading) decide(s tui.Shell) {
	d := r.current()
	if d != nil && len(d.UnderReview()) > 0 {
		r.review(s, d)
		return
	}
	if d == nil || d.Flow == nil || !d.Close.IsZero() {
		s.Note("nothing waits for a decision")
		return
	}
	waiting := d.Flow.Waiting()
	if len(waiting) == 0 {
		s.Note("no step waits for approval")
		return
	}
	step := waiting[0]
	if row, ok := r.selectedRow().(interface{ step() *flows.Step }); ok && row.step().Waits() {
		step = row.step()
	}
	s.Confirm(r.question(runs.ID{WorkflowID: d.WorkflowID, RunID: d.RunID}, d.Flow.Name, step.Path,
		step.Detail))
}

func (r flowStepRow) step() *flows.Step { return r.s }

// question returns the dialog about a step. Its answers apply to that step, even if the screen moves on.
func (r *reading) question(of runs.ID, flowName, path, message string) tui.Question {
	name := text.Cut(text.Safe(path, " "), 40, "…")
	id := strings.TrimPrefix(of.WorkflowID, flow.IDPrefix)
	lines := []string{"run       " + text.Safe(id, " ") + ", flow " + text.Safe(flowName, " "),
		"step      " + text.Safe(path, " "), ""}
	lines = append(lines, text.Lines(message)...)
	act := func(approved bool, comment string) tea.Cmd {
		verb, done := "reject", "rejected "+name
		if approved {
			verb, done = "approve", "approved "+name
		}
		return r.pipeline.Act(verb, func(ctx context.Context) (string, error) {
			return done, r.actions.Flows.DecideFlow(ctx, of, path, approved, strings.TrimSpace(comment))
		})
	}
	ask := func(verb string, approved bool) func(tui.Shell) tea.Cmd {
		return func(s tui.Shell) tea.Cmd {
			s.Ask(tui.Prompt{Label: verb + ", comment",
				Hint:    "the history keeps it and later steps can read it; may be empty",
				Preview: func(string) string { return verb + "s " + name },
				Done:    func(comment string) tea.Cmd { return act(approved, comment) }})
			return nil
		}
	}
	return tui.Question{Title: "Approve " + name + "?", Lines: lines, Long: true, Yes: "approve",
		Do: func() tea.Cmd { return act(true, "") },
		Others: []tui.Choice{{Key: "c", Yes: "approve with a comment", Do: ask("approve", true)},
			{Key: "d", Yes: "reject", Do: ask("reject", false)}}}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
