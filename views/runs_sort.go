package views

import (
	"slices"

	"acescope/sources"
	"acescope/tui/text"
)

// sorting is the order of the rows, and which of them are shown. Both are over what is
// held, and the footer says so.
type sorting struct {
	by       string // a column's id, "" for the server's order
	reverse  bool
	retrying bool // only runs that are being retried
}

func (s sorting) on() bool { return s.by != "" || s.retrying }

// reorder works out which row stands where. It does nothing while rows and order are the
// same as before.
func (v *runs) reorder() {
	rows := v.runs.Rows
	if !v.sorting.on() {
		v.order, v.ordered = nil, nil
		return
	}
	var first *sources.Run
	if len(rows) > 0 {
		first = &rows[0]
	}
	if v.order != nil && v.ordered == first && v.orderedBy == v.sorting {
		return
	}
	v.ordered, v.orderedBy = first, v.sorting
	v.order = make([]int32, 0, len(rows))
	for i := range rows {
		if !v.sorting.retrying || retrying(&rows[i]) {
			v.order = append(v.order, int32(i))
		}
	}
	if c, ok := columnBy(v.sorting.by); ok && v.sorting.by != "" {
		slices.SortStableFunc(v.order, func(a, b int32) int {
			return directed(c.order(&rows[a], &rows[b]), v.sorting.reverse)
		})
	}
}

// count is how many rows there are to show, row the one that stands at a place.
func (v *runs) count() int {
	if v.order != nil {
		return len(v.order)
	}
	return len(v.runs.Rows)
}

func (v *runs) at(place int) *sources.Run {
	if v.order != nil {
		return &v.runs.Rows[v.order[place]]
	}
	return &v.runs.Rows[place]
}

// sortNext sorts by the next column that is on screen, after the last by none.
func (v *runs) sortNext() {
	next := 0
	for i, c := range v.cols {
		if c.id == v.sorting.by {
			next = i + 1
		}
	}
	if v.sorting.by, v.sorting.reverse = "", false; next < len(v.cols) {
		v.sorting.by = v.cols[next].id
	}
	v.resorted()
}

// resorted shows the top of the new order: one sorts to see what comes first.
func (v *runs) resorted() {
	v.following = false
	v.arrange()
	v.reorder()
	v.cursor, v.top = 0, 0
	v.reveal()
	v.selectRow()
}

// orderState says in which order the rows stand and which are left out, "" where it is
// the server's and none are.
func (v *runs) orderState() string {
	if !v.sorting.on() {
		return ""
	}
	held := text.Count(int64(len(v.runs.Rows))) + " loaded"
	if int64(len(v.runs.Rows)) < v.runs.Total {
		held += " of " + text.Count(v.runs.Total)
	}
	say := ""
	if v.sorting.retrying {
		say = "only retrying"
		if r := v.runs.Retries; r.LookedAt < r.Open {
			held += " (" + text.Count(int64(r.LookedAt)) + " of " + text.Count(int64(r.Open)) + " open looked at)"
		}
	}
	if c, ok := columnBy(v.sorting.by); ok && v.sorting.by != "" {
		if say != "" {
			say += ", "
		}
		say += "sorted by " + c.name()
		if v.sorting.reverse {
			say += " reversed"
		}
	}
	return say + ", over " + held
}
