package calc

import (
	"fmt"
	"strconv"
	"strings"
)

// kind tells what a node is; the binary operators are their own characters.
type kind byte

const (
	number kind = '0'
	name   kind = 'v'
	negate kind = '~'
	call   kind = 'f'
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

// Names lists the names in the expression in order of first appearance. Do not change
// the slice.
func (e *Expr) Names() []string { return e.names }

// Size is the number of nodes: the measure of how simple an expression is.
func (e *Expr) Size() int { return e.nodes }

// index numbers the names of a tree and counts its nodes.
func index(root *node) (*Expr, error) {
	e := &Expr{}
	seen := map[string]int{}
	var visit func(n *node, depth int) (*node, error)
	visit = func(n *node, depth int) (*node, error) {
		if e.nodes++; e.nodes > MaxNodes || depth > MaxDepth {
			return nil, fmt.Errorf("expression too large: at most %d parts and %d levels", MaxNodes, MaxDepth)
		}
		c := *n
		if n.kind == name {
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

// String prints the expression with as few parentheses as its meaning needs. Parsing
// the text again gives an equal expression.
func (e *Expr) String() string {
	var b strings.Builder
	write(&b, e.root, 0)
	return b.String()
}

// Shape prints the expression with its names replaced by a, b, c … in order of
// appearance: two expressions of one shape differ in names only.
func (e *Expr) Shape() string {
	renamed, err := e.Rename(Letter)
	if err != nil {
		return e.String()
	}
	return renamed.String()
}

// Letter is the name a, b, c … of the i-th operand; x26, x27 … after z.
func Letter(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return "x" + strconv.Itoa(i)
}

// Rename gives the i-th name the name to(i).
func (e *Expr) Rename(to func(int) string) (*Expr, error) {
	return index(mapNames(e.root, to))
}

func mapNames(n *node, to func(int) string) *node {
	c := *n
	if n.kind == name {
		c.text = to(n.index)
	}
	c.args = make([]*node, len(n.args))
	for i, a := range n.args {
		c.args[i] = mapNames(a, to)
	}
	return &c
}

// Scale is the expression times factor.
func (e *Expr) Scale(factor float64) (*Expr, error) {
	return index(binary('*', e.root, constant(factor)))
}

func constant(v float64) *node { return &node{kind: number, value: v} }

func binary(op kind, l, r *node) *node { return &node{kind: op, args: []*node{l, r}} }

// Levels of binding, loosest first.
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

func write(b *strings.Builder, n *node, atLeast int) {
	l := level(n)
	if l < atLeast {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	switch n.kind {
	case number:
		b.WriteString(strconv.FormatFloat(n.value, 'f', -1, 64))
	case name:
		b.WriteString(n.text)
	case negate:
		b.WriteByte('-')
		write(b, n.args[0], levelNegate)
	case '^':
		write(b, n.args[0], levelAtom)
		b.WriteByte('^')
		write(b, n.args[1], levelAtom)
	case call:
		b.WriteString(n.text)
		b.WriteByte('(')
		for i, a := range n.args {
			if i > 0 {
				b.WriteString(", ")
			}
			write(b, a, 0)
		}
		b.WriteByte(')')
	default:
		write(b, n.args[0], l)
		b.WriteString(" " + string(rune(n.kind)) + " ")
		write(b, n.args[1], l+1)
	}
}
