package runs

import (
	"slices"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui/widget"
	"acescope/views/console"
)

// table is the loaded runs in columns, in the server's order or one of its own, with a cursor.
type table struct {
	pane    *console.Pane // its styles
	listing *console.Listing
	width   int

	*widget.Table
	Layout layout
	cols   []Column // those that fit are t.Cols
	common common   // values that all loaded rows share

	Sorting   Sorting
	Order     []int32   // indexes of rows, nil for the server's order
	ordered   *runs.Run // first of the rows that Order refers to
	orderedBy Sorting
	unpriced  bool // sorted by cost, and no loaded run has one: the tokens are shown
}

// Sorting is the order and the selection of the loaded rows.
type Sorting struct {
	By       string // ID of a column, "" for the server's order
	Reverse  bool
	retrying bool // only retrying runs
}

func (s Sorting) on() bool { return s.By != "" || s.retrying }

// reorder sorts the rows if the rows or the order changed.
func (t *table) reorder() {
	rows := t.listing.Runs.Rows
	if !t.Sorting.on() {
		t.Order, t.ordered = nil, nil
		t.setUnpriced(false)
		return
	}
	var first *runs.Run
	if len(rows) > 0 {
		first = &rows[0]
	}
	if t.Order != nil && t.ordered == first && t.orderedBy == t.Sorting {
		return
	}
	t.ordered, t.orderedBy = first, t.Sorting
	t.Order = make([]int32, 0, len(rows))
	for i := range rows {
		if !t.Sorting.retrying || rows[i].Retries() {
			t.Order = append(t.Order, int32(i))
		}
	}
	t.setUnpriced(t.Sorting.By == columnCost &&
		!slices.ContainsFunc(rows, func(r runs.Run) bool { return dollarsOf(&r) > 0 }))
	if c, ok := columnBy(t.Sorting.By); ok && t.Sorting.By != "" {
		slices.SortStableFunc(t.Order, func(a, b int32) int {
			return Directed(c.Order(&rows[a], &rows[b]), t.Sorting.Reverse)
		})
	}
}

// setUnpriced shows or hides the tokens.
func (t *table) setUnpriced(on bool) {
	if t.unpriced != on {
		t.unpriced = on
		t.arrange()
	}
}

// Count returns the number of shown rows.
func (t *table) Count() int {
	if t.Order != nil {
		return len(t.Order)
	}
	return len(t.listing.Runs.Rows)
}

// At returns the run in a row.
func (t *table) At(place int) *runs.Run {
	if t.Order != nil {
		return &t.listing.Runs.Rows[t.Order[place]]
	}
	return &t.listing.Runs.Rows[place]
}

// sortNext sorts by the next visible column, and after the last in the server's order.
func (t *table) sortNext() {
	next := 0
	for at, i := range t.Cols {
		if t.cols[i].ID == t.Sorting.By {
			next = at + 1
		}
	}
	if t.Sorting.By, t.Sorting.Reverse = "", false; next < len(t.Cols) {
		t.Sorting.By = t.cols[t.Cols[next]].ID
	}
}

// orderState describes the order and the selection, "" for all rows in the server's order.
func (t *table) orderState() string {
	if !t.Sorting.on() {
		return ""
	}
	held := ace.Number(len(t.listing.Runs.Rows)) + " loaded"
	if int64(len(t.listing.Runs.Rows)) < t.listing.Runs.Total {
		held += " of " + ace.Number(t.listing.Runs.Total)
	}
	order := ""
	if t.Sorting.retrying {
		order = "only retrying"
		if r := t.listing.Runs.Retries; r.LookedAt < r.Open {
			held += " (" + ace.Number(r.LookedAt) + " of " + ace.Number(r.Open) +
				" open checked)"
		}
	}
	if c, ok := columnBy(t.Sorting.By); ok && t.Sorting.By != "" {
		order += widget.If(order != "", ", ", "")
		name := widget.If(t.unpriced, "tokens (no run has a cost)", c.name())
		order += "sorted by " + name
		order += widget.If(t.Sorting.Reverse, " reversed", "")
	}
	return order + ", over " + held
}

func (t *table) position() string {
	switch {
	case t.Count() == 0:
		return ""
	case t.Sorting.on():
		return ace.Number(t.Cursor+1) + "/" + ace.Number(t.Count())
	}
	return ace.Number(t.listing.Runs.First+int64(t.Cursor+1)) + "/" + t.total()
}

// total returns the number of runs, as far as it is known.
func (t *table) total() string {
	reached := t.listing.Runs.First + int64(len(t.listing.Runs.Rows))
	if t.listing.Runs.Total >= reached {
		return ace.Number(t.listing.Runs.Total)
	}
	if t.listing.Runs.More {
		return ace.Number(reached) + "+"
	}
	return ace.Number(reached)
}
