package calc

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tokens matches a number, a name, or any other character that is not white space.
var tokens = regexp.MustCompile(`[0-9.]+|[A-Za-z_][A-Za-z0-9_]*|[^ \t]`)

// Parse parses an expression.
func Parse(src string) (*Expr, error) {
	if len(src) > MaxLength {
		return nil, fmt.Errorf("the expression has %d bytes, at most %d are allowed", len(src), MaxLength)
	}
	return parse(parser{tokens: tokens.FindAllString(src, -1)})
}

// UnmarshalText parses an expression.
func (e *Expr) UnmarshalText(src []byte) error {
	parsed, err := Parse(string(src))
	if err == nil {
		*e = *parsed
	}
	return err
}

// ParseTextbook parses the tokens of an expression in textbook notation: adjacent factors are multiplied,
// and e^x is the exponential function.
func ParseTextbook(tokens []string) (*Expr, error) {
	if len(tokens) > MaxLength {
		return nil, fmt.Errorf("the expression has %d tokens, at most %d are allowed", len(tokens), MaxLength)
	}
	return parse(parser{tokens: tokens, textbook: true})
}

type parser struct {
	tokens   []string // not yet parsed
	textbook bool
	depth    int
	err      error // the first error, after which no token is left
}

func parse(p parser) (*Expr, error) {
	root := p.sum()
	if len(p.tokens) > 0 {
		p.fail("unexpected sign")
	}
	if p.err != nil {
		return nil, p.err
	}
	return newExpr(root)
}

// fail records an error and returns no node.
func (p *parser) fail(problem string) *node {
	if p.err == nil {
		place := "at the end"
		if len(p.tokens) > 0 {
			place = fmt.Sprintf("at %.40q", strings.Join(p.tokens, " "))
		}
		p.err = fmt.Errorf("expression: %s %s", problem, place)
	}
	p.tokens = nil
	return nil
}

// next returns the next token, or "" at the end.
func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

// take consumes the next token if it is the given one.
func (p *parser) take(token string) bool {
	if p.next() != token {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *parser) sum() *node { return p.chain(p.product, "+", "-") }

func (p *parser) product() *node { return p.chain(p.factor, "*", "/") }

// chain parses left-associative operators of one level.
func (p *parser) chain(operand func() *node, operators ...string) *node {
	left := operand()
	for slices.Contains(operators, p.next()) {
		operator := p.next()
		p.take(operator)
		left = binary(operator, left, operand())
	}
	return left
}

// factor parses a negation, a power, or adjacent factors, which bind tighter than an operator.
func (p *parser) factor() *node {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(fmt.Sprintf("more than %d levels", MaxDepth))
	}
	defer func() { p.depth-- }()
	if p.take("-") {
		return unary(negate, p.factor())
	}
	left := p.power()
	for p.textbook && startsFactor.MatchString(p.next()) {
		left = binary("*", left, p.power())
	}
	return left
}

var startsFactor = regexp.MustCompile(`^[0-9.A-Za-z_(√]`)

func (p *parser) power() *node {
	euler := p.textbook && p.next() == "e"
	base := p.atom()
	switch {
	case !p.take("^"):
		return base
	case euler:
		return unary("exp", p.exponent())
	}
	return binary("^", base, p.exponent())
}

func (p *parser) exponent() *node {
	if p.take("-") {
		return unary(negate, p.exponent())
	}
	return p.power()
}

func (p *parser) atom() *node {
	token := p.next()
	switch {
	case p.take("√"):
		return unary("sqrt", p.atom())
	case p.take("("):
		inner := p.sum()
		if !p.take(")") {
			return p.fail("missing )")
		}
		return inner
	case !startsFactor.MatchString(token):
		return p.fail("a value is missing")
	}
	p.take(token)
	switch {
	case IsFunction(token):
		return p.call(token)
	case token[0] > '9':
		return &node{op: name, text: token}
	}
	v, err := strconv.ParseFloat(token, 64)
	if err != nil {
		return p.fail("invalid number")
	}
	return constant(v)
}

// call parses the arguments of a function.
func (p *parser) call(function string) *node {
	if !p.take("(") {
		return p.fail("the function " + function + " needs an argument in parentheses")
	}
	args := []*node{p.sum()}
	for p.take(",") {
		args = append(args, p.sum())
	}
	switch {
	case !p.take(")"):
		return p.fail("missing )")
	case functions[function] != nil && len(args) > 1:
		return p.fail(function + " takes one argument;")
	}
	return &node{op: function, args: args}
}
