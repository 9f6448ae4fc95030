package flow

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"

	"acescope/engine/ace"
)

// Bounds of expressions.
const (
	maxExpression = 8 << 10   // bytes of text
	maxNesting    = 60        // levels
	maxCost       = 1_000_000 // CEL's units of work, about a tenth of a second
)

// Names that every expression may use, besides the names of loop items.
const (
	nameInputs = "inputs"
	nameVars   = "vars"
	nameSteps  = "steps"
	nameRun    = "run"
	nameNow    = "now"
)

// Expr is a compiled expression.
type Expr struct {
	At      Position
	Text    string
	Now     bool                        // whether it reads the time
	program func() (cel.Program, error) // planned at the first evaluation
	result  *cel.Type
	steps   []string // steps that it reads
	names   []string // loop items that it reads
}

// Language is the version of the language of flows, with the functions that expressions may call. Each run
// keeps the version that it was started with, so changes of the language need a new version.
const Language = 1

// baseEnvironment is the part of an environment that all files share, because it takes a millisecond to
// build.
var baseEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.OptionalTypes(cel.OptionalTypesVersion(2)),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(maxNesting),
		ext.Strings(ext.StringsVersion(4)),
		ext.Lists(ext.ListsVersion(3)),
		ext.Math(ext.MathVersion(2)),
		jsonFunctions(),
	)
})

// environment compiles the expressions of one file.
type environment struct {
	env   *cel.Env
	items map[string]bool // names of loop items in the file
	names []string        // of all fields, for suggestions
}

func newEnvironment(objects objectTypes, items map[string]bool) (*environment, error) {
	base, err := baseEnvironment()
	if err != nil {
		return nil, err
	}
	options := []cel.EnvOption{
		cel.CustomTypeProvider(&provider{Provider: base.CELTypeProvider(), objects: objects}),
		cel.CustomTypeAdapter(adapter{types.DefaultTypeAdapter}),
		cel.Variable(nameInputs, cel.ObjectType(typeInputs)),
		cel.Variable(nameVars, cel.ObjectType(typeVars)),
		cel.Variable(nameSteps, cel.ObjectType(typeSteps)),
		cel.Variable(nameRun, cel.ObjectType(typeRun)),
		cel.Variable(nameNow, cel.TimestampType),
	}
	for _, name := range sortedKeys(items) {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	env, err := base.Extend(options...)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, object := range sortedKeys(objects) {
		names = append(names, sortedKeys(objects[object])...)
	}
	return &environment{env: env, items: items, names: names}, nil
}

// compile compiles an expression, or returns problems with their places in the file.
func (v *environment) compile(text string, at Position) (*Expr, Problems) {
	e := &Expr{At: at, Text: text}
	if strings.TrimSpace(text) == "" {
		return nil, Problems{at.problem("the expression is empty", "")}
	}
	parsed, issues := v.env.Parse(text)
	if issues.Err() == nil {
		v.references(e, parsed)
		parsed, issues = v.env.Check(parsed)
	}
	if issues.Err() != nil {
		return nil, v.problems(issues, text, at)
	}
	e.result = parsed.OutputType()
	e.program = sync.OnceValues(func() (cel.Program, error) {
		return v.env.Program(parsed, cel.CostLimit(maxCost), cel.CustomDecoratorV2(sortMaps))
	})
	return e, nil
}

// references notes which steps and loop items an expression reads, and whether it reads the time.
func (v *environment) references(e *Expr, parsed *cel.Ast) {
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() {
		case ast.SelectKind:
			s := x.AsSelect()
			if o := s.Operand(); o.Kind() == ast.IdentKind && o.AsIdent() == nameSteps {
				e.steps = append(e.steps, s.FieldName())
			}
		case ast.IdentKind:
			name := x.AsIdent()
			e.Now = e.Now || name == nameNow
			if v.items[name] {
				e.names = append(e.names, name)
			}
		}
	}))
}

// problems converts errors of CEL to problems at their places in the file.
func (v *environment) problems(issues *cel.Issues, text string, at Position) Problems {
	var list Problems
	for _, err := range issues.Errors() {
		where := at
		if line := err.Location.Line(); line > 1 {
			where.Line += line - 1
			where.Column = err.Location.Column() + 1
		} else if line == 1 {
			where.Column += max(err.Location.Column(), 0)
		}
		message := strings.TrimSuffix(err.Message, " (in container '')")
		list = append(list, where.problem(fmt.Sprintf("expression %q: %s", shorten(text), message),
			v.hint(message)))
	}
	if len(list) > 3 { // CEL repeats itself after the first syntax error
		list = list[:3]
	}
	return list
}

func (v *environment) hint(message string) string {
	switch {
	case strings.Contains(message, "undeclared reference to 'env'"),
		strings.Contains(message, "undeclared reference to 'secrets'"):
		return "expressions cannot read the environment; programs and models get their keys from the worker"
	case strings.Contains(message, "undeclared reference"):
		return "expressions may use inputs, vars, steps, run, now and the items of enclosing loops"
	case strings.Contains(message, "token recognition error at: '= '"):
		return "== compares"
	case strings.HasPrefix(message, "Syntax error: mismatched input '}'"):
		return "an expression in a text is written ${{ … }}, and this field needs no braces"
	case strings.Contains(message, "undefined field"):
		_, name, _ := strings.Cut(message, "undefined field '")
		if near := ace.Nearest(strings.TrimSuffix(name, "'"), v.names); near != "" {
			return fmt.Sprintf("did you mean %q?", near)
		}
		return "only declared inputs, variables set in this file, steps of this file and fields of their kind exist"
	case strings.Contains(message, "no matching overload"):
		return "the operands have different types; int(), double() and string() convert"
	}
	return ""
}

func shorten(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return text
}

// ErrExpression means that an expression failed with the values of this run.
var ErrExpression = errors.New("expression failed")

// eval evaluates the expression to a JSON value: nil, bool, int64, uint64, float64, string, []any or
// map[string]any.
func (e *Expr) eval(vars map[string]any) (any, error) {
	program, err := e.program()
	if err != nil {
		return nil, e.failed(err)
	}
	out, _, err := program.Eval(vars)
	if err != nil {
		return nil, e.failed(err)
	}
	value, err := native(out)
	if err != nil {
		return nil, e.failed(err)
	}
	return value, nil
}

// failed returns the error of an evaluation.
func (e *Expr) failed(err error) error {
	hint := ""
	if strings.Contains(err.Error(), "no such key") {
		hint = "; a skipped step has no result, and a variable no value before it is set; x.?name.orValue(…) reads what may be" +
			" missing"
	}
	return fmt.Errorf("%s: %w: %q: %w%s", e.At, ErrExpression, shorten(strings.TrimSpace(e.Text)), err, hint)
}

// can reports whether the result of the expression may have one of the types.
func (e *Expr) can(kinds ...*cel.Type) bool {
	for _, k := range append(kinds, cel.DynType) {
		if e.result.Kind() == k.Kind() {
			return true
		}
	}
	return false
}
