package runs

import (
	"slices"
	"strings"

	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/views/console"
)

// Sorting is the order and the selection of the loaded rows.
type Sorting struct {
	By       string // ID of a column, "" for the server's order
	Reverse  bool
	retrying bool // only retrying runs
}

func (s Sorting) on() bool { return s.By != "" || s.retrying }

// reorder sorts the rows if the rows or the order changed.
func (v *Runs) reorder() {
	rows := v.listing.Runs.Rows
	if !v.Sorting.on() {
		v.Order, v.ordered = nil, nil
		return
	}
	var first *runs.Run
	if len(rows) > 0 {
		first = &rows[0]
	}
	if v.Order != nil && v.ordered == first && v.orderedBy == v.Sorting {
		return
	}
	v.ordered, v.orderedBy = first, v.Sorting
	v.Order = make([]int32, 0, len(rows))
	for i := range rows {
		if !v.Sorting.retrying || retrying(&rows[i]) {
			v.Order = append(v.Order, int32(i))
		}
	}
	if c, ok := columnBy(v.Sorting.By); ok && v.Sorting.By != "" {
		slices.SortStableFunc(v.Order, func(a, b int32) int {
			return Directed(c.Order(&rows[a], &rows[b]), v.Sorting.Reverse)
		})
	}
}

// Count returns the number of shown rows.
func (v *Runs) Count() int {
	if v.Order != nil {
		return len(v.Order)
	}
	return len(v.listing.Runs.Rows)
}

// At returns the run in a row.
func (v *Runs) At(place int) *runs.Run {
	if v.Order != nil {
		return &v.listing.Runs.Rows[v.Order[place]]
	}
	return &v.listing.Runs.Rows[place]
}

// sortNext sorts by the next visible column, and after the last in the server's order.
func (v *Runs) sortNext() {
	next := 0
	for i, c := range v.cols {
		if c.ID == v.Sorting.By {
			next = i + 1
		}
	}
	if v.Sorting.By, v.Sorting.Reverse = "", false; next < len(v.cols) {
		v.Sorting.By = v.cols[next].ID
	}
	v.Resorted()
}

// Resorted applies a new order and goes to the first row.
func (v *Runs) Resorted() {
	v.nav.Following = false
	v.arrange()
	v.reorder()
	v.Cursor, v.top = 0, 0
	v.reveal()
	v.selectRow()
}

// orderState describes the order and the selection, "" for all rows in the server's order.
func (v *Runs) orderState() string {
	if !v.Sorting.on() {
		return ""
	}
	held := text.Count(int64(len(v.listing.Runs.Rows))) + " loaded"
	if int64(len(v.listing.Runs.Rows)) < v.listing.Runs.Total {
		held += " of " + text.Count(v.listing.Runs.Total)
	}
	say := ""
	if v.Sorting.retrying {
		say = "only retrying"
		if r := v.listing.Runs.Retries; r.LookedAt < r.Open {
			held += " (" + text.Count(int64(r.LookedAt)) + " of " + text.Count(int64(r.Open)) + " open checked)"
		}
	}
	if c, ok := columnBy(v.Sorting.By); ok && v.Sorting.By != "" {
		if say != "" {
			say += ", "
		}
		say += "sorted by " + c.name()
		if v.Sorting.Reverse {
			say += " reversed"
		}
	}
	return say + ", over " + held
}

// mark marks the run under the cursor and moves to the next.
func (v *Runs) mark(s tui.Shell) {
	if v.Count() == 0 {
		return
	}
	if !v.listing.Marks.Toggle(*v.At(v.Cursor)) {
		s.Note("at most " + text.Count(console.MaxMarks) + " runs can be marked")
		return
	}
	v.Scroll(1)
}

// Copy returns the workflow IDs of the marked runs, or of the selected one.
func (v *Runs) Copy() (what, ids string) {
	switch n := len(v.listing.Marks.Runs); {
	case n == 0 && !v.nav.Selected.Ok:
		return "", ""
	case n == 0:
		return "workflow ID", v.nav.Selected.Run.WorkflowID
	default:
		list := make([]string, n)
		for i, r := range v.listing.Marks.Runs {
			list[i] = r.WorkflowID
		}
		return text.Count(int64(n)) + " workflow IDs", strings.Join(list, "\n")
	}
}

// successorRow returns the row of the run that continues the selected one, or -1.
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
