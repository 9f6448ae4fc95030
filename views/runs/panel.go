package runs

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/theme"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/tui/widget"
	"acescope/views/console"
)

// panelKind selects the content of the side panel.
type panelKind uint8

const (
	noPanel panelKind = iota
	facetPanel
	filterPanel
	columnPanel
)

// sidePanel is a list of choices beside the runs, or instead of them in a narrow pane. Its choices change the
// query or the columns.
type sidePanel struct {
	pane     *console.Pane
	listing  *console.Listing
	controls console.Controls
	table    *table
	sections *sections
	close    func()

	kind        panelKind
	cursor, top int
	items       []panelItem
}

func (p *sidePanel) open() bool { return p.kind != noPanel }

// turn shows another panel, or hides the panel.
func (p *sidePanel) turn(kind panelKind) {
	p.kind, p.cursor, p.top = kind, 0, 0
	p.fill()
}

// panelItem is a line of the panel: a heading, or something to choose.
type panelItem struct {
	heading bool
	on      bool
	label   string
	right   string
	ink     theme.Ink
	choose  func(tui.Shell) tea.Cmd
}

// Width of the panel, and minimum width of a pane that shows both the panel and the table.
const (
	panelWidth    = 34
	panelMinWidth = 90
)

// fill lists the choices of the panel.
func (p *sidePanel) fill() {
	switch p.kind {
	case facetPanel:
		p.items = p.facetItems()
	case filterPanel:
		p.items = p.filterItems()
	case columnPanel:
		p.items = p.columnItems()
	default:
		p.items = nil
	}
	p.move(0)
}

// move moves the cursor, skipping headings.
func (p *sidePanel) move(by int) {
	n := len(p.items)
	p.cursor = widget.Clamp(p.cursor+by, 0, max(n-1, 0))
	step := 1
	if by < 0 {
		step = -1
	}
	for _, step := range []int{step, -step} {
		for at := p.cursor; at >= 0 && at < n; at += step {
			if !p.items[at].heading {
				p.cursor = at
				return
			}
		}
	}
}

func (p *sidePanel) choose(s tui.Shell) tea.Cmd {
	if p.cursor >= len(p.items) || p.items[p.cursor].choose == nil {
		return nil
	}
	return p.items[p.cursor].choose(s)
}

func (p *sidePanel) title() (title, hint string) {
	switch p.kind {
	case facetPanel:
		return "Facets", "space picks, backspace clears, F closes"
	case filterPanel:
		return "Saved filters", "enter applies, ctrl+o closes"
	}
	return "Columns", "space shows or hides, C closes"
}

// draw returns exactly height lines.
func (p *sidePanel) draw(width, height int, focused bool) []string {
	p.fill()
	s := p.pane.Styles
	title, hint := p.title()
	head := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	head.Add(s.Title, " "+title).Add(s.Muted, "  "+p.state())
	lines := append(make([]string, 0, height), head.String(s.Text))
	space := max(height-2, 1)
	if p.top = widget.TopOf(p.top, p.cursor, space, len(p.items)); p.top == 1 && p.cursor < space {
		p.top = 0 // the first heading
	}
	for i := p.top; i < min(p.top+space, len(p.items)); i++ {
		lines = append(lines, drawItem(p.items[i], i == p.cursor, focused, width, s))
	}
	lines = widget.Fill(lines, width, height-1)
	foot := &text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	return widget.Fill(append(lines, foot.Add(s.Hint, " "+hint).String(s.Text)), width, height)
}

func drawItem(it panelItem, cursor, focused bool, width int, s theme.Styles) string {
	l := text.Line{Max: width - text.Width(it.right) - 1, Tail: s.Glyphs.Ellipsis}
	if it.heading {
		l.Add(s.Strong, " "+it.label)
		return text.Fit(l.String(s.Text)+s.Muted.Paint(it.right)+" ", width, "")
	}
	pointer, box := "  ", "[ ] "
	if cursor {
		pointer = s.Glyphs.Pointer + " "
	}
	if it.on {
		box = "[x] "
	}
	if cursor && focused {
		l.Add(theme.Ink{}, pointer+box+it.label)
		return s.Selected.Paint(text.Fit(l.String(theme.Ink{})+it.right, width, ""))
	}
	l.Add(s.Text, pointer).Add(s.Muted, box).Add(it.ink, it.label)
	return text.Fit(l.String(s.Text)+s.Muted.Paint(it.right), width, "")
}

// state returns the remark beside the panel's title.
func (p *sidePanel) state() string {
	switch f := p.listing.Counted; {
	case p.kind != facetPanel:
		return ""
	case f == nil || f.Query != p.listing.Runs.Query:
		return "counting" + p.pane.Styles.Glyphs.Ellipsis
	case f.Err != "":
		return "not counted: " + text.Safe(f.Err, " ")
	}
	return ""
}

// facetItems lists the values of each attribute with their number of runs. Before the counts are read, it
// lists the picked values.
func (p *sidePanel) facetItems() []panelItem {
	picks := runs.SplitQuery(p.listing.Runs.Query)
	counted := p.listing.Counted
	if counted == nil {
		counted = &runs.Facets{}
	}
	var items []panelItem
	for _, name := range runs.FacetAttributes() {
		f := counted.Of(name)
		items = append(items, panelItem{heading: true, label: runs.FacetName(name)})
		listed := []string{}
		for _, value := range f.Values {
			listed = append(listed, value.Value)
			items = append(items, p.facetItem(name, value))
		}
		for _, value := range picks.Values[name] {
			if !slices.Contains(listed, value) {
				items = append(items, p.facetItem(name, runs.FacetValue{Value: value, Count: -1}))
			}
		}
		items = append(items, p.otherItems(f)...)
	}
	return items
}

func (p *sidePanel) facetItem(name string, value runs.FacetValue) panelItem {
	it := panelItem{
		on:    runs.SplitQuery(p.listing.Runs.Query).Has(name, value.Value),
		label: text.Safe(runs.FacetLabel(name, value.Value), " "), right: " ?", ink: p.pane.Styles.Text,
	}
	if value.Count >= 0 {
		it.right = " " + ace.Number(value.Count)
	}
	if name == ace.AttrExit {
		it.ink = p.pane.Styles.Status(value.Value).Ink
	}
	it.choose = func(tui.Shell) tea.Cmd {
		p.setPicks(runs.SplitQuery(p.listing.Runs.Query).Toggle(name, value.Value))
		return nil
	}
	return it
}

// otherItems count the values that are not listed.
func (p *sidePanel) otherItems(f runs.Facet) []panelItem {
	var items []panelItem
	if f.Others > 0 {
		items = append(items, panelItem{heading: true, label: "    other or no value",
			right: ace.Number(f.Others)})
	}
	if f.Dropped > 0 {
		items = append(items, panelItem{heading: true, label: "    values not counted",
			right: ace.Number(f.Dropped)})
	}
	return items
}

// setPicks sets the query for the picked values. It changes the query immediately, so that the next pick
// extends it.
func (p *sidePanel) setPicks(picks runs.Picks) {
	query := picks.Query()
	p.listing.Runs.Query = query
	p.controls.SetQuery(query)
}

// clearPicks removes the picked values from the query and keeps the rest.
func (p *sidePanel) clearPicks(s tui.Shell) {
	picks := runs.SplitQuery(p.listing.Runs.Query)
	if len(picks.Values) == 0 {
		s.Note("no value is picked")
		return
	}
	p.setPicks(picks.Clear())
}

// filterItems lists the saved filters; the current one is checked.
func (p *sidePanel) filterItems() []panelItem {
	var items []panelItem
	all := p.sections.all()
	at := p.sections.current(all)
	for i, f := range all {
		name := text.Safe(f.Name, " ")
		name += widget.If(f.Default, " (default)", "")
		explained := f.query
		if f.err != nil {
			explained = f.err.Error()
		}
		items = append(items, panelItem{label: name, on: i == at, ink: p.pane.Styles.Text,
			choose: p.apply(f)})
		if explained != "" {
			items = append(items, panelItem{heading: true, label: "     " + text.Safe(explained, " ")})
		}
	}
	return append(items, panelItem{heading: true, label: "ctrl+s saves the query"})
}

func (p *sidePanel) apply(f section) func(tui.Shell) tea.Cmd {
	return func(s tui.Shell) tea.Cmd {
		p.close()
		p.sections.choose(s, f)
		return nil
	}
}

// columnItems lists the columns; shown ones are checked.
func (p *sidePanel) columnItems() []panelItem {
	var items []panelItem
	for _, c := range AllColumns(p.pane.Styles.Glyphs) {
		toggle := func(tui.Shell) tea.Cmd {
			p.table.toggleColumn(c.ID)
			return nil
		}
		items = append(items, panelItem{
			label: c.name(), on: p.table.shows(c), ink: p.pane.Styles.Text, choose: toggle,
		})
	}
	return items
}
