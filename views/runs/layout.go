package runs

import (
	"slices"
	"strings"

	"acescope/tui/text"
	"acescope/tui/widget"
)

// layout selects the shown columns.
type layout struct {
	Chosen []string // IDs; nil for the default columns
	wide   bool     // all columns at full width
	left   int      // number of columns scrolled to the left
}

func (a *layout) shows(c Column) bool {
	if a.Chosen == nil {
		return !c.extra
	}
	return c.ID == columnTask || slices.Contains(a.Chosen, c.ID)
}

// arrange chooses the columns for the width and draws the heading.
func (v *Runs) arrange() {
	v.cache.clear()
	if v.Width <= 0 {
		return
	}
	width, all := v.tableWidth(), AllColumns(v.Styles.Glyphs)
	if v.cols = nil; v.Layout.wide {
		v.Layout.left = widget.Clamp(v.Layout.left, 0, len(all)-2)
		v.cols = scrolled(all, v.Layout.left, width)
	} else {
		v.cols = Fitting(slices.DeleteFunc(all, func(c Column) bool { return !v.Layout.shows(c) }), width)
	}
	v.showsError = slices.ContainsFunc(v.cols, func(c Column) bool { return c.ID == columnError })
	v.errorSpan = errorSpanOf(v.cols)
	l := text.Line{Max: width}
	l.Add(v.Styles.Muted, text.Spaces(widget.PointerWidth))
	for i, c := range v.cols {
		if i > 0 {
			l.Add(v.Styles.Muted, " ")
		}
		ink := v.Styles.Muted
		if c.ID == v.Sorting.By {
			ink = v.Styles.Strong
		}
		l.Add(ink, c.fit(c.Title, ""))
	}
	v.heading = l.String(v.Styles.Muted)
}

// slide scrolls sideways if all columns are shown and do not fit.
func (v *Runs) slide(by int) {
	if !v.Layout.wide {
		return
	}
	all := len(AllColumns(v.Styles.Glyphs)) - 1
	if by > 0 && v.Layout.left+len(v.cols)-1 >= all {
		return
	}
	v.Layout.left = widget.Clamp(v.Layout.left+by, 0, all-1)
	v.arrange()
}

func (v *Runs) widen() {
	v.Layout.wide, v.Layout.left = !v.Layout.wide, 0
	v.arrange()
}

// toggleColumn shows or hides a column.
func (v *Runs) toggleColumn(id string) {
	if id == columnTask {
		return
	}
	var chosen []string
	for _, c := range AllColumns(v.Styles.Glyphs) {
		if v.Layout.shows(c) != (c.ID == id) {
			chosen = append(chosen, c.ID)
		}
	}
	if v.Layout.Chosen = chosen; slices.Equal(chosen, DefaultColumnNames()) {
		v.Layout.Chosen = nil
	}
	v.arrange()
}

// columnsState names the visible columns if not all fit.
func (v *Runs) columnsState() string {
	all := len(AllColumns(v.Styles.Glyphs)) - 1
	if !v.Layout.wide || len(v.cols)-1 >= all {
		return ""
	}
	from := v.Layout.left + 1
	return "columns " + text.Count(int64(from)) + "-" + text.Count(int64(from+len(v.cols)-2)) + " of " + text.Count(int64(all)) + " (left, right)"
}

func (a *layout) keep(to map[string]string) {
	if a.Chosen != nil {
		to["columns"] = strings.Join(a.Chosen, ",")
	}
	if a.wide {
		to["wide"] = "true"
	}
}

// restore applies what keep stored and ignores unknown columns.
func (a *layout) restore(from map[string]string) {
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
