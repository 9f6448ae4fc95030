package runs

import (
	"maps"
	"regexp"
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
	parts, obstacle := conditions(query)
	if obstacle != "" {
		p.Rest = []string{"(" + strings.TrimSpace(query) + ")"}
		return p
	}
	for _, part := range parts {
		name, values := picked(part)
		if name == "" || len(p.Values[name]) > 0 {
			p.Rest = append(p.Rest, part)
			continue
		}
		p.Values[name] = values
	}
	return p
}

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
	if len(parts) == 1 && len(p.Rest) == 1 && strings.HasPrefix(parts[0], "(") {
		inside := parts[0][1 : len(parts[0])-1]
		if _, obstacle := conditions(inside); obstacle != "" {
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

// Quote quotes a value for the query language.
func Quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

var (
	quotedText = regexp.MustCompile(`"(?:\\(?s:.)|[^"\\])*"|'(?:\\(?s:.)|[^'\\])*'`)
	escaped    = regexp.MustCompile(`\\(?s:(.))`)
	pick       = regexp.MustCompile(`(?is)^(\w+)\s*(?:=\s*(["'].*)|\bIN\s*\((.*)\))$`)
)

// picked returns the attribute and the values of a condition, or "" if it is not a pick.
func picked(condition string) (string, []string) {
	m := pick.FindStringSubmatch(condition)
	if m == nil || !slices.Contains(FacetAttributes(), m[1]) {
		return "", nil
	}
	var values []string
	for _, v := range quotedText.FindAllString(m[2]+m[3], -1) {
		values = append(values, unquote(v))
	}
	between := strings.Fields(quotedText.ReplaceAllString(m[2]+m[3], " "))
	switch {
	case len(values) == 0, m[2] != "" && len(values) > 1,
		strings.Join(between, "") != strings.Repeat(",", len(values)-1):
		return "", nil
	}
	return m[1], values
}

// conditionParts matches quoted texts, which may lack their end, brackets, and words.
var conditionParts = regexp.MustCompile(quotedText.String() + `|["'()]|[\w\x{80}-\x{10FFFF}]+`)

// notJoined is the obstacle of a query with conditions that are joined by other words than AND.
const notJoined = "OR, ORDER or GROUP"

// conditions splits a query at its top-level ANDs. If the query cannot be split, obstacle says what prevents
// it.
func conditions(query string) (parts []string, obstacle string) {
	start, depth, between := 0, 0, false
	for _, at := range conditionParts.FindAllStringIndex(query, -1) {
		part := strings.ToUpper(query[at[0]:at[1]])
		switch {
		case part == `"` || part == "'":
			return nil, "a quote without its end"
		case part == ")" && depth == 0:
			return nil, "a ) without ("
		case part == "(":
			depth++
		case part == ")":
			depth--
		case depth > 0:
		case part == "OR" || part == "ORDER" || part == "GROUP":
			return nil, notJoined
		case part == "BETWEEN":
			between = true
		case part == "AND":
			if !between {
				parts = append(parts, query[start:at[0]])
				start = at[1]
			}
			between = false
		}
	}
	if depth != 0 {
		return nil, "a ( without )"
	}
	parts = append(parts, query[start:])
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ""
}
