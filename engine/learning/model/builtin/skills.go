package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
	"acescope/engine/learning/model/builtin/calc"
	"acescope/engine/learning/playbook"
)

// Tools of Skills.
const (
	toolLookUp    = "look_up"
	toolInspect   = "inspect"
	toolCalculate = "calculate"
)

// Recorded arguments and results of the tools.
type (
	lookUpArgs struct {
		Formula   string   `json:"formula"`
		BulletIDs []string `json:"bullet_ids,omitempty"`
	}
	lookUpResult struct {
		Recipes    []found `json:"recipes"`
		Known      int     `json:"known"`                // recipes of this formula in the playbook
		Expression string  `json:"expression,omitempty"` // stated in the prompt
	}
	found struct {
		BulletID string `json:"bullet_id"`
		Recipe   string `json:"recipe"`
		Helpful  int    `json:"helpful"`
		Harmful  int    `json:"harmful"`
	}
	inspectArgs struct {
		Question string `json:"question"`
	}
	inspectResult struct {
		Quantities []quantity `json:"quantities"`
	}
	calculateArgs struct {
		Expression string             `json:"expression"`
		Values     map[string]float64 `json:"values"`
	}
	calculateResult struct {
		Value  float64 `json:"value"`
		Answer string  `json:"answer"`
	}
)

// Unknown begins the answer of a session without a result.
const Unknown = "unknown"

const calculateDenied = Unknown + ": the tool " + toolCalculate + " was denied"

// Skills implements [model.Provider]. Without look_up it guesses, without inspect it uses bare
// numbers in their order, without calculate it gives no answer.
func (learner) Skills(ctx context.Context, in ace.SkillsInput, book *playbook.Playbook,
	tools model.Toolbox) (ace.SkillSessionResult, error) {
	if err := check(ctx, in.Prompt); err != nil {
		return ace.SkillSessionResult{}, err
	}
	s := session{ctx: ctx, tools: tools, book: book, p: parseProblem(in.Prompt)}
	if len(in.Program) > 0 && json.Unmarshal(in.Program, &s.prog) != nil {
		s.prog = program{} // written by another provider
	}
	answer, err := s.run()
	if err != nil {
		return ace.SkillSessionResult{}, err
	}
	return ace.SkillSessionResult{Answer: answer,
		StepReport: ace.StepReport{Usage: countWords(in.Prompt+" "+in.Plan, answer)}}, nil
}

type session struct {
	ctx   context.Context
	tools model.Toolbox
	book  *playbook.Playbook
	p     problem
	prog  program
}

func (s *session) run() (string, error) {
	entries, err := s.lookUp()
	if err != nil {
		return "", err
	}
	if s.p.Formula == "" {
		return Unknown + ": the prompt names no formula", nil
	}
	qs, err := s.inspect()
	if err != nil {
		return "", err
	}
	for _, o := range options(entries, qs) {
		answer, err := s.calculate(o.recipe.expr, o.binding.values)
		if err == nil || s.fatal(err) {
			return answer, err
		}
		if errors.Is(err, model.ErrDenied) {
			return calculateDenied, nil
		}
	}
	return s.guess(qs)
}

// fatal reports whether an error ends the session. Errors of the tools do not.
func (s *session) fatal(err error) bool {
	return s.ctx.Err() != nil || !errors.Is(err, model.ErrDenied) && !errors.Is(err, errTool)
}

// errTool marks an error of a tool in this package. Skills then tries another way.
var errTool = errors.New("the tool failed")

// lookUp returns the planned recipes, or all recipes of the formula.
func (s *session) lookUp() ([]entry, error) {
	args := lookUpArgs{Formula: s.p.Formula, BulletIDs: s.prog.BulletIDs}
	var entries []entry
	_, err := s.tools.Call(s.ctx, toolLookUp, args, func(context.Context) (any, error) {
		all := recipesFor(s.book, s.p.Formula)
		for _, e := range all {
			if len(s.prog.BulletIDs) == 0 || slices.Contains(s.prog.BulletIDs, e.bullet.ID) {
				entries = append(entries, e)
			}
		}
		res := lookUpResult{Recipes: []found{}, Known: len(all), Expression: s.p.Expression}
		for _, e := range entries {
			res.Recipes = append(res.Recipes, found{e.bullet.ID, e.bullet.Content, e.bullet.Helpful,
				e.bullet.Harmful})
		}
		return res, nil
	})
	if errors.Is(err, model.ErrDenied) {
		return nil, nil
	}
	return entries, err
}

// inspect returns the question's quantities. If the tool is denied, it returns bare numbers
// without units and context.
func (s *session) inspect() ([]quantity, error) {
	var qs []quantity
	_, err := s.tools.Call(s.ctx, toolInspect, inspectArgs{s.p.Question}, func(context.Context) (any, error) {
		qs = quantities(s.p.Question)
		return inspectResult{qs}, nil
	})
	if !errors.Is(err, model.ErrDenied) {
		return qs, err
	}
	for _, t := range tokenize(s.p.Question) {
		if t.kind == tokenNumber && len(qs) < maxQuantities {
			qs = append(qs, quantity{Value: t.value, Class: classNumber})
		}
	}
	return qs, nil
}

// calculate evaluates the expression and formats its value.
func (s *session) calculate(e *calc.Expr, values []float64) (string, error) {
	args := calculateArgs{Expression: e.String(), Values: map[string]float64{}}
	for i, n := range e.Names() {
		args.Values[n] = values[i]
	}
	answer := ""
	_, err := s.tools.Call(s.ctx, toolCalculate, args, func(context.Context) (any, error) {
		parsed, err := calc.Parse(args.Expression)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errTool, err)
		}
		v, err := parsed.EvalNamed(args.Values)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errTool, err)
		}
		answer = format(v)
		return calculateResult{v, answer}, nil
	})
	return answer, err
}

// guess divides the first number by the second, or returns the only number.
func (s *session) guess(qs []quantity) (string, error) {
	var values []float64
	for _, q := range qs {
		if !q.Side && len(values) < 2 {
			values = append(values, q.Value)
		}
	}
	if len(values) == 0 {
		return Unknown + ": the question has no numbers", nil
	}
	source := []string{"a", "a / b"}[len(values)-1]
	e, err := calc.Parse(source)
	if err != nil {
		return "", err
	}
	answer, err := s.calculate(e, values)
	switch {
	case err == nil:
		return answer, nil
	case s.fatal(err):
		return "", err
	case errors.Is(err, model.ErrDenied):
		return calculateDenied, nil
	}
	return Unknown + ": " + err.Error(), nil
}
