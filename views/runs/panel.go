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

// sidePanel is a list of choices beside the runs, or in their place in a narrow pane.
type sidePanel struct {
	kind        panelKind
	cursor, top int
	items       []panelItem
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

func (v *Runs) panelBeside() bool { return v.panel.kind != noPanel && v.Width >= panelMinWidth }

// tableWidth returns the width beside the panel.
func (v *Runs) tableWidth() int {
	if v.panelBeside() {
		return v.Width - panelWidth - 1
	}
	return v.Width
}

// openPanel opens a panel, or closes it if it is open.
func (v *Runs) openPanel(kind panelKind) {
	if v.panel.kind == kind {
		kind = noPanel
	}
	v.panel = sidePanel{kind: kind}
	v.look()
	v.arrange()
	v.reveal()
	v.fillPanel()
}

// look reads facets while they are shown.
func (v *Runs) look() {
	v.feeds.Facets.Look(v.shown && v.panel.kind == facetPanel)
}

// fillPanel lists the choices of the panel.
func (v *Runs) fillPanel() {
	p := &v.panel
	switch p.kind {
	case facetPanel:
		p.items = v.facetItems()
	case filterPanel:
		p.items = v.filterItems()
	case columnPanel:
		p.items = v.columnItems()
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

func (v *Runs) panelTitle() (title, hint string) {
	switch v.panel.kind {
	case facetPanel:
		return "Facets", "space picks, - clears, F closes"
	case filterPanel:
		return "Saved filters", "enter applies, ctrl+o closes"
	}
	return "Columns", "space shows or hides, c closes"
}

// drawPanel returns exactly height lines.
func (v *Runs) drawPanel(width, height int, focused bool) []string {
	v.fillPanel()
	s, p := v.Styles, &v.panel
	title, hint := v.panelTitle()
	head := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	head.Add(s.Title, " "+title).Add(s.Muted, "  "+v.panelState())
	lines := append(make([]string, 0, height), head.String(s.Text))
	room := max(height-2, 1)
	p.top = widget.Clamp(p.top, p.cursor-room+1, p.cursor)
	if p.top = widget.Clamp(p.top, 0, max(len(p.items)-room, 0)); p.top == 1 && p.cursor < room {
		p.top = 0 // the first heading
	}
	for i := p.top; i < min(p.top+room, len(p.items)); i++ {
		lines = append(lines, drawItem(p.items[i], i == p.cursor, focused, width, s))
	}
	lines = widget.Fill(lines, width, height-1)
	foot := text.Line{Max: width, Tail: s.Glyphs.Ellipsis}
	foot.Add(s.Hint, " "+hint)
	return widget.Fill(append(lines, foot.String(s.Text)), width, height)
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

// panelState returns the remark beside the panel's title.
func (v *Runs) panelState() string {
	switch f := v.listing.Counted; {
	case v.panel.kind != facetPanel:
		return ""
	case f == nil || f.Query != v.listing.Runs.Query:
		return "counting" + v.Styles.Glyphs.Ellipsis
	case f.Err != "":
		return "not counted: " + text.Safe(f.Err, " ")
	}
	return ""
}

// facetItems lists the values of each attribute with their number of runs. Before the counts are read, it lists the
// picked values.
func (v *Runs) facetItems() []panelItem {
	picks := runs.SplitQuery(v.listing.Runs.Query)
	var items []panelItem
	for _, name := range runs.FacetAttributes() {
		f := v.facetOf(name)
		items = append(items, panelItem{heading: true, label: name})
		listed := []string{}
		for _, value := range f.Values {
			listed = append(listed, value.Value)
			items = append(items, v.facetItem(name, value))
		}
		for _, value := range picks.Values[name] {
			if !slices.Contains(listed, value) {
				items = append(items, v.facetItem(name, runs.FacetValue{Value: value, Count: -1}))
			}
		}
		items = append(items, v.otherItems(f)...)
	}
	return items
}

func (v *Runs) facetOf(name string) runs.Facet {
	if v.listing.Counted != nil {
		for _, f := range v.listing.Counted.List {
			if f.Attribute == name {
				return f
			}
		}
	}
	return runs.Facet{Attribute: name}
}

func (v *Runs) facetItem(name string, value runs.FacetValue) panelItem {
	it := panelItem{on: runs.SplitQuery(v.listing.Runs.Query).Has(name, value.Value), label: text.Safe(value.Value, " "), right: " ?", ink: v.Styles.Text}
	if value.Count >= 0 {
		it.right = " " + text.Count(value.Count)
	}
	if name == ace.AttrExit {
		it.ink = v.Styles.Status(value.Value).Ink
	}
	it.choose = func(tui.Shell) tea.Cmd {
		v.setPicks(runs.SplitQuery(v.listing.Runs.Query).Toggle(name, value.Value))
		return nil
	}
	return it
}

// otherItems count the values that are not listed.
func (v *Runs) otherItems(f runs.Facet) []panelItem {
	var items []panelItem
	if f.Others > 0 {
		items = append(items, panelItem{heading: true, label: "    other or no value", right: text.Count(f.Others)})
	}
	if f.Dropped > 0 {
		items = append(items, panelItem{heading: true, label: "    values not counted", right: text.Count(int64(f.Dropped))})
	}
	return items
}

// setPicks sets the query for picked values. It changes the query at once so that a second quick pick extends it.
func (v *Runs) setPicks(p runs.Picks) {
	query := p.Query()
	v.listing.Runs.Query = query
	v.controls.SetQuery(query)
}

// clearPicks removes the picked values from the query and keeps the rest.
func (v *Runs) clearPicks(s tui.Shell) {
	p := runs.SplitQuery(v.listing.Runs.Query)
	if len(p.Values) == 0 {
		s.Note("no value is picked")
		return
	}
	v.setPicks(p.Clear(""))
}

// filterItems lists the saved filters; the current one is checked.
func (v *Runs) filterItems() []panelItem {
	all := panelItem{label: "all runs", on: v.listing.Runs.Query == "", ink: v.Styles.Text, choose: v.apply("")}
	items := []panelItem{all}
	for _, f := range v.listing.Filters {
		query := console.Filter(f.Query)
		name := text.Safe(f.Name, " ")
		if f.Default {
			name += " (default)"
		}
		items = append(items, panelItem{label: name, on: query == v.listing.Runs.Query, ink: v.Styles.Text, choose: v.apply(query)},
			panelItem{heading: true, label: "     " + text.Safe(query, " ")})
	}
	if len(v.listing.Filters) == 0 {
		items = append(items, panelItem{heading: true, label: "no saved filters; ctrl+s saves the query"})
	}
	return items
}

func (v *Runs) apply(query string) func(tui.Shell) tea.Cmd {
	return func(tui.Shell) tea.Cmd {
		v.listing.Runs.Query = query
		v.controls.SetQuery(query)
		v.openPanel(noPanel)
		return nil
	}
}

// columnItems lists the columns; shown ones are checked.
func (v *Runs) columnItems() []panelItem {
	var items []panelItem
	for _, c := range AllColumns(v.Styles.Glyphs) {
		items = append(items, panelItem{label: c.name(), on: v.Layout.shows(c), ink: v.Styles.Text, choose: func(tui.Shell) tea.Cmd {
			v.toggleColumn(c.ID)
			return nil
		}})
	}
	return items
}
