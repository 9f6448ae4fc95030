package run

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/histories"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
)

func reviewRows(b *lister, d *histories.Detail) {
	event := phaseEvent(d, ace.PhaseCurator)
	for _, n := range d.UnderReview() {
		row := operationRowOf(d, n-1, event)
		proposed := *row.Operation
		proposed.Outcome = ace.OutcomeProposed // workers of earlier versions call it accepted
		row.Operation = &proposed
		b.add("review", n, reviewRow{row, n, slices.Contains(b.rejected, n)})
	}
}

func reviewRemark(d *histories.Detail, s theme.Styles) (string, theme.Ink) {
	if d.ReviewUntil.IsZero() {
		return "decide when a worker continues the run", s.Warning
	}
	return "space marks one to reject it, w decides", s.Warning
}

// reviewText says that a run waits for review, and how long, or returns "".
func reviewText(d *histories.Detail, now time.Time) string {
	switch n := len(d.UnderReview()); {
	case n == 0:
		return ""
	case d.ReviewUntil.IsZero():
		return "waits for review"
	}
	return "waits for review, " + text.Span(max(d.ReviewUntil.Sub(now), 0)) + " left, then " +
		string(d.Input.Review.TimeoutChoice())
}

// reviewRow is an operation that waits for review, with the user's choice.
type reviewRow struct {
	operationRow
	n      int
	reject bool
}

func (r reviewRow) Draw(l *line) {
	if r.reject {
		l.add(l.S.Error, l.S.Glyphs.Failed+" reject  ")
	} else {
		l.add(l.S.Success, l.S.Glyphs.Success+" approve ")
	}
	r.operationRow.Draw(l)
}

// Inspect also writes what the reflector found.
func (r reviewRow) Inspect(w *inspection) {
	r.operationRow.Inspect(w)
	if r.d.Delta.Insights != "" {
		w.Section("Insights", "")
		w.Prose(" ", w.S.Text, r.d.Delta.Insights)
	}
}

// mark marks the operation of the selected row to reject it, or to approve it again.
func (v *Outline) mark(s tui.Shell) {
	r, ok := v.selectedRow().(reviewRow)
	if !ok {
		s.Note("select an operation that waits for review")
		return
	}
	if at := slices.Index(v.rejected, r.n); at >= 0 {
		v.rejected = slices.Delete(v.rejected, at, at+1)
	} else {
		v.rejected = append(v.rejected, r.n)
	}
	v.stale = true
}

// review asks for the decision on the operations that wait, as chosen.
func (r *reading) review(s tui.Shell, d *histories.Detail) {
	if d.ReviewUntil.IsZero() {
		s.Note("no worker has continued the run yet; a decision would be ignored")
		return
	}
	of := runs.ID{WorkflowID: d.WorkflowID, RunID: d.RunID}
	open := d.UnderReview()
	var rejected []int
	lines := []string{"run       " + text.Safe(d.WorkflowID, " ")}
	for _, n := range open {
		verb := "approve"
		if slices.Contains(r.rejected, n) {
			verb = "reject"
			rejected = append(rejected, n)
		}
		op := d.Delta.Operations[n-1]
		about := strings.TrimSpace(string(op.Type) + " " + op.BulletID + " " + op.Content)
		lines = append(lines, text.Fit(verb, 10, "")+text.Cut(oneLine(about), 200, "…"))
	}
	act := func(some ace.ReviewDecision) tea.Cmd {
		r.rejected = nil
		no := len(some.Operations)
		done := countsText("approved", len(open)-no, "rejected", no)
		return r.pipeline.Act("review", func(ctx context.Context) (string, error) {
			return done, r.actions.Reviews.DecideReview(ctx, of, some)
		})
	}
	decision := func(no []int, reason string) ace.ReviewDecision {
		some := ace.ReviewDecision{Approve: new(true)}
		for _, n := range no {
			some.Operations = append(some.Operations, ace.OperationDecision{Operation: n, Reason: reason})
		}
		return some
	}
	ask := func(no []int, verb string) func(tui.Shell) tea.Cmd {
		return func(s tui.Shell) tea.Cmd {
			s.Ask(tui.Prompt{Label: "Reason for rejection", Hint: "optional; stored with the run",
				Preview: func(string) string { return "enter: " + verb },
				Done: func(reason string) tea.Cmd {
					return act(decision(no, strings.TrimSpace(reason)))
				}})
			return nil
		}
	}
	chosen := countsText("approve", len(open)-len(rejected), "reject", len(rejected))
	q := tui.Question{Title: "Decide on " + ace.Count(len(open), "operation") + "?", Lines: lines, Long: true,
		Yes: chosen, Do: func() tea.Cmd { return act(decision(rejected, "")) }}
	if len(rejected) > 0 {
		q.Others = append(q.Others, tui.Choice{Key: "c", Yes: "give a reason", Do: ask(rejected, chosen)})
	}
	if len(rejected) < len(open) {
		q.Others = append(q.Others, tui.Choice{Key: "d", Yes: "reject all",
			Do: ask(open, countsText("reject", len(open), "", 0))})
	}
	s.Confirm(q)
}

// countsText names the counts that are not 0: "approve 2, reject 1".
func countsText(first string, n int, second string, m int) string {
	switch {
	case m == 0:
		return first + " " + ace.Number(n)
	case n == 0:
		return second + " " + ace.Number(m)
	}
	return first + " " + ace.Number(n) + ", " + second + " " + ace.Number(m)
}
