package runs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"acescope/tui/widget"
)

// layout selects the shown columns.
type layout struct {
	Chosen []string // IDs; nil for the default columns
	wide   bool     // all columns at full width
	left   int      // number of columns scrolled to the left
}

// shows reports whether the user chose a column, or whether it is a default one.
func (t *table) shows(c Column) bool {
	if t.Layout.Chosen == nil {
		return t.usual(c)
	}
	return c.ID == columnTask || slices.Contains(t.Layout.Chosen, c.ID)
}

// usual reports whether a column is a default one for the loaded rows.
func (t *table) usual(c Column) bool { return !c.extra && (!c.traced || t.common.traced) }

// wordsMinWidth is the minimum width of a table that shows words instead of signs.
const wordsMinWidth = 150

// Widths of the task's name and of the columns of width 0 if all columns are shown.
const (
	wideNameWidth = 24
	wideTextWidth = 30
)

// minNameWidth is the minimum width of a run's name.
const minNameWidth = 8

// arrange chooses the columns for the width.
func (t *table) arrange() {
	if t.width <= 0 {
		return
	}
	all := AllColumns(t.pane.Styles.Glyphs)
	if t.Layout.wide {
		t.Layout.left = widget.Clamp(t.Layout.left, 0, len(all)-2)
		all = slices.Delete(all, 1, 1+t.Layout.left)
		for i := range all {
			all[i].Width, all[i].drop = cmp.Or(all[i].Width, wideTextWidth), i
		}
		all[0].Width = wideNameWidth
	} else {
		all = t.narrowed(slices.DeleteFunc(all, t.hides))
	}
	t.cols = all
	headings := make([]widget.Heading, len(all))
	for i, c := range all {
		headings[i] = widget.Heading{Title: c.Title, Width: c.Width, Minimum: c.minimum, Narrow: c.narrow,
			Right: c.right, Middle: c.ID == columnTask, Sorted: c.ID == t.Sorting.By, Drop: c.drop}
		if c.ID == columnSubject && t.common.lead != "" {
			headings[i].Remark = " " + t.common.lead + t.pane.Styles.Glyphs.Ellipsis
		}
	}
	t.SetColumns(headings, t.width)
}

// narrowed replaces words by signs if the table is narrow. If other columns share the remaining width, it
// gives the name only the width that the loaded rows need.
func (t *table) narrowed(cols []Column) []Column {
	for i := range cols {
		c := &cols[i]
		if c.sign != nil && t.width < wordsMinWidth {
			c.Cell, c.Width, c.Title = c.sign, 1, ""
		}
		if drop, ok := agentDrop[c.ID]; ok && t.common.traced {
			c.drop = drop
		}
		if c.ID == t.Sorting.By || c.ID == columnTokens && t.unpriced {
			c.drop = min(c.drop, 1)
		}
		if t.Layout.Chosen != nil || t.common.traced {
			c.minimum = cmp.Or(c.narrow, c.minimum)
		}
	}
	if slices.ContainsFunc(cols[1:], func(c Column) bool { return c.Width == 0 }) {
		cols[0].Width = widget.Clamp(t.common.nameWidth, minNameWidth, max(t.width/5, minNameWidth))
	}
	return cols
}

// hides reports whether a column is not shown: the user did not choose it, or all loaded rows have the same
// value.
func (t *table) hides(c Column) bool {
	if t.unpriced && (c.ID == columnTokens || c.ID == columnCost) {
		return c.ID == columnCost
	}
	_, common := t.common.values[c.ID]
	return !t.shows(c) || t.Layout.Chosen == nil && common && c.ID != t.Sorting.By
}

// slide scrolls sideways if all columns are shown and do not fit.
func (t *table) slide(by int) {
	if !t.Layout.wide {
		return
	}
	all := len(AllColumns(t.pane.Styles.Glyphs)) - 1
	if by > 0 && t.Layout.left+len(t.Cols)-1 >= all {
		return
	}
	t.Layout.left = widget.Clamp(t.Layout.left+by, 0, all-1)
	t.arrange()
}

func (t *table) widen() {
	t.Layout.wide, t.Layout.left = !t.Layout.wide, 0
	t.arrange()
}

// toggleColumn shows or hides a column.
func (t *table) toggleColumn(id string) {
	if id == columnTask {
		return
	}
	var chosen, usual []string
	for _, c := range AllColumns(t.pane.Styles.Glyphs) {
		if t.shows(c) != (c.ID == id) {
			chosen = append(chosen, c.ID)
		}
		if t.usual(c) {
			usual = append(usual, c.ID)
		}
	}
	if t.Layout.Chosen = chosen; slices.Equal(chosen, usual) {
		t.Layout.Chosen = nil
	}
	t.arrange()
}

// columnsState names the visible columns if not all fit.
func (t *table) columnsState() string {
	all := len(AllColumns(t.pane.Styles.Glyphs)) - 1
	if !t.Layout.wide || len(t.Cols)-1 >= all {
		return ""
	}
	from := t.Layout.left + 1
	return fmt.Sprintf("columns %d-%d of %d (left, right)", from, from+len(t.Cols)-2, all)
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
