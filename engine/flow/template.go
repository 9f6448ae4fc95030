package flow

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"go.yaml.in/yaml/v3"
)

// Templates are texts with expressions in ${{ }}. A text that consists of one expression has the value of the
// expression; other texts contain the values as text. An inserted value is never read as a template. $${{
// stands for ${{.
const (
	openMark  = "${{"
	closeMark = "}}"
)

// Template is a text with expressions.
type Template struct {
	At       Position
	literals []string // the texts around the expressions, one more than expressions
	exprs    []*Expr
}

// constant returns the text of a template without expressions.
func (t *Template) constant() (string, bool) { return t.literals[0], len(t.exprs) == 0 }

// whole returns the expression if the template consists of one expression.
func (t *Template) whole() (*Expr, bool) {
	if len(t.exprs) == 1 && t.literals[0] == "" && t.literals[1] == "" {
		return t.exprs[0], true
	}
	return nil, false
}

// eval returns the value of the expression if the template consists of one expression, otherwise a string.
func (t *Template) eval(s *scope) (any, error) {
	if e, ok := t.whole(); ok {
		return s.eval(e)
	}
	return t.text(s)
}

// text returns the text with the values of the expressions.
func (t *Template) text(s *scope) (string, error) {
	var b strings.Builder
	b.WriteString(t.literals[0])
	for i, e := range t.exprs {
		v, err := s.eval(e)
		if err != nil {
			return "", err
		}
		part, err := jsonText(v)
		if err != nil {
			return "", err
		}
		b.WriteString(part)
		b.WriteString(t.literals[i+1])
		if b.Len() > maxText {
			return "", fmt.Errorf(
				"%s: %w: the text has more than %d bytes; pass large content as a reference",
				t.At, ErrExpression, maxText)
		}
	}
	return b.String(), nil
}

// maxText bounds a text with inserted values, in bytes.
const maxText = 256 << 10

// split splits a text into literals and the texts of its expressions.
func split(text string) (literals, exprs []string, err error) {
	var literal strings.Builder
	for at := 0; ; {
		i := strings.Index(text[at:], openMark)
		if i < 0 {
			literal.WriteString(text[at:])
			return append(literals, literal.String()), exprs, nil
		}
		start := at + i
		if start > 0 && text[start-1] == '$' && start > at { // $${{
			literal.WriteString(text[at:start-1] + openMark)
			at = start + len(openMark)
			continue
		}
		literal.WriteString(text[at:start])
		begin := start + len(openMark)
		end := endOfExpression(text[begin:])
		if end < 0 {
			return nil, nil, fmt.Errorf("%q is not closed with }}", shorten(text[start:]))
		}
		literals = append(literals, literal.String())
		literal.Reset()
		exprs = append(exprs, text[begin:begin+end])
		at = begin + end + len(closeMark)
	}
}

// endOfExpression returns the offset of the }} that closes an expression, or -1. Braces and quotes within the
// expression are skipped.
func endOfExpression(text string) int {
	depth := 0
	var quote byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == '}':
			if strings.HasPrefix(text[i:], closeMark) {
				return i
			}
			return -1
		}
	}
	return -1
}

// Value is a JSON value with templates in its texts.
type Value interface {
	eval(*scope) (any, error)
}

type (
	literal struct{ value any }
	list    []Value
	object  []member
	member  struct {
		name  string
		value Value
	}
)

func (l literal) eval(*scope) (any, error) { return l.value, nil }

func (l list) eval(s *scope) (any, error) {
	out := make([]any, len(l))
	for i, v := range l {
		var err error
		if out[i], err = v.eval(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (o object) eval(s *scope) (any, error) {
	out := make(map[string]any, len(o))
	for _, m := range o {
		v, err := m.value.eval(s)
		if err != nil {
			return nil, err
		}
		out[m.name] = v
	}
	return out, nil
}

// template reads a text with expressions.
func (r *reader) template(n *yaml.Node) *Template {
	return r.compile(n, r.text(n))
}

// compile compiles the expressions of a text. The node gives the place for problems.
func (r *reader) compile(n *yaml.Node, text string) *Template {
	t := &Template{At: r.at(n)}
	literals, exprs, err := split(text)
	if err != nil {
		r.fail(n, err.Error(), "close the expression, or write $${{ for the characters ${{")
		literals, exprs = []string{text}, nil
	}
	t.literals = literals
	places := r.expressionsAt(n, len(exprs))
	for i, e := range exprs {
		t.exprs = append(t.exprs, r.later(e, places[i]))
	}
	return t
}

// expression reads a field that is an expression, with or without ${{ }}.
func (r *reader) expression(n *yaml.Node, kinds ...*cel.Type) *Expr {
	source := r.text(n)
	at := r.at(n)
	if strings.Contains(source, openMark) {
		literals, exprs, err := split(strings.TrimSpace(source))
		if err != nil || len(exprs) != 1 || literals[0] != "" || literals[1] != "" {
			r.fail(n, "the field is an expression, not a text with expressions",
				"write one expression, such as: steps.check.exit_code == 0")
			return &Expr{At: at}
		}
		source = exprs[0]
		at = r.expressionsAt(n, 1)[0]
	}
	e := r.later(source, at)
	if len(kinds) > 0 {
		r.typed = append(r.typed, typed{e, kinds})
	}
	return e
}

// value reads any value with templates in its texts.
func (r *reader) value(n *yaml.Node) Value {
	switch n.Kind {
	case yaml.MappingNode:
		var o object
		r.pairs(n, func(key, value *yaml.Node) { o = append(o, member{key.Value, r.value(value)}) })
		return o
	case yaml.SequenceNode:
		l := list{}
		for _, item := range n.Content {
			l = append(l, r.value(item))
		}
		return l
	}
	if n.Tag == "!!str" && strings.Contains(n.Value, openMark) {
		return r.template(n)
	}
	return literal{r.scalar(n)}
}
