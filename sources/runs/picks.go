package runs

import (
	"regexp"
	"slices"
	"strings"

	"acescope/engine/ace"
)

// FacetAttributes returns the search attributes by which a list can be narrowed by value, in display order. The
// task id is not included, because nearly every run has its own.
func FacetAttributes() []string {
	return []string{ace.AttrExit, ace.AttrExperiment, ace.AttrDataset, ace.AttrModel, ace.AttrAdapter, ace.AttrPhase, ace.AttrBlueprint, ace.AttrRunner}
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
	parts, ored := Conditions(query)
	if ored {
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
		switch {
		case a == name || len(values) == 0:
		case len(values) == 1:
			parts = append(parts, a+"="+Quote(values[0]))
		default:
			parts = append(parts, a+" IN ("+quoted(values)+")")
		}
	}
	if len(parts) == 1 && len(p.Rest) == 1 && strings.HasPrefix(parts[0], "(") {
		if _, ored := Conditions(Inside(parts[0])); ored {
			return Inside(parts[0]) // unchanged
		}
	}
	return strings.Join(parts, " AND ")
}

func Inside(bracketed string) string { return bracketed[1 : len(bracketed)-1] }

// Has reports whether a value is picked.
func (p Picks) Has(name, value string) bool { return slices.Contains(p.Values[name], value) }

// Toggle returns the picks with a value added or removed.
func (p Picks) Toggle(name, value string) Picks {
	values := map[string][]string{}
	for k, v := range p.Values {
		values[k] = v
	}
	if p.Has(name, value) {
		values[name] = slices.DeleteFunc(slices.Clone(values[name]), func(v string) bool { return v == value })
	} else {
		values[name] = append(slices.Clone(values[name]), value)
	}
	return Picks{values, p.Rest}
}

// Clear returns the picks without those of one attribute, or without any for "".
func (p Picks) Clear(name string) Picks {
	values := map[string][]string{}
	for k, v := range p.Values {
		if name != "" && k != name {
			values[k] = v
		}
	}
	return Picks{values, p.Rest}
}

// Quote quotes a value for the query language.
func Quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

var (
	equalTo = regexp.MustCompile(`^(\w+)\s*=\s*(["'].*)$`)
	oneOf   = regexp.MustCompile(`(?i)^(\w+)\s+IN\s*\((.*)\)$`)
)

// picked returns the attribute and the values of a condition, or "" if it is not a pick.
func picked(condition string) (string, []string) {
	if m := equalTo.FindStringSubmatch(condition); m != nil && facetAttribute(m[1]) {
		if v, rest, ok := literal(m[2]); ok && rest == "" {
			return m[1], []string{v}
		}
	}
	m := oneOf.FindStringSubmatch(condition)
	if m == nil || !facetAttribute(m[1]) {
		return "", nil
	}
	var values []string
	for list := strings.TrimSpace(m[2]); ; {
		v, rest, ok := literal(list)
		if !ok {
			return "", nil
		}
		values = append(values, v)
		if rest = strings.TrimSpace(rest); rest == "" {
			return m[1], values
		}
		if rest[0] != ',' {
			return "", nil
		}
		list = strings.TrimSpace(rest[1:])
	}
}

func facetAttribute(name string) bool { return slices.Contains(FacetAttributes(), name) }

// literal reads the quoted text at the start of s.
func literal(s string) (value, rest string, ok bool) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case s[i] == s[0]:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// Conditions splits a query at its top-level ANDs. It reports whether the query must stay whole: it has a
// top-level OR, or an unbalanced bracket or quote.
func Conditions(query string) (parts []string, whole bool) {
	start, depth, between := 0, 0, false
	for i := 0; i < len(query); i++ {
		c := query[i]
		switch {
		case c == '"' || c == '\'':
			_, rest, ok := literal(query[i:])
			if !ok {
				return nil, true
			}
			i = len(query) - len(rest) - 1
		case c == '(':
			depth++
		case c == ')' && depth == 0:
			return nil, true
		case c == ')':
			depth--
		case depth == 0 && wordStart(query, i):
			word := wordAt(query, i)
			switch strings.ToUpper(word) {
			case "OR", "ORDER", "GROUP":
				return nil, true
			case "BETWEEN":
				between = true
			case "AND":
				if !between {
					parts = append(parts, query[start:i])
					start = i + len(word)
				}
				between = false
			}
			i += len(word) - 1
		}
	}
	if depth != 0 {
		return nil, true
	}
	parts = append(parts, query[start:])
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" }), false
}

func letter(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func wordStart(s string, at int) bool { return letter(s[at]) && (at == 0 || !letter(s[at-1])) }

func wordAt(s string, at int) string {
	end := at
	for end < len(s) && letter(s[end]) {
		end++
	}
	return s[at:end]
}
