package views

import (
	"slices"
	"strings"

	"acescope/tui/text"
)

// arranging is which columns are shown, and how.
type arranging struct {
	chosen []string // ids; nil for the usual ones
	wide   bool     // all of them, at their full width
	left   int      // columns that are scrolled past, of all
}

func (a *arranging) shows(c column) bool {
	if a.chosen == nil {
		return !c.extra
	}
	return c.id == columnTask || slices.Contains(a.chosen, c.id)
}

// arrange chooses columns for the width and writes the table's heading.
func (v *runs) arrange() {
	v.cache.clear()
	if v.width <= 0 {
		return
	}
	width, all := v.tableWidth(), allColumns(v.styles.Glyphs)
	if v.cols = nil; v.arranging.wide {
		v.arranging.left = clamp(v.arranging.left, 0, len(all)-2)
		v.cols = sliding(all, v.arranging.left, width)
	} else {
		v.cols = fitting(slices.DeleteFunc(all, func(c column) bool { return !v.arranging.shows(c) }), width)
	}
	v.showsError = slices.ContainsFunc(v.cols, func(c column) bool { return c.id == columnError })
	v.why = placeForWhy(v.cols)
	l := text.Line{Max: width}
	l.Add(v.styles.Muted, text.Spaces(pointerWidth))
	for i, c := range v.cols {
		if i > 0 {
			l.Add(v.styles.Muted, " ")
		}
		ink := v.styles.Muted
		if c.id == v.sorting.by {
			ink = v.styles.Strong
		}
		l.Add(ink, c.fit(c.title, ""))
	}
	v.heading = l.String(v.styles.Muted)
}

// slide scrolls sideways through the columns, where all are shown and do not fit.
func (v *runs) slide(by int) {
	if !v.arranging.wide {
		return
	}
	all := len(allColumns(v.styles.Glyphs)) - 1
	if by > 0 && v.arranging.left+len(v.cols)-1 >= all {
		return
	}
	v.arranging.left = clamp(v.arranging.left+by, 0, all-1)
	v.arrange()
}

func (v *runs) widen() {
	v.arranging.wide, v.arranging.left = !v.arranging.wide, 0
	v.arrange()
}

// toggleColumn shows a column, or no longer.
func (v *runs) toggleColumn(id string) {
	if id == columnTask {
		return
	}
	var chosen []string
	for _, c := range allColumns(v.styles.Glyphs) {
		if v.arranging.shows(c) != (c.id == id) {
			chosen = append(chosen, c.id)
		}
	}
	if v.arranging.chosen = chosen; slices.Equal(chosen, UsualColumns()) {
		v.arranging.chosen = nil
	}
	v.arrange()
}

// columnsState is which columns one sees where not all fit, "" else.
func (v *runs) columnsState() string {
	all := len(allColumns(v.styles.Glyphs)) - 1
	if !v.arranging.wide || len(v.cols)-1 >= all {
		return ""
	}
	from := v.arranging.left + 1
	return "columns " + text.Count(int64(from)) + "-" + text.Count(int64(from+len(v.cols)-2)) + " of " + text.Count(int64(all)) + " (left, right)"
}

func (a *arranging) keep(to map[string]string) {
	if a.chosen != nil {
		to["columns"] = strings.Join(a.chosen, ",")
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
	a.chosen = []string{}
	for _, id := range ColumnNames() {
		if slices.Contains(strings.Split(from["columns"], ","), id) {
			a.chosen = append(a.chosen, id)
		}
	}
}
