package runs

import (
	"maps"
	"slices"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/temporal/history"
)

// FacetAttributes returns the search attributes by which a list can be narrowed by value, in display order.
// The task id is not included, because nearly every run has its own.
func FacetAttributes() []string {
	return []string{history.AttrStatus, ace.AttrExit, AttrType, ace.AttrExperiment, ace.AttrDataset,
		ace.AttrModel, ace.AttrAdapter, ace.AttrPhase, ace.AttrBlueprint, ace.AttrRunner}
}

// facetNames are the words of the columns for attributes.
var facetNames = map[string]string{history.AttrStatus: "Status", ace.AttrExit: "Verdict",
	AttrType: "Type", ace.AttrExperiment: "Experiment", ace.AttrDataset: "Dataset", ace.AttrModel: "Model",
	ace.AttrAdapter: "Adapter", ace.AttrPhase: "Phase", ace.AttrBlueprint: "Blueprint",
	ace.AttrRunner: "Runner"}

// FacetName returns the name of an attribute on screens.
func FacetName(attribute string) string { return facetNames[attribute] }

// FacetLabel returns a value of an attribute as screens write it. The exit status success states no verdict:
// the answer was correct, or was not graded.
func FacetLabel(attribute, value string) string {
	switch {
	case attribute == history.AttrStatus:
		return strings.ReplaceAll(string(statusWord(value)), "_", " ")
	case attribute == ace.AttrExit && value == string(ace.ExitSuccess):
		return "correct or ungraded"
	case attribute == AttrType && TypeOf(value) != OtherType:
		return TypeOf(value)
	}
	return value
}

// Picks is a parsed visibility query: the picked values of each facet attribute, and the rest.
type Picks struct {
	Values map[string][]string
	Rest   []string // conditions joined by AND
}

// SplitQuery parses a query. Conditions of the form Attribute = "value" and Attribute IN ("a", "b") that are
// joined by AND are picks. A query with OR at the top level has no picks.
func SplitQuery(query string) Picks {
	p := Picks{Values: map[string][]string{}}
	e, err := parse(query)
	if err != nil || alternative(e) {
		p.Rest = []string{"(" + strings.TrimSpace(query) + ")"}
		return p
	}
	for _, part := range e.conjuncts() {
		values := part.texts()
		if (part.op != "=" && part.op != "IN") || len(values) == 0 || len(p.Values[part.name]) > 0 ||
			!slices.Contains(FacetAttributes(), part.name) {
			p.Rest = append(p.Rest, part.text)
			continue
		}
		p.Values[part.name] = values
	}
	return p
}

// alternative reports whether the parts of a query need not all hold.
func alternative(e expr) bool { return e.join == "OR" || e.join == "ORDER" }

// Query returns the query: the rest, then the picks.
func (p Picks) Query() string { return p.without("") }

// without returns the query without the picks of one attribute.
func (p Picks) without(name string) string {
	parts := slices.Clone(p.Rest)
	for _, a := range FacetAttributes() {
		values := p.Values[a]
		if a == name || len(values) == 0 {
			continue
		}
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = Quote(v)
		}
		parts = append(parts, equals(a, "=", quoted))
	}
	if whole, err := parse(strings.Join(parts, "")); len(parts) == 1 && len(p.Rest) == 1 &&
		strings.HasPrefix(parts[0], "(") && (err != nil || whole.join != "") {
		inside := parts[0][1 : len(parts[0])-1]
		if e, err := parse(inside); err != nil || alternative(e) {
			return inside // unchanged
		}
	}
	return strings.Join(parts, " AND ")
}

// Has reports whether a value is picked.
func (p Picks) Has(name, value string) bool { return slices.Contains(p.Values[name], value) }

// Toggle returns the picks with a value added or removed.
func (p Picks) Toggle(name, value string) Picks {
	values := maps.Clone(p.Values)
	if p.Has(name, value) {
		values[name] = slices.DeleteFunc(slices.Clone(values[name]), func(v string) bool {
			return v == value
		})
	} else {
		values[name] = append(slices.Clone(values[name]), value)
	}
	return Picks{values, p.Rest}
}

// Clear returns the query without picks.
func (p Picks) Clear() Picks { return Picks{Rest: p.Rest} }
