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
	"slices"
	"strconv"
	"strings"
)

// Bounds of an expression.
const (
	MaxLength = 1024
	MaxNodes  = 256
	MaxDepth  = 48
)

// node is immutable, so expressions may share nodes.
type node struct {
	op    string  // an operator, a function, or one of the constants below
	value float64 // of a number
	text  string  // of a name
	args  []*node
}

// Values of node.op besides the operators + - * / ^ and the functions.
const (
	number = "number"
	name   = "name"
	negate = "negate"
)

func constant(v float64) *node { return &node{op: number, value: v} }

func unary(op string, n *node) *node { return &node{op: op, args: []*node{n}} }

func binary(op string, l, r *node) *node { return &node{op: op, args: []*node{l, r}} }

// functions are the functions of one argument.
var functions = map[string]func(float64) float64{
	"exp": math.Exp, "ln": math.Log, "sqrt": math.Sqrt, "abs": math.Abs,
	"N": func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 },
}

// folds are the functions of any number of arguments.
var folds = map[string]func(x, y float64) float64{
	"min": math.Min, "max": math.Max, "sum": func(x, y float64) float64 { return x + y },
}

// IsFunction reports whether the name is a function, which cannot name an operand.
func IsFunction(name string) bool { return functions[name] != nil || folds[name] != nil }

// Expr is a parsed expression.
type Expr struct {
	root  *node
	names []string
	nodes int
}

func newExpr(root *node) (*Expr, error) {
	e := &Expr{root: root}
	if !e.visit(root, 0) {
		return nil, fmt.Errorf("expression too large: at most %d parts and %d levels", MaxNodes, MaxDepth)
	}
	return e, nil
}

// visit counts the nodes and collects the names of a tree. It reports whether it is within bounds.
func (e *Expr) visit(n *node, depth int) bool {
	if e.nodes++; e.nodes > MaxNodes || depth > MaxDepth {
		return false
	}
	if n.op == name && !slices.Contains(e.names, n.text) {
		e.names = append(e.names, n.text)
	}
	for _, a := range n.args {
		if !e.visit(a, depth+1) {
			return false
		}
	}
	return true
}

// Names returns the names in the expression in order of first appearance. Do not change the
// slice.
func (e *Expr) Names() []string { return e.names }

// Size returns the number of nodes.
func (e *Expr) Size() int { return e.nodes }

// String prints the expression with the minimum of parentheses. Parsing the text returns an
// equal expression.
func (e *Expr) String() string { return format(e.root, 0, func(name string) string { return name }) }

// Shape prints the expression with its names replaced by a, b, c … in order of appearance.
func (e *Expr) Shape() string {
	return format(e.root, 0, func(name string) string { return letter(slices.Index(e.names, name)) })
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
	return newExpr(binary("*", e.root, constant(factor)))
}

// levels are the binding levels of the operators. Other nodes bind tightest.
var levels = map[string]int{"+": 1, "-": 1, "*": 2, "/": 2, negate: 3, "^": 4}

const levelAtom = 5

// format prints a node, in parentheses if it binds looser than atLeast.
func format(n *node, atLeast int, rename func(string) string) string {
	level, isOperator := levels[n.op]
	if isOperator && level < atLeast {
		return "(" + format(n, 0, rename) + ")"
	}
	switch n.op {
	case number:
		return strconv.FormatFloat(n.value, 'f', -1, 64)
	case name:
		return rename(n.text)
	case negate:
		return "-" + format(n.args[0], level, rename)
	case "^":
		return format(n.args[0], levelAtom, rename) + "^" + format(n.args[1], levelAtom, rename)
	case "+", "-", "*", "/":
		return format(n.args[0], level, rename) + " " + n.op + " " + format(n.args[1], level+1, rename)
	}
	args := make([]string, len(n.args))
	for i, a := range n.args {
		args[i] = format(a, 0, rename)
	}
	return n.op + "(" + strings.Join(args, ", ") + ")"
}

// ErrNotFinite is the error of an evaluation that divides by zero, overflows or leaves the real
// numbers.
var ErrNotFinite = errors.New("the result is not a finite number")

// Eval evaluates the expression with the values of [Expr.Names] in order.
func (e *Expr) Eval(values []float64) (float64, error) {
	if len(values) != len(e.names) {
		return 0, fmt.Errorf("%d values for the %d names of %s", len(values), len(e.names), e)
	}
	v := e.eval(e.root, values)
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

func (e *Expr) eval(n *node, values []float64) float64 {
	switch n.op {
	case number:
		return n.value
	case name:
		return values[slices.Index(e.names, n.text)]
	case negate:
		return -e.eval(n.args[0], values)
	case "+":
		return e.eval(n.args[0], values) + e.eval(n.args[1], values)
	case "-":
		return e.eval(n.args[0], values) - e.eval(n.args[1], values)
	case "*":
		return e.eval(n.args[0], values) * e.eval(n.args[1], values)
	case "/":
		return e.eval(n.args[0], values) / e.eval(n.args[1], values)
	case "^":
		return math.Pow(e.eval(n.args[0], values), e.eval(n.args[1], values))
	}
	x := e.eval(n.args[0], values)
	if apply := functions[n.op]; apply != nil {
		return apply(x)
	}
	for _, a := range n.args[1:] {
		x = folds[n.op](x, e.eval(a, values))
	}
	return x
}

// Solve solves left = right for the name unknown, which must appear exactly once and not inside
// N, abs, min, max or sum.
func Solve(left, right *Expr, unknown string) (*Expr, error) {
	l, r := count(left.root, unknown), count(right.root, unknown)
	if l+r != 1 {
		return nil, fmt.Errorf("%q appears %d times, must appear once", unknown, l+r)
	}
	from, value := left.root, right.root
	if r == 1 {
		from, value = value, from
	}
	// Move the operations around the unknown to the other side, outermost first.
	for from.op != name {
		if IsFunction(from.op) || from.op == negate {
			undo, ok := inverses[from.op]
			if !ok {
				return nil, fmt.Errorf("cannot solve for %q inside %s", unknown, from.op)
			}
			from, value = from.args[0], undo(value)
			continue
		}
		x, y := from.args[0], from.args[1]
		if count(x, unknown) == 1 {
			from, value = x, undoLeft(from.op, value, y)
		} else {
			from, value = y, undoRight(from.op, value, x)
		}
	}
	return newExpr(value)
}

func count(n *node, text string) int {
	if n.op == name && n.text == text {
		return 1
	}
	sum := 0
	for _, a := range n.args {
		sum += count(a, text)
	}
	return sum
}

var inverses = map[string]func(*node) *node{
	negate: func(n *node) *node { return unary(negate, n) },
	"exp":  func(n *node) *node { return unary("ln", n) },
	"ln":   func(n *node) *node { return unary("exp", n) },
	"sqrt": func(n *node) *node { return binary("^", n, constant(2)) },
}

// inverse maps a binary operator to its inverse.
var inverse = map[string]string{"+": "-", "-": "+", "*": "/", "/": "*"}

// undoLeft returns x of x op y = value.
func undoLeft(op string, value, y *node) *node {
	if op == "^" {
		return binary("^", value, binary("/", constant(1), y))
	}
	return binary(inverse[op], value, y)
}

// undoRight returns y of x op y = value.
func undoRight(op string, value, x *node) *node {
	switch op {
	case "-", "/":
		return binary(op, x, value)
	case "^":
		return binary("/", unary("ln", value), unary("ln", x))
	}
	return binary(inverse[op], value, x)
}
