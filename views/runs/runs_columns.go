package runs

import (
	"slices"
	"strings"

	"acescope/tui/text"
	"acescope/tui/widget"
)

// arranging is which columns are shown, and how.
type arranging struct {
	Chosen []string // ids; nil for the usual ones
	wide   bool     // all of them, at their full width
	left   int      // columns that are scrolled past, of all
}

func (a *arranging) shows(c Column) bool {
	if a.Chosen == nil {
		return !c.extra
	}
	return c.Id == columnTask || slices.Contains(a.Chosen, c.Id)
}

// arrange chooses columns for the width and writes the table's heading.
func (v *Runs) arrange() {
	v.cache.clear()
	if v.width <= 0 {
		return
	}
	width, all := v.tableWidth(), AllColumns(v.Styles.Glyphs)
	if v.cols = nil; v.Arranging.wide {
		v.Arranging.left = widget.Clamp(v.Arranging.left, 0, len(all)-2)
		v.cols = sliding(all, v.Arranging.left, width)
	} else {
		v.cols = Fitting(slices.DeleteFunc(all, func(c Column) bool { return !v.Arranging.shows(c) }), width)
	}
	v.showsError = slices.ContainsFunc(v.cols, func(c Column) bool { return c.Id == columnError })
	v.why = placeForWhy(v.cols)
	l := text.Line{Max: width}
	l.Add(v.Styles.Muted, text.Spaces(widget.PointerWidth))
	for i, c := range v.cols {
		if i > 0 {
			l.Add(v.Styles.Muted, " ")
		}
		ink := v.Styles.Muted
		if c.Id == v.Sorting.By {
			ink = v.Styles.Strong
		}
		l.Add(ink, c.fit(c.Title, ""))
	}
	v.heading = l.String(v.Styles.Muted)
}

// slide scrolls sideways through the columns, where all are shown and do not fit.
func (v *Runs) slide(by int) {
	if !v.Arranging.wide {
		return
	}
	all := len(AllColumns(v.Styles.Glyphs)) - 1
	if by > 0 && v.Arranging.left+len(v.cols)-1 >= all {
		return
	}
	v.Arranging.left = widget.Clamp(v.Arranging.left+by, 0, all-1)
	v.arrange()
}

func (v *Runs) widen() {
	v.Arranging.wide, v.Arranging.left = !v.Arranging.wide, 0
	v.arrange()
}

// toggleColumn shows a column, or no longer.
func (v *Runs) toggleColumn(id string) {
	if id == columnTask {
		return
	}
	var chosen []string
	for _, c := range AllColumns(v.Styles.Glyphs) {
		if v.Arranging.shows(c) != (c.Id == id) {
			chosen = append(chosen, c.Id)
		}
	}
	if v.Arranging.Chosen = chosen; slices.Equal(chosen, UsualColumns()) {
		v.Arranging.Chosen = nil
	}
	v.arrange()
}

// columnsState is which columns one sees where not all fit, "" else.
func (v *Runs) columnsState() string {
	all := len(AllColumns(v.Styles.Glyphs)) - 1
	if !v.Arranging.wide || len(v.cols)-1 >= all {
		return ""
	}
	from := v.Arranging.left + 1
	return "columns " + text.Count(int64(from)) + "-" + text.Count(int64(from+len(v.cols)-2)) + " of " + text.Count(int64(all)) + " (left, right)"
}

func (a *arranging) keep(to map[string]string) {
	if a.Chosen != nil {
		to["columns"] = strings.Join(a.Chosen, ",")
	}
	if a.wide {
		to["wide"] = "true"
	}
}

// restore takes up what was kept; names of columns that are no longer there are left out.
func (a *arranging) restore(from map[string]string) {
	a.wide = from["wide"] == "true"
	if from["columns"] == "" {
		return
	}
	a.Chosen = []string{}
	for _, id := range ColumnNames() {
		if slices.Contains(strings.Split(from["columns"], ","), id) {
			a.Chosen = append(a.Chosen, id)
		}
	}
}
