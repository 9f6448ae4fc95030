package runs

import (
	"acescope/tui"
	"acescope/tui/text"
	"acescope/views/console"
)

// mark marks the run under the cursor and goes on to the next.
func (v *Runs) mark(s tui.Shell) {
	if v.Count() == 0 {
		return
	}
	if !v.listing.Marks.Toggle(*v.At(v.Cursor)) {
		s.Note("no more than " + text.Count(console.MaxMarks) + " runs can be marked")
		return
	}
	v.Scroll(1)
}

// Copy gives the ids of the marked runs, or of the selected one.
func (v *Runs) Copy() (what, ids string) {
	switch n := len(v.listing.Marks.Runs); {
	case n == 0 && !v.nav.Selected.Ok:
		return "", ""
	case n == 0:
		return "workflow id", v.nav.Selected.Run.WorkflowID
	default:
		for i, r := range v.listing.Marks.Runs {
			if i > 0 {
				ids += "\n"
			}
			ids += r.WorkflowID
		}
		return text.Count(int64(n)) + " workflow ids", ids
	}
}

// heir is where in the list the run is that the selected one goes on as, -1 for nowhere.
func (v *Runs) successorRow() int {
	if !v.nav.Live() {
		return -1
	}
	was := &v.nav.Selected.Run
	for i := range v.Count() {
		if r := v.At(i); r.WorkflowID == was.WorkflowID && r.RunID != was.RunID && !r.Start.Before(was.Start) {
			return i
		}
	}
	return -1
}
