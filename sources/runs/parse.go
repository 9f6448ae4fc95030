package runs

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// token is a word, an operator, a bracket, a comma or a quoted text of typed text, as it is written.
type token struct {
	text    string
	at, end int
}

// tokenPattern matches the tokens of typed text. A quoted text may lack its end. Of a word, only the server
// knows whether it is a name, a number or nonsense.
var tokenPattern = regexp.MustCompile(
	`"(?:\\(?s:.)|""|[^"\\])*(?:"|\\?$)|'(?:\\(?s:.)|''|[^'\\])*(?:'|\\?$)|` +
		`[(),]|[!<>]=|<>|[=<>]|&&|\|\||` + "`[^`]*`?" + `|[^\s"'(),=<>!&|` + "`" + `]+|\S`)

func tokensOf(text string) []token {
	var out []token
	for _, at := range tokenPattern.FindAllStringIndex(text, -1) {
		out = append(out, token{text[at[0]:at[1]], at[0], at[1]})
	}
	return out
}

func (t token) is(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, t.text) })
}

func (t token) quoted() bool { return strings.IndexAny(t.text, `"'`) == 0 }

// torn reports whether the token is a quoted text without its end.
func (t token) torn() bool { return t.quoted() && !wholeText.MatchString(t.text) }

var (
	wholeText = regexp.MustCompile(`^(?:"(?:\\(?s:.)|""|[^"\\])*"|'(?:\\(?s:.)|''|[^'\\])*')$`)
	escaped   = regexp.MustCompile(`\\(?s:(.))|""|''`)
)

// value returns what a token stands for: the text in quotes, or the word.
func (t token) value() string {
	if !t.quoted() || t.torn() {
		return t.text
	}
	quote := t.text[:1]
	return escaped.ReplaceAllStringFunc(t.text[1:len(t.text)-1], func(s string) string {
		if s[0] == '\\' || s[:1] == quote {
			return s[1:]
		}
		return s
	})
}

// numberOf returns the finite number that a word is.
func numberOf(word string) (n float64, ok bool) {
	n, err := strconv.ParseFloat(word, 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// expr is a part of a query: parts that are joined by AND or OR, one after NOT or in brackets, or a condition.
type expr struct {
	text  string // as it is written
	at    int    // where it begins in the query
	join  string // "AND", "OR", "NOT", "(", "ORDER" if clauses follow; "" for a condition
	parts []expr
	comparison
}

// comparison compares an attribute with values. The operator is "" for anything that only the server may
// understand; otherwise it is in upper case, and <> is !=.
type comparison struct {
	name, op string
	values   []token
}

// conjuncts returns the parts that must all hold.
func (e expr) conjuncts() []expr {
	if e.join == "AND" {
		return e.parts
	}
	if e.text == "" {
		return nil
	}
	return []expr{e}
}

// conditions calls fn for each condition of the expression.
func (e expr) conditions(fn func(expr)) {
	if e.join == "" {
		fn(e)
	}
	for _, part := range e.parts {
		part.conditions(fn)
	}
}

// parse parses a query. It fails only if brackets or quotes lack their other end.
func parse(query string) (expr, error) {
	p := &parser{query: query, tokens: tokensOf(query)}
	if slices.ContainsFunc(p.tokens, token.torn) {
		return expr{}, errors.New("a quote without its end")
	}
	e := p.joined("OR")
	if p.is("ORDER", "GROUP", "LIMIT") {
		e = expr{join: "ORDER", text: strings.TrimSpace(query), parts: []expr{e}}
	} else if p.is(")") {
		p.missing = "a ) without ("
	}
	if p.missing != "" {
		return expr{}, errors.New(p.missing)
	}
	return e, nil
}

type parser struct {
	query   string
	tokens  []token // the first of rest is the next
	depth   int
	missing string
}

func (p *parser) is(words ...string) bool { return len(p.tokens) > 0 && p.tokens[0].is(words...) }

func (p *parser) take(words ...string) bool {
	if !p.is(words...) {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

// ended reports whether a condition cannot go on.
func (p *parser) ended() bool {
	return len(p.tokens) == 0 || p.is(")", "AND", "&&", "OR", "||") ||
		p.depth == 0 && p.is("ORDER", "GROUP", "LIMIT")
}

var joiners = map[string]string{"AND": "&&", "OR": "||"}

// joined parses parts that are joined by AND or OR. Parts without text are left out.
func (p *parser) joined(by string) expr {
	e := expr{join: by}
	for {
		part := expr{}
		if by == "OR" {
			part = p.joined("AND")
		} else {
			part = p.single()
		}
		if part.text != "" {
			e.parts = append(e.parts, part)
		}
		if !p.take(by, joiners[by]) {
			break
		}
	}
	switch n := len(e.parts); n {
	case 0:
		return expr{}
	case 1:
		return e.parts[0]
	default:
		last := e.parts[n-1]
		e.at = e.parts[0].at
		e.text = p.query[e.at : last.at+len(last.text)]
		return e
	}
}

// single parses a condition, also after NOT or in brackets.
func (p *parser) single() expr {
	if p.ended() {
		return expr{}
	}
	all := p.tokens
	e := expr{at: all[0].at}
	switch {
	case p.take("NOT"):
		e.join, e.parts = "NOT", []expr{p.single()}
	case p.take("("):
		e.join, e.parts = "(", []expr{p.bracket()}
	}
	if !p.ended() {
		e.join, e.parts = "", nil
		p.rest()
	}
	used := all[:len(all)-len(p.tokens)]
	if e.join == "" {
		e.comparison = comparisonOf(used)
	}
	e.text = p.query[e.at:used[len(used)-1].end]
	return e
}

// bracket parses what is in brackets, after the first one.
func (p *parser) bracket() expr {
	p.depth++
	e := p.joined("OR")
	p.depth--
	if !p.take(")") {
		p.missing = "a ( without )"
	}
	return e
}

// rest skips the rest of a condition.
func (p *parser) rest() {
	for between := false; !p.ended() || between && p.is("AND"); p.tokens = p.tokens[1:] {
		switch {
		case p.is("BETWEEN"):
			between = true
		case p.is("AND"):
			between = false
		}
		for depth := 0; p.is("(") || depth > 0 && len(p.tokens) > 0; p.tokens = p.tokens[1:] {
			if p.is("(") {
				depth++
			} else if p.is(")") {
				if depth--; depth == 0 {
					break
				}
			}
		}
		if len(p.tokens) == 0 {
			p.missing = "a ( without )"
			return
		}
	}
}

var comparisons = []string{"=", "!=", "<", "<=", ">", ">="}

// comparisonOf parses the tokens of a condition: a name, an operator, and one value, or several in brackets
// after IN.
func comparisonOf(tokens []token) comparison {
	c := comparison{name: strings.Trim(tokens[0].text, "`")}
	words := tokens[1:]
	not := len(words) > 0 && words[0].is("NOT")
	if not {
		words = words[1:]
	}
	if len(words) < 2 {
		return c
	}
	op, operands := strings.ToUpper(words[0].text), words[1:]
	switch {
	case op == "<>":
		op = "!="
	case op == "IS" && operands[0].is("NOT") && len(operands) == 2 && !not:
		op, operands = "IS NOT", operands[1:]
	}
	switch {
	case slices.Contains(comparisons, op) && !not && len(operands) == 1,
		op == "STARTS_WITH" && len(operands) == 1:
		c.values = operands
	case strings.HasPrefix(op, "IS") && operands[0].is("NULL") && len(operands) == 1 && !not:
	case op == "IN" && len(operands)%2 == 1 && operands[0].is("(") && operands[len(operands)-1].is(")"):
		for i, t := range operands[1:] {
			if i%2 == 0 {
				c.values = append(c.values, t)
			} else if t.text != "," && i != len(operands)-2 {
				return comparison{name: c.name}
			}
		}
	default:
		return c
	}
	if slices.ContainsFunc(c.values, func(t token) bool { return t.is("(", ")", ",") }) {
		return comparison{name: c.name}
	}
	if c.op = op; not {
		c.op = "NOT " + op
	}
	return c
}

// texts returns the values if all are quoted, otherwise nil.
func (c comparison) texts() []string {
	var out []string
	for _, t := range c.values {
		if !t.quoted() {
			return nil
		}
		out = append(out, t.value())
	}
	return out
}

// Quote quotes a value for the query language.
func Quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
