package calc

import "fmt"

// Solve turns left = right into an expression for the name unknown, which must appear
// exactly once and not within N, abs, min or max.
func Solve(left, right *Expr, unknown string) (*Expr, error) {
	l, r := count(left.root, unknown), count(right.root, unknown)
	if l+r != 1 {
		return nil, fmt.Errorf("%q appears %d times: only a single one can be solved for", unknown, l+r)
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
	if n.kind == name && n.text == text {
		return 1
	}
	sum := 0
	for _, a := range n.args {
		sum += count(a, text)
	}
	return sum
}

// isolate undoes the operations around the unknown in n, outermost first, on value.
func isolate(n, value *node, unknown string) (*node, error) {
	switch n.kind {
	case name:
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

// undoLeft is x where x op r = value.
func undoLeft(op kind, value, r *node) *node {
	switch op {
	case '+':
		return binary('-', value, r)
	case '-':
		return binary('+', value, r)
	case '*':
		return binary('/', value, r)
	case '/':
		return binary('*', value, r)
	}
	return binary('^', value, binary('/', constant(1), r))
}

// undoRight is x where l op x = value.
func undoRight(op kind, value, l *node) *node {
	switch op {
	case '+':
		return binary('-', value, l)
	case '-':
		return binary('-', l, value)
	case '*':
		return binary('/', value, l)
	case '/':
		return binary('/', l, value)
	}
	ln := func(n *node) *node { return &node{kind: call, text: "ln", args: []*node{n}} }
	return binary('/', ln(value), ln(l))
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
	return nil, fmt.Errorf("cannot solve for %q within %s", unknown, n.text)
}
