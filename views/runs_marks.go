package views

import (
	"context"
	"errors"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"acescope/sources"
	"acescope/tui"
	"acescope/tui/text"
)

// marks are the runs that somebody marked, in the order in which that was done.
type marks struct {
	runs []sources.Run
	of   map[rowKey]bool
}

// maxMarks bounds the marks.
const maxMarks = 10_000

func keyOf(r *sources.Run) rowKey { return rowKey{r.WorkflowID, r.RunID} }

// toggle marks a run, or takes its mark away. It tells whether there was room.
func (m *marks) toggle(r sources.Run) bool {
	k := keyOf(&r)
	if m.of[k] {
		delete(m.of, k)
		m.runs = slices.DeleteFunc(m.runs, func(o sources.Run) bool { return keyOf(&o) == k })
		return true
	}
	if len(m.runs) >= maxMarks {
		return false
	}
	if m.of == nil {
		m.of = map[rowKey]bool{}
	}
	m.of[k] = true
	m.runs = append(m.runs, r)
	return true
}

func (m *marks) clear() { *m = marks{} }

// refresh takes up what became of the marked runs that are in a list.
func (m *marks) refresh(rows []sources.Run) {
	if len(m.runs) == 0 {
		return
	}
	now := map[rowKey]int{}
	for i := range rows {
		if k := keyOf(&rows[i]); m.of[k] {
			now[k] = i
		}
	}
	for i := range m.runs {
		if at, ok := now[keyOf(&m.runs[i])]; ok {
			m.runs[i] = rows[at]
		}
	}
}

// mark marks the run under the cursor and goes on to the next.
func (v *runs) mark(s tui.Shell) {
	if v.count() == 0 {
		return
	}
	if !v.marks.toggle(*v.at(v.cursor)) {
		s.Note("no more than " + text.Count(maxMarks) + " runs can be marked")
		return
	}
	v.scroll(1)
}

// Copy gives the ids of the marked runs, or of the selected one.
func (v *runs) Copy() (what, ids string) {
	switch n := len(v.marks.runs); {
	case n == 0 && !v.selected.ok:
		return "", ""
	case n == 0:
		return "workflow id", v.selected.run.WorkflowID
	default:
		for i, r := range v.marks.runs {
			if i > 0 {
				ids += "\n"
			}
			ids += r.WorkflowID
		}
		return text.Count(int64(n)) + " workflow ids", ids
	}
}

// shownMarks is how many marked runs a question names.
const shownMarks = 8

// cancelMarked asks before it acts on the runs that were marked, and are open, when it
// asked.
func (c *console) cancelMarked(s tui.Shell) {
	c.marks.refresh(c.runs.Rows)
	var open []sources.Run
	for _, r := range c.marks.runs {
		if r.Open() {
			open = append(open, r)
		}
	}
	marked := len(c.marks.runs)
	if len(open) == 0 {
		s.Note(fmt.Sprintf("all %d marked runs have already closed", marked))
		return
	}
	lines := []string{fmt.Sprintf("%d of the %d marked runs are open:", len(open), marked), ""}
	for _, r := range open[:min(len(open), shownMarks)] {
		lines = append(lines, text.Safe(nameOf(r)+"  run "+r.RunID, " "))
	}
	if more := len(open) - shownMarks; more > 0 {
		lines = append(lines, "and "+text.Count(int64(more))+" more")
	}
	s.Confirm(tui.Question{Title: fmt.Sprintf("Cancel %d runs?", len(open)), Lines: lines, Yes: "cancel them",
		Do: func() tea.Cmd { return c.doCancelAll(open) }})
}

func (c *console) doCancelAll(open []sources.Run) tea.Cmd {
	return func() tea.Msg {
		var failed error
		done := 0
		for _, r := range open {
			ctx, stop := context.WithTimeout(c.Context, actionTimeout)
			err := c.Actions.Cancel(ctx, r.WorkflowID, r.RunID)
			stop()
			switch {
			case err == nil:
				done++
			case failed == nil:
				failed = fmt.Errorf("%s: %w", r.WorkflowID, err)
			}
			if errors.Is(c.Context.Err(), context.Canceled) {
				break
			}
		}
		if failed != nil {
			return tui.Failed(fmt.Errorf("asked %d of %d runs to cancel; %w", done, len(open), failed))
		}
		return tui.Noted(fmt.Sprintf("asked %d runs to cancel", done))
	}
}
