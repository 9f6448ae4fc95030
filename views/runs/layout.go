package runs

import (
	"fmt"
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
func (t *table) arrange() {
	t.drawn = nil
	if t.width <= 0 {
		return
	}
	width, all := t.width, AllColumns(t.pane.Styles.Glyphs)
	if t.cols = nil; t.Layout.wide {
		t.Layout.left = widget.Clamp(t.Layout.left, 0, len(all)-2)
		t.cols = scrolled(all, t.Layout.left, width)
	} else {
		t.cols = t.fitted(t.narrowed(slices.DeleteFunc(all, t.hides)))
	}
	l := text.Line{Max: width}
	l.Add(t.pane.Styles.Muted, text.Spaces(widget.PointerWidth))
	for i, c := range t.cols {
		if i > 0 {
			l.Add(t.pane.Styles.Muted, " ")
		}
		ink := widget.If(c.ID == t.Sorting.By, t.pane.Styles.Strong, t.pane.Styles.Muted)
		title := c.Title
		if c.ID == columnSubject && t.common.lead != "" {
			lead := " " + t.common.lead + t.pane.Styles.Glyphs.Ellipsis
			title += widget.If(text.Width(title+lead) > c.Width, "", lead)
		}
		l.Add(ink, c.fit(title, t.pane.Styles.Glyphs.Ellipsis))
	}
	t.heading = l.String(t.pane.Styles.Muted)
}

// wordsMinWidth is the minimum width of a table that shows words instead of signs.
const wordsMinWidth = 150

// fitted returns the columns that fit. If a text is not among them, the texts get less room, and by default
// less important columns get none.
func (t *table) fitted(cols []Column) []Column {
	texts := func(cols []Column) (n int) {
		for _, c := range cols {
			if c.minimum > 0 {
				n++
			}
		}
		return n
	}
	fitting := Fitting(cols, t.width)
	if texts(fitting) == texts(cols) {
		return fitting
	}
	least := 0
	for i := range cols {
		if cols[i].narrow > 0 {
			cols[i].minimum, least = cols[i].narrow, max(least, cols[i].drop)
		}
	}
	return Fitting(slices.DeleteFunc(cols, func(c Column) bool {
		return c.drop > least && t.Layout.Chosen == nil && c.ID != t.Sorting.By
	}), t.width)
}

// narrowed replaces words by signs if the table is narrow. If other columns share the remaining width, it
// gives the name only the width that the loaded rows need.
func (t *table) narrowed(cols []Column) []Column {
	for i := range cols {
		if c := &cols[i]; c.sign != nil && t.width < wordsMinWidth {
			c.Cell, c.Width, c.Title = c.sign, 1, ""
		}
		if c := &cols[i]; c.ID == columnTokens && t.unpriced {
			c.drop = 1
		}
	}
	if slices.ContainsFunc(cols[1:], func(c Column) bool { return c.Width == 0 }) {
		cols[0].Width = widget.Clamp(t.common.nameWidth, minNameWidth, max(t.width/5, minNameWidth))
	}
	return cols
}

// minNameWidth is the minimum width of a run's name.
const minNameWidth = 8

// hides reports whether a column is not shown: the user did not choose it, or all loaded rows have the same
// value.
func (t *table) hides(c Column) bool {
	if t.unpriced && (c.ID == columnTokens || c.ID == columnCost) {
		return c.ID == columnCost
	}
	_, common := t.common.values[c.ID]
	return !t.Layout.shows(c) || t.Layout.Chosen == nil && common && c.ID != t.Sorting.By
}

// slide scrolls sideways if all columns are shown and do not fit.
func (t *table) slide(by int) {
	if !t.Layout.wide {
		return
	}
	all := len(AllColumns(t.pane.Styles.Glyphs)) - 1
	if by > 0 && t.Layout.left+len(t.cols)-1 >= all {
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
	var chosen []string
	for _, c := range AllColumns(t.pane.Styles.Glyphs) {
		if t.Layout.shows(c) != (c.ID == id) {
			chosen = append(chosen, c.ID)
		}
	}
	if t.Layout.Chosen = chosen; slices.Equal(chosen, DefaultColumnNames()) {
		t.Layout.Chosen = nil
	}
	t.arrange()
}

// columnsState names the visible columns if not all fit.
func (t *table) columnsState() string {
	all := len(AllColumns(t.pane.Styles.Glyphs)) - 1
	if !t.Layout.wide || len(t.cols)-1 >= all {
		return ""
	}
	from := t.Layout.left + 1
	return fmt.Sprintf("columns %d-%d of %d (left, right)", from, from+len(t.cols)-2, all)
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
