// Package calc holds arithmetic expressions: it parses, prints, evaluates and solves
// them. It imports the standard library only; the builtin learner imports it.
//
// The grammar: numbers, names, + - * / ^ (right-associative, binding tighter than
// unary minus), parentheses, and the functions exp ln sqrt abs N (one argument; N is
// the cumulative standard normal distribution), min max sum (one or more).
//
// Bounds: a source of at most [MaxLength] bytes, [MaxNodes] nodes and [MaxDepth]
// levels; whatever is larger is refused. An [Expr] never changes once it is made and is
// safe for concurrent use. A value that is not finite is an error, never a result.
package calc

// Bounds of an expression.
const (
	MaxLength = 1024
	MaxNodes  = 256
	MaxDepth  = 48
)
