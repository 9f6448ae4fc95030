package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
)

// pendingExpr is an expression that is compiled when all names of the file are known.
type pendingExpr struct {
	expr   *Expr
	owner  *Step // nil: an output of the flow
	inside bool  // whether it may read results of steps in the owner's block
}

// typed is an expression that must have one of several types.
type typed struct {
	expr  *Expr
	kinds []*cel.Type
}

// check compiles the expressions of a file, and checks that they have the right types and read only values
// that exist.
func (b *builder) check() {
	env, err := newEnvironment(b.objects(), b.loops)
	if err != nil {
		b.problems = append(b.problems, b.f.at.problem(err.Error(), ""))
		return
	}
	byOwner := map[*Step][]pendingExpr{}
	for _, p := range b.pending {
		compiled, problems := env.compile(p.expr.Text, p.expr.At)
		if len(problems) > 0 {
			b.problems = append(b.problems, problems...)
			continue
		}
		*p.expr = *compiled
		byOwner[p.owner] = append(byOwner[p.owner], p)
	}
	if len(b.problems) > 0 {
		return
	}
	for _, t := range b.typed {
		if !t.expr.can(t.kinds...) {
			b.problems = append(b.problems, t.expr.At.problem(
				fmt.Sprintf("the expression %q is a %s where a %s is needed",
					shorten(t.expr.Text), t.expr.result, t.kinds[0]), ""))
		}
	}
	c := checker{b, byOwner}
	visible := names{steps: map[string]bool{}, items: map[string]bool{}}
	c.block(b.f.Steps, visible)
	c.expressions(nil, false, visible)
}

// objects returns the types of inputs, variables, results and run.
func (b *builder) objects() objectTypes {
	o := objectTypes{
		typeInputs: {}, typeVars: {}, typeSteps: {},
		typeRun: {"workflow_id": cel.StringType, "run_id": cel.StringType, "dir": cel.StringType,
			"cost_usd": cel.DoubleType},
	}
	for _, in := range b.f.Inputs {
		o[typeInputs][in.Name] = typeOf(in.Type)
	}
	for name := range b.vars {
		o[typeVars][name] = cel.DynType
	}
	for id, s := range b.steps {
		fields := map[string]*cel.Type{"status": cel.StringType, "error": cel.StringType}
		maps.Copy(fields, s.Do.result())
		o["step "+id] = fields
		o[typeSteps][id] = cel.ObjectType("step " + id)
	}
	return o
}

// typeOf returns the CEL type for a type of a JSON Schema.
func typeOf(name string) *cel.Type {
	switch name {
	case "string":
		return cel.StringType
	case "integer":
		return cel.IntType
	case "number":
		return cel.DoubleType
	case "boolean":
		return cel.BoolType
	case "array":
		return cel.ListType(cel.DynType)
	}
	return cel.DynType
}

// names are the steps and loop items that expressions may read at a place.
type names struct{ steps, items map[string]bool }

func (n names) clone() names { return names{maps.Clone(n.steps), maps.Clone(n.items)} }

// checker checks that expressions read only results of steps that come before them.
type checker struct {
	*builder
	byOwner map[*Step][]pendingExpr
}

func (c *checker) block(steps []*Step, visible names) {
	for _, s := range steps {
		c.expressions(s, false, visible)
		inner := visible
		if len(s.Do.Blocks()) > 0 {
			inner = visible.clone()
		}
		switch k := s.Do.(type) {
		case *forEachStep:
			inner.items[k.as] = true
			inner.items[k.as+"_index"] = true
			c.block(k.steps, inner)
		case *repeatStep:
			c.block(k.steps, inner)
			maps.Copy(visible.steps, inner.steps)
		case *subFlowStep: // its steps have a namespace of their own
		default:
			for _, b := range s.Do.Blocks() { // branches do not see each other
				branch := inner.clone()
				c.block(b.Steps, branch)
				maps.Copy(visible.steps, branch.steps)
			}
		}
		c.expressions(s, true, inner)
		visible.steps[s.ID] = true
	}
}

// expressions checks the expressions of a step.
func (c *checker) expressions(s *Step, inside bool, visible names) {
	for _, p := range c.byOwner[s] {
		if p.inside != inside {
			continue
		}
		for _, id := range p.expr.steps {
			if !visible.steps[id] {
				c.unreachable(p, id)
			}
		}
		for _, name := range p.expr.names {
			if !visible.items[name] {
				c.problems = append(c.problems,
					p.expr.At.problem(fmt.Sprintf("%q is not an item of an enclosing loop", name), ""))
			}
		}
	}
}

func (c *checker) unreachable(p pendingExpr, id string) {
	hint := "a step can read only the results of steps before it; for a for_each, read steps.ID.results"
	if p.owner != nil && id == p.owner.ID {
		hint = "a step cannot read its own result; use a variable to pass values to the next iteration"
	}
	line := 0
	if s := c.steps[id]; s != nil {
		line = s.At.Line
	}
	c.problems = append(c.problems, p.expr.At.problem(fmt.Sprintf("step %q (line %d) has no result here", id,
		line), hint))
}

// within reads fields whose expressions may read results of steps in the block.
func (b *builder) within(read func()) {
	b.isInside = true
	read()
	b.isInside = false
}

// checkInputs fills in the defaults of inputs and checks them.
func (f *Flow) checkInputs(inputs json.RawMessage) (json.RawMessage, error) {
	if len(inputs) == 0 {
		inputs = json.RawMessage("{}")
	}
	return f.schema.Check(inputs)
}

// CheckInputs fills in the defaults of inputs and checks them. The error names the flow.
func (f *Flow) CheckInputs(inputs json.RawMessage) (json.RawMessage, error) {
	checked, err := f.checkInputs(inputs)
	if err != nil {
		return nil, fmt.Errorf("flow %s: inputs: %s", f.Name, violations(err))
	}
	return checked, nil
}

// violations returns the error of a value that does not fit its schema in one line.
func violations(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "parameters: "), "\n", "; ")
}

// Signals lists the signals that steps wait for.
func (f *Flow) Signals() (list []string) {
	f.Walk(func(s *Step, _ int) {
		if w, ok := s.Do.(*waitStep); ok && w.signal != "" && !slices.Contains(list, w.signal) {
			list = append(list, w.signal)
		}
	})
	return list
}
