// Package calc parses, prints, evaluates and solves arithmetic expressions. It imports only
// the standard library.
//
// The grammar: numbers, names, + - * / ^ (right-associative, binding tighter than
// unary minus), parentheses, and the functions exp ln sqrt abs N (one argument; N is
// the cumulative standard normal distribution), min max sum (one or more).
//
// Bounds: a source has at most [MaxLength] bytes, [MaxNodes] nodes and [MaxDepth] levels. An
// [Expr] is immutable and safe for concurrent use. A value that is not finite is an error.
package calc

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bounds of an expression.
const (
	MaxLength = 1024
	MaxNodes  = 256
	MaxDepth  = 48
)

// kind is the kind of a node. The kind of a binary operator is its own character.
type kind byte

const (
	number   kind = '0'
	variable kind = 'v'
	negate   kind = '~'
	call     kind = 'f'
)

type node struct {
	kind  kind
	value float64 // of a number
	text  string  // of a name or a function
	index int     // of a name among the expression's names
	args  []*node
}

// Expr is a parsed expression.
type Expr struct {
	root  *node
	names []string
	nodes int
}

// Names returns the names in the expression in order of first appearance. Do not change the
// slice.
func (e *Expr) Names() []string { return e.names }

// Size returns the number of nodes.
func (e *Expr) Size() int { return e.nodes }

// index assigns indices to the names of a tree and counts its nodes.
func index(root *node) (*Expr, error) {
	e := &Expr{}
	seen := map[string]int{}
	var visit func(n *node, depth int) (*node, error)
	visit = func(n *node, depth int) (*node, error) {
		if e.nodes++; e.nodes > MaxNodes || depth > MaxDepth {
			return nil, fmt.Errorf("expression too large: at most %d parts and %d levels", MaxNodes, MaxDepth)
		}
		c := *n
		if n.kind == variable {
			i, ok := seen[n.text]
			if !ok {
				i = len(e.names)
				seen[n.text] = i
				e.names = append(e.names, n.text)
			}
			c.index = i
		}
		c.args = make([]*node, len(n.args))
		for i, a := range n.args {
			arg, err := visit(a, depth+1)
			if err != nil {
				return nil, err
			}
			c.args[i] = arg
		}
		return &c, nil
	}
	tree, err := visit(root, 0)
	if err != nil {
		return nil, err
	}
	e.root = tree
	return e, nil
}

// String prints the expression with the minimum of parentheses. Parsing the text returns an
// equal expression.
func (e *Expr) String() string {
	var b strings.Builder
	write(&b, e.root, 0, func(n *node) string { return n.text })
	return b.String()
}

// Shape prints the expression with its names replaced by a, b, c … in order of appearance.
func (e *Expr) Shape() string {
	var b strings.Builder
	write(&b, e.root, 0, func(n *node) string { return letter(n.index) })
	return b.String()
}

// letter returns the name a, b, c … of the i-th operand, and x26, x27 … after z.
func letter(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return "x" + strconv.Itoa(i)
}

// Scale returns the expression multiplied by a factor.
func (e *Expr) Scale(factor float64) (*Expr, error) {
	return index(binary('*', e.root, constant(factor)))
}

func constant(v float64) *node { return &node{kind: number, value: v} }

func binary(op kind, l, r *node) *node { return &node{kind: op, args: []*node{l, r}} }

// Binding levels, loosest first.
const (
	levelSum = iota + 1
	levelProduct
	levelNegate
	levelPower
	levelAtom
)

func level(n *node) int {
	switch n.kind {
	case '+', '-':
		return levelSum
	case '*', '/':
		return levelProduct
	case negate:
		return levelNegate
	case '^':
		return levelPower
	}
	return levelAtom
}

func write(b *strings.Builder, n *node, atLeast int, name func(*node) string) {
	l := level(n)
	if l < atLeast {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	switch n.kind {
	case number:
		b.WriteString(strconv.FormatFloat(n.value, 'f', -1, 64))
	case variable:
		b.WriteString(name(n))
	case negate:
		b.WriteByte('-')
		write(b, n.args[0], levelNegate, name)
	case '^':
		write(b, n.args[0], levelAtom, name)
		b.WriteByte('^')
		write(b, n.args[1], levelAtom, name)
	case call:
		b.WriteString(n.text)
		b.WriteByte('(')
		for i, a := range n.args {
			if i > 0 {
				b.WriteString(", ")
			}
			write(b, a, 0, name)
		}
		b.WriteByte(')')
	default:
		write(b, n.args[0], l, name)
		b.WriteString(" " + string(rune(n.kind)) + " ")
		write(b, n.args[1], l+1, name)
	}
}

// ErrNotFinite is the error of an evaluation that divides by zero, overflows or leaves the real
// numbers.
var ErrNotFinite = errors.New("the result is not a finite number")

// Eval evaluates the expression with the values of [Expr.Names] in order.
func (e *Expr) Eval(values []float64) (float64, error) {
	if len(values) != len(e.names) {
		return 0, fmt.Errorf("%d values for the %d names of %s", len(values), len(e.names), e)
	}
	v := eval(e.root, values)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, ErrNotFinite
	}
	return v, nil
}

// EvalNamed evaluates the expression with values by name.
func (e *Expr) EvalNamed(values map[string]float64) (float64, error) {
	list := make([]float64, len(e.names))
	for i, n := range e.names {
		v, ok := values[n]
		if !ok {
			return 0, fmt.Errorf("no value for %q in %s", n, e)
		}
		list[i] = v
	}
	return e.Eval(list)
}

func eval(n *node, values []float64) float64 {
	switch n.kind {
	case number:
		return n.value
	case variable:
		return values[n.index]
	case negate:
		return -eval(n.args[0], values)
	case call:
		return apply(n, values)
	}
	l, r := eval(n.args[0], values), eval(n.args[1], values)
	switch n.kind {
	case '+':
		return l + r
	case '-':
		return l - r
	case '*':
		return l * r
	case '/':
		return l / r
	}
	return math.Pow(l, r)
}

func apply(n *node, values []float64) float64 {
	result := eval(n.args[0], values)
	if f := unary[n.text]; f != nil {
		return f(result)
	}
	for _, a := range n.args[1:] {
		result = folds[n.text](result, eval(a, values))
	}
	return result
}

// unary are the functions of one argument.
var unary = map[string]func(float64) float64{
	"exp": math.Exp, "ln": math.Log, "sqrt": math.Sqrt, "abs": math.Abs,
	"N": func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 },
}

// folds are the functions of any number of arguments.
var folds = map[string]func(x, y float64) float64{
	"min": math.Min, "max": math.Max, "sum": func(x, y float64) float64 { return x + y },
}

// IsFunction reports whether the name is a function, which cannot name an operand.
func IsFunction(text string) bool { return unary[text] != nil || folds[text] != nil }

// Solve solves left = right for the name unknown, which must appear exactly once and not inside
// N, abs, min, max or sum.
func Solve(left, right *Expr, unknown string) (*Expr, error) {
	l, r := count(left.root, unknown), count(right.root, unknown)
	if l+r != 1 {
		return nil, fmt.Errorf("%q appears %d times, must appear once", unknown, l+r)
	}
	from, to := left.root, right.root
	if r == 1 {
		from, to = to, from
	}
	tree, err := isolate(from, to, unknown)
	if err != nil {
		return nil, err
	}
	return index(tree)
}

func count(n *node, text string) int {
	if n.kind == variable && n.text == text {
		return 1
	}
	sum := 0
	for _, a := range n.args {
		sum += count(a, text)
	}
	return sum
}

// isolate moves the operations around the unknown in n, outermost first, to value.
func isolate(n, value *node, unknown string) (*node, error) {
	switch n.kind {
	case variable:
		return value, nil
	case negate:
		return isolate(n.args[0], &node{kind: negate, args: []*node{value}}, unknown)
	case call:
		return isolateCall(n, value, unknown)
	}
	l, r := n.args[0], n.args[1]
	if count(l, unknown) == 1 {
		return isolate(l, undoLeft(n.kind, value, r), unknown)
	}
	return isolate(r, undoRight(n.kind, value, l), unknown)
}

// inverse maps a binary operator to its inverse.
var inverse = map[kind]kind{'+': '-', '-': '+', '*': '/', '/': '*'}

// undoLeft returns x of x op r = value.
func undoLeft(op kind, value, r *node) *node {
	if op == '^' {
		return binary('^', value, binary('/', constant(1), r))
	}
	return binary(inverse[op], value, r)
}

// undoRight returns x of l op x = value.
func undoRight(op kind, value, l *node) *node {
	switch op {
	case '-', '/':
		return binary(op, l, value)
	case '^':
		ln := func(n *node) *node { return &node{kind: call, text: "ln", args: []*node{n}} }
		return binary('/', ln(value), ln(l))
	}
	return binary(inverse[op], value, l)
}

func isolateCall(n, value *node, unknown string) (*node, error) {
	undo := func(text string) *node { return &node{kind: call, text: text, args: []*node{value}} }
	switch n.text {
	case "exp":
		return isolate(n.args[0], undo("ln"), unknown)
	case "ln":
		return isolate(n.args[0], undo("exp"), unknown)
	case "sqrt":
		return isolate(n.args[0], binary('^', value, constant(2)), unknown)
	}
	return nil, fmt.Errorf("cannot solve for %q inside %s", unknown, n.text)
}
