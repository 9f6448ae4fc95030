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
	root, err := p.sum()
	if err == nil {
		if p.skip(); p.at < len(src) {
			err = p.fault("unexpected %q", src[p.at])
		}
	}
	if err != nil {
		return nil, err
	}
	return index(root)
}

type parser struct {
	src   string
	at    int
	depth int
}

func (p *parser) fault(format string, args ...any) error {
	return fmt.Errorf("expression, column %d: %s", p.at+1, fmt.Sprintf(format, args...))
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

func (p *parser) sum() (*node, error) { return p.chain(p.product, '+', '-') }

func (p *parser) product() (*node, error) { return p.chain(p.unary, '*', '/') }

// chain parses left-associative operators of one level.
func (p *parser) chain(operand func() (*node, error), ops ...byte) (*node, error) {
	left, err := operand()
	for err == nil {
		op, ok := p.oneOf(ops)
		if !ok {
			return left, nil
		}
		var right *node
		if right, err = operand(); err == nil {
			left = binary(kind(op), left, right)
		}
	}
	return nil, err
}

func (p *parser) oneOf(ops []byte) (byte, bool) {
	for _, op := range ops {
		if p.take(op) {
			return op, true
		}
	}
	return 0, false
}

func (p *parser) unary() (*node, error) {
	if p.depth++; p.depth > MaxDepth {
		return nil, p.fault("more than %d levels", MaxDepth)
	}
	defer func() { p.depth-- }()
	if p.take('-') {
		arg, err := p.unary()
		if err != nil {
			return nil, err
		}
		return &node{kind: negate, args: []*node{arg}}, nil
	}
	base, err := p.atom()
	if err != nil || !p.take('^') {
		return base, err
	}
	exponent, err := p.unary()
	if err != nil {
		return nil, err
	}
	return binary('^', base, exponent), nil
}

func (p *parser) atom() (*node, error) {
	if p.take('(') {
		inner, err := p.sum()
		if err == nil && !p.take(')') {
			err = p.fault("missing )")
		}
		return inner, err
	}
	if p.skip(); p.at >= len(p.src) {
		return nil, p.fault("a value is missing at the end")
	}
	c := p.src[p.at]
	switch {
	case isDigit(c) || c == '.':
		return p.number()
	case isLetter(c):
		return p.nameOrCall()
	}
	return nil, p.fault("unexpected %q", c)
}

func (p *parser) number() (*node, error) {
	start := p.at
	for p.at < len(p.src) && (isDigit(p.src[p.at]) || p.src[p.at] == '.') {
		p.at++
	}
	v, err := strconv.ParseFloat(p.src[start:p.at], 64)
	if err != nil {
		return nil, p.fault("%q is not a number", p.src[start:p.at])
	}
	return constant(v), nil
}

func (p *parser) nameOrCall() (*node, error) {
	start := p.at
	for p.at < len(p.src) && (isLetter(p.src[p.at]) || isDigit(p.src[p.at])) {
		p.at++
	}
	text := p.src[start:p.at]
	most, known := functions[text]
	if !known {
		return &node{kind: variable, text: text}, nil
	}
	if !p.take('(') {
		return nil, p.fault("the function %s needs an argument in parentheses", text)
	}
	args, err := p.arguments()
	if err != nil {
		return nil, err
	}
	if most > 0 && len(args) > most {
		return nil, p.fault("%s takes one argument", text)
	}
	return &node{kind: call, text: text, args: args}, nil
}

func (p *parser) arguments() ([]*node, error) {
	var args []*node
	for {
		arg, err := p.sum()
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
		if p.take(')') {
			return args, nil
		}
		if !p.take(',') {
			return nil, p.fault("missing ) after the arguments")
		}
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

// functions maps functions to their maximum number of arguments, or 0 for any number.
var functions = map[string]int{
	"exp": 1, "ln": 1, "sqrt": 1, "abs": 1, "N": 1, "min": 0, "max": 0, "sum": 0,
}

// IsFunction reports whether the name is a function, which cannot name an operand.
func IsFunction(text string) bool {
	_, ok := functions[text]
	return ok
}
