package flow

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"acescope/engine/ace"
)

// reader reads the nodes of one file and notes all problems.
type reader struct {
	file     string
	lines    []string
	problems Problems
	pending  []pendingExpr // expressions, compiled when all names are known
	typed    []typed
	owner    *Step // the owner of expressions that are read now
	isInside bool  // see [pendingExpr]
}

// parseYAML parses a file with exactly one document.
func (r *reader) parseYAML(source string) *yaml.Node {
	r.lines = strings.Split(source, "\n")
	dec := yaml.NewDecoder(strings.NewReader(source))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			r.problems = append(r.problems, Position{r.file, 1, 1}.problem("the file is empty",
				"a flow begins with \"flow: NAME\""))
			return nil
		}
		r.problems = append(r.problems, r.syntax(err))
		return nil
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		r.problems = append(r.problems, Position{r.file, 1, 1}.problem("the file has more than one document",
			"write each flow to a file of its own"))
		return nil
	}
	if len(doc.Content) != 1 {
		return nil
	}
	return doc.Content[0]
}

// syntax converts an error of the YAML parser to a problem at the line that the error names.
func (r *reader) syntax(err error) Problem {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	at := Position{r.file, 1, 1}
	if rest, ok := strings.CutPrefix(message, "line "); ok {
		if number, text, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				at.Line, message = n, text
			}
		}
	}
	hint := ""
	switch {
	case strings.Contains(message, "mapping values are not allowed"):
		hint = "put quotes around a text with \": \", such as the expression \"${{ a ? b : c }}\", or write it below >-"
	case strings.Contains(message, "cannot start any token"):
		hint = "indent with spaces, not tabs, and put quotes around a text that begins with @, ` or %"
	}
	return at.problem("not YAML: "+message, hint)
}

func (r *reader) at(n *yaml.Node) Position { return Position{r.file, n.Line, n.Column} }

// expressionsAt returns the places of the first expressions of a text.
func (r *reader) expressionsAt(n *yaml.Node, count int) []Position {
	var found []Position
	column := max(n.Column-1, 0)
	for line := n.Line; line >= 1 && line <= len(r.lines) && len(found) < count; line++ {
		text := r.lines[line-1]
		for column <= len(text) && len(found) < count {
			i := strings.Index(text[column:], openMark)
			if i < 0 {
				break
			}
			column += i + len(openMark)
			if start := column - len(openMark); start == 0 || text[start-1] != '$' {
				found = append(found, Position{r.file, line, column + 1})
			}
		}
		column = 0
	}
	for len(found) < count { // folded or escaped lines have no exact places
		found = append(found, r.at(n))
	}
	return found
}

func (r *reader) fail(n *yaml.Node, message, hint string) {
	if len(r.problems) < maxProblems {
		r.problems = append(r.problems, r.at(n).problem(message, hint))
	}
}

// later returns an expression that is compiled when all names are known.
func (r *reader) later(text string, at Position) *Expr {
	e := &Expr{At: at, Text: text}
	r.pending = append(r.pending, pendingExpr{e, r.owner, r.isInside})
	return e
}

// pairs calls f for each field of a mapping. It rejects duplicates, anchors, aliases and tags.
func (r *reader) pairs(n *yaml.Node, f func(key, value *yaml.Node)) {
	if !r.plain(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		r.fail(n, "expected fields, not "+describe(n), "")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge":
			r.fail(key, "the name of a field must be plain text", "")
			continue
		case seen[key.Value]:
			r.fail(key, fmt.Sprintf("duplicate field %q", key.Value), "")
			continue
		case !r.plain(value):
			continue
		}
		seen[key.Value] = true
		f(key, value)
	}
}

// plain rejects anchors, aliases and tags.
func (r *reader) plain(n *yaml.Node) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.fail(n, "anchors and aliases are not supported",
			"repeat the value, or use a variable or a sub-flow")
	case n.Style&yaml.TaggedStyle != 0:
		r.fail(n, fmt.Sprintf("the tag %s is not supported", n.Tag), "")
	default:
		return true
	}
	return false
}

// fields reads a mapping with known fields.
func (r *reader) fields(n *yaml.Node, what string, known map[string]func(*yaml.Node), required ...string) {
	var seen []string
	r.pairs(n, func(key, value *yaml.Node) {
		read, ok := known[key.Value]
		if !ok {
			names := sortedKeys(known)
			r.fail(key, fmt.Sprintf("%s has no field %q", what, key.Value), suggest(key.Value, names))
			return
		}
		seen = append(seen, key.Value)
		read(value)
	})
	for _, name := range required {
		if n.Kind == yaml.MappingNode && !slices.Contains(seen, name) {
			r.fail(n, fmt.Sprintf("%s needs the field %q", what, name), "")
		}
	}
}

// suggest names the field that was probably meant, or all fields.
func suggest(name string, known []string) string {
	if n := ace.Nearest(name, known); n != "" {
		return fmt.Sprintf("did you mean %q?", n)
	}
	return "it may have " + strings.Join(known, ", ")
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	return fmt.Sprintf("%q", shorten(n.Value))
}

// text reads a string.
func (r *reader) text(n *yaml.Node) string {
	if !r.plain(n) {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fail(n, "expected a text, not "+describe(n), "")
		return ""
	}
	if i := strings.IndexFunc(n.Value, hidden); i >= 0 {
		r.fail(n, "the text has a control or bidirectional character", "remove it; it would not be visible")
	}
	return n.Value
}

// hidden reports whether a character is invisible or changes the direction of text.
func hidden(c rune) bool {
	return unicode.IsControl(c) && c != '\n' && c != '\t' || unicode.Is(unicode.Bidi_Control, c)
}

// constant reads a string without expressions.
func (r *reader) constant(n *yaml.Node) string {
	s := r.text(n)
	if strings.Contains(s, openMark) {
		r.fail(n, "expressions are not allowed here", "the value must be known before the flow runs")
	}
	return s
}

// name reads an identifier that expressions can use.
func (r *reader) name(n *yaml.Node, what string) string {
	s := r.constant(n)
	if !isName(s) {
		r.fail(n, fmt.Sprintf("%q is not a name of %s", shorten(s), what),
			"use a letter, then letters, digits and underscores, at most 60")
		return ""
	}
	if slices.Contains(keywords, s) {
		r.fail(n, fmt.Sprintf("%q is reserved", s), "choose another name")
		return ""
	}
	return s
}

// itemName reads the name of a loop item, which stands alone in expressions.
func (r *reader) itemName(n *yaml.Node) string {
	s := r.name(n, "a loop item")
	if slices.Contains(reserved, s) {
		r.fail(n, fmt.Sprintf("%q is reserved", s), "choose another name")
	}
	return s
}

// keywords are the words that cannot follow a dot in CEL. The words in reserved cannot stand alone in CEL, or
// are names that acescope defines.
var (
	keywords = []string{"false", "in", "null", "true"}
	reserved = []string{"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
		"loop",
		"namespace", "package", "return", "var", "void", "while", nameInputs, nameVars, nameSteps, nameRun,
		nameNow}
)

func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != "" && len(s) <= 60
}

// strings reads a list of strings without expressions.
func (r *reader) strings(n *yaml.Node) (out []string) {
	r.items(n, func(item *yaml.Node) { out = append(out, r.constant(item)) })
	return out
}

// items calls f for each element of a list.
func (r *reader) items(n *yaml.Node, f func(*yaml.Node)) {
	if !r.plain(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "expected a list, not "+describe(n), "")
		return
	}
	for _, item := range n.Content {
		f(item)
	}
}

// number reads a whole number in a range.
func (r *reader) number(n *yaml.Node, low, high int) int {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < low || v > high {
		r.fail(n, fmt.Sprintf("expected a number from %d to %d, not %s", low, high, describe(n)), "")
		return low
	}
	return v
}

// amount reads a positive number.
func (r *reader) amount(n *yaml.Node) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || !(v > 0) || v > 1e9 {
		r.fail(n, "expected a positive number, not "+describe(n), "")
		return 0
	}
	return v
}

// duration reads a positive duration such as 90s or 24h.
func (r *reader) duration(n *yaml.Node) time.Duration {
	d, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || d <= 0 || d > maxDuration {
		r.fail(n, "expected a time such as 30s, 10m or 24h, not "+describe(n), "")
		return 0
	}
	return d
}

const maxDuration = 365 * 24 * time.Hour

// boolean reads true or false.
func (r *reader) boolean(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		r.fail(n, "expected true or false, not "+describe(n), "")
	}
	return n.Value == "true"
}

// choice reads one of several words.
func (r *reader) choice(n *yaml.Node, words ...string) string {
	s := r.constant(n)
	if !slices.Contains(words, s) {
		r.fail(n, "expected "+strings.Join(words, " or ")+", not "+describe(n), "")
	}
	return s
}

// scalar returns the JSON value of a scalar without expressions.
func (r *reader) scalar(n *yaml.Node) any {
	if !r.plain(n) {
		return nil
	}
	switch n.Tag {
	case "!!str":
		return strings.ReplaceAll(r.text(n), "$"+openMark, openMark)
	case "!!null":
		return nil
	case "!!timestamp":
		return n.Value
	}
	var v any
	if err := n.Decode(&v); err != nil {
		r.fail(n, err.Error(), "")
	}
	switch x := v.(type) {
	case int:
		return int64(x)
	case float64:
		if x-x != 0 { // not a number, or infinite
			r.fail(n, "expected a finite number", "")
			return nil
		}
	}
	return v
}

// plainJSON reads a value without expressions, such as a JSON Schema.
func (r *reader) plainJSON(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		r.pairs(n, func(key, value *yaml.Node) { out[key.Value] = r.plainJSON(value) })
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			out = append(out, r.plainJSON(item))
		}
		return out
	}
	return r.scalar(n)
}
