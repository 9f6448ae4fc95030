package runs

import (
	"slices"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// sections are the filters above the list: those of acescope, of the configuration, and the saved ones.
type sections struct {
	listing *console.Listing
	counts  Counts
	table   *table
	sorted  bool // the section set the order
}

// Counts counts the runs of the sections.
type Counts interface {
	console.Feed[map[string]int64]
	Count(queries []string)
}

// section is a filter as it is shown. A filter that is not understood has no query.
type section struct {
	runs.SavedFilter
	query string
	err   error
}

func (t *sections) all() []section {
	list := make([]section, len(t.listing.Filters))
	for i, f := range t.listing.Filters {
		query, err := runs.Filter(f.Query)
		list[i] = section{f, query, err}
	}
	return list
}

// current returns the index of the section whose runs are listed, or -1.
func (t *sections) current(all []section) int {
	return slices.IndexFunc(all, func(s section) bool {
		return s.err == nil && s.query == t.listing.Runs.Query
	})
}

// look makes the feed count the runs of the sections while they are shown.
func (t *sections) look(shown bool) {
	var queries []string
	for _, s := range t.all() {
		if s.err == nil {
			queries = append(queries, s.query)
		}
	}
	t.counts.Count(queries)
	t.counts.Look(shown)
}

// turn lists the runs of the next section, or with by -1 of the previous one. If the current filter is not a
// section, it goes to the first or the last section.
func (t *sections) turn(s tui.Shell, by int) {
	all := t.all()
	if len(all) == 0 {
		return
	}
	at := t.current(all)
	if at < 0 && by < 0 {
		at = 0
	}
	t.choose(s, all[(at+by+len(all))%len(all)])
}

// choose lists the runs of a section in its order.
func (t *sections) choose(s tui.Shell, to section) {
	if !t.listing.ApplyFilter(s, to.Query) {
		return
	}
	if to.Sort == "" && !t.sorted {
		return
	}
	if _, ok := columnBy(to.Sort); !ok && to.Sort != "" {
		s.Note("filter " + to.Name + ": there is no column " + to.Sort)
		return
	}
	t.order(to.Sort)
}

// order sorts by a column, "" for the newest first.
func (t *sections) order(column string) {
	t.table.Sorting = Sorting{By: column}
	t.sorted = column != ""
	t.table.arrange()
}

// left returns to the order of the newest first if a section set the order and the query is no longer that of
// a section with an order.
func (t *sections) left() {
	all := t.all()
	if at := t.current(all); t.sorted && (at < 0 || all[at].Sort == "") {
		t.order("")
	}
}

// draw draws the sections with their counts, and a query that differs from all of them. If the line is too
// short, it begins with the current section.
func (t *sections) draw(width int, s theme.Styles) string {
	all := t.all()
	at := t.current(all)
	cells := make([]widget.Cell, len(all))
	for i, section := range all {
		cells[i] = widget.Cell{Text: text.Safe(section.Name, " "), Ink: s.Muted}
		if n, ok := t.counts.Value()[section.query]; ok && section.err == nil {
			cells[i].Text += " " + ace.Number(n)
		}
		if i == at {
			cells[i].Ink = s.Accent
			cells[i].Text = s.Glyphs.Pointer + cells[i].Text
		}
	}
	if at < 0 {
		query := widget.Cell{Text: s.Glyphs.Pointer + "/ " + text.Safe(t.listing.Runs.Query, " "),
			Ink: s.Accent}
		cells = append([]widget.Cell{query}, cells...)
	}
	used := 0
	for i, c := range cells[:max(at+1, 0)] {
		if used += text.Width(c.Text) + 2; i == at && used > width {
			cells = cells[at:]
		}
	}
	l := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	for _, c := range cells {
		l.Add(s.Muted, " ").Add(c.Ink, c.Text).Add(s.Muted, " ")
	}
	return l.String(s.Text)
}
