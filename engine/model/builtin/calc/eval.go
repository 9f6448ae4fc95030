package calc

import (
	"errors"
	"fmt"
	"math"
)

// ErrNotFinite is the error of an evaluation that divides by zero, overflows or leaves
// the real numbers.
var ErrNotFinite = errors.New("the result is not a finite number")

// Eval evaluates the expression; values are those of [Expr.Names] in order.
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
	case name:
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
	first := eval(n.args[0], values)
	switch n.text {
	case "exp":
		return math.Exp(first)
	case "ln":
		return math.Log(first)
	case "sqrt":
		return math.Sqrt(first)
	case "abs":
		return math.Abs(first)
	case "N":
		return math.Erfc(-first/math.Sqrt2) / 2
	}
	for _, a := range n.args[1:] {
		v := eval(a, values)
		switch n.text {
		case "min":
			first = math.Min(first, v)
		case "max":
			first = math.Max(first, v)
		default:
			first += v
		}
	}
	return first
}
