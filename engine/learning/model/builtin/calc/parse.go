package calc

import (
	"fmt"
	"strconv"
)

// Parse parses an expression.
func Parse(src string) (*Expr, error) {
	if len(src) > MaxLength {
		return nil, fmt.Errorf("the expression has %d bytes, at most %d are allowed", len(src), MaxLength)
	}
	p := parser{src: src}
	root := p.sum()
	if p.skip(); p.at < len(src) {
		p.fail("unexpected %q", src[p.at])
	}
	if p.err != nil {
		return nil, p.err
	}
	return index(root)
}

type parser struct {
	src   string
	at    int
	depth int
	err   error // the first error, after which the parser is at the end
}

// fail records an error and returns no node.
func (p *parser) fail(format string, args ...any) *node {
	if p.err == nil {
		p.err = fmt.Errorf("expression, column %d: %s", p.at+1, fmt.Sprintf(format, args...))
	}
	p.at = len(p.src)
	return nil
}

func (p *parser) skip() {
	for p.at < len(p.src) && (p.src[p.at] == ' ' || p.src[p.at] == '\t') {
		p.at++
	}
}

// take consumes c if it is the next character.
func (p *parser) take(c byte) bool {
	if p.skip(); p.at < len(p.src) && p.src[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) sum() *node { return p.chain(p.product, '+', '-') }

func (p *parser) product() *node { return p.chain(p.unary, '*', '/') }

// chain parses two left-associative operators of one level.
func (p *parser) chain(operand func() *node, one, other byte) *node {
	left := operand()
	for {
		switch {
		case p.take(one):
			left = binary(kind(one), left, operand())
		case p.take(other):
			left = binary(kind(other), left, operand())
		default:
			return left
		}
	}
}

func (p *parser) unary() *node {
	if p.depth++; p.depth > MaxDepth {
		return p.fail("more than %d levels", MaxDepth)
	}
	defer func() { p.depth-- }()
	if p.take('-') {
		return &node{kind: negate, args: []*node{p.unary()}}
	}
	base := p.atom()
	if p.take('^') {
		return binary('^', base, p.unary())
	}
	return base
}

func (p *parser) atom() *node {
	if p.take('(') {
		inner := p.sum()
		if !p.take(')') {
			return p.fail("missing )")
		}
		return inner
	}
	if p.skip(); p.at >= len(p.src) {
		return p.fail("a value is missing at the end")
	}
	c := p.src[p.at]
	switch {
	case isDigit(c) || c == '.':
		text := p.span(func(c byte) bool { return isDigit(c) || c == '.' })
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return p.fail("%q is not a number", text)
		}
		return constant(v)
	case isLetter(c):
		return p.nameOrCall(p.span(func(c byte) bool { return isLetter(c) || isDigit(c) }))
	}
	return p.fail("unexpected %q", c)
}

// span consumes the next characters that belong to a token.
func (p *parser) span(belongs func(byte) bool) string {
	start := p.at
	for p.at < len(p.src) && belongs(p.src[p.at]) {
		p.at++
	}
	return p.src[start:p.at]
}

func (p *parser) nameOrCall(text string) *node {
	if !IsFunction(text) {
		return &node{kind: variable, text: text}
	}
	if !p.take('(') {
		return p.fail("the function %s needs an argument in parentheses", text)
	}
	args := []*node{p.sum()}
	for p.take(',') {
		args = append(args, p.sum())
	}
	switch {
	case !p.take(')'):
		return p.fail("missing ) after the arguments")
	case unary[text] != nil && len(args) > 1:
		return p.fail("%s takes one argument", text)
	}
	return &node{kind: call, text: text, args: args}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}
