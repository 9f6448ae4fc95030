package runs

import (
	"slices"

	"acescope/sources/runs"
	"acescope/tui/text"
)

// Sorting is the order of the rows, and which of them are shown. Both are over what is
// held, and the footer says so.
type Sorting struct {
	By       string // a column's id, "" for the server's order
	Reverse  bool
	retrying bool // only runs that are being retried
}

func (s Sorting) on() bool { return s.By != "" || s.retrying }

// reorder works out which row stands where. It does nothing while rows and order are the
// same as before.
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

// Count is how many rows there are to show, row the one that stands at a place.
func (v *Runs) Count() int {
	if v.Order != nil {
		return len(v.Order)
	}
	return len(v.listing.Runs.Rows)
}

func (v *Runs) At(place int) *runs.Run {
	if v.Order != nil {
		return &v.listing.Runs.Rows[v.Order[place]]
	}
	return &v.listing.Runs.Rows[place]
}

// sortNext sorts by the next column that is on screen, after the last by none.
func (v *Runs) sortNext() {
	next := 0
	for i, c := range v.cols {
		if c.Id == v.Sorting.By {
			next = i + 1
		}
	}
	if v.Sorting.By, v.Sorting.Reverse = "", false; next < len(v.cols) {
		v.Sorting.By = v.cols[next].Id
	}
	v.Resorted()
}

// Resorted shows the top of the new order: one sorts to see what comes first.
func (v *Runs) Resorted() {
	v.nav.Following = false
	v.arrange()
	v.reorder()
	v.Cursor, v.top = 0, 0
	v.reveal()
	v.selectRow()
}

// orderState says in which order the rows stand and which are left out, "" where it is
// the server's and none are.
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
			held += " (" + text.Count(int64(r.LookedAt)) + " of " + text.Count(int64(r.Open)) + " open looked at)"
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
