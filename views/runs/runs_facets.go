package runs

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"acescope/engine/ace"
	"acescope/sources/runs"
	"acescope/tui"
	"acescope/tui/text"
	"acescope/views/console"
)

// facetItems lists the values of each attribute with how many runs have them. Before
// anything is counted it lists what is picked.
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

// otherItems say where a list of values is not complete.
func (v *Runs) otherItems(f runs.Facet) []panelItem {
	var items []panelItem
	if f.Others > 0 {
		items = append(items, panelItem{heading: true, label: "    other values, or none", right: text.Count(f.Others)})
	}
	if f.Dropped > 0 {
		items = append(items, panelItem{heading: true, label: "    values not counted", right: text.Count(int64(f.Dropped))})
	}
	return items
}

// setPicks lists the runs that the picks ask for. The query is taken over at once, so
// that two quick choices do not undo each other.
func (v *Runs) setPicks(p runs.Picks) {
	query := p.Query()
	v.listing.Runs.Query = query
	v.controls.SetQuery(query)
}

// clearPicks takes the picks out of the query and leaves the rest.
func (v *Runs) clearPicks(s tui.Shell) {
	p := runs.SplitQuery(v.listing.Runs.Query)
	if len(p.Values) == 0 {
		s.Note("no value is picked")
		return
	}
	v.setPicks(p.Clear(""))
}

// filterItems lists the saved filters; the one in force has its box checked.
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
		items = append(items, panelItem{heading: true, label: "none yet: ctrl+s saves the query"})
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

// columnItems lists the columns; those that are shown have their boxes checked.
func (v *Runs) columnItems() []panelItem {
	var items []panelItem
	for _, c := range AllColumns(v.Styles.Glyphs) {
		items = append(items, panelItem{label: c.name(), on: v.Arranging.shows(c), ink: v.Styles.Text, choose: func(tui.Shell) tea.Cmd {
			v.toggleColumn(c.Id)
			return nil
		}})
	}
	return items
}
