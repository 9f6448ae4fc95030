package activities

import (
	"context"

	"acescope/engine/ace"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
)

// gradeOutside asks the grader of an answer if it is a model, and sets the verdict of the input. It returns
// the usage, which it takes from the budget of the input; nil if there was no request.
func (a *Activities) gradeOutside(ctx context.Context, in *ace.ReflectorInput) (used *ace.Usage, err error) {
	if in.Grader != grade.Judge || in.Label == nil || in.Correct != nil {
		return nil, nil
	}
	correct := model.SameAnswer(in.Answer, *in.Label)
	if !correct {
		used = new(ace.Usage)
		if correct, *used, err = a.judge(ctx, *in); err != nil {
			return used, err
		}
		in.Task.Budget = in.Task.Budget.Less(*used)
	}
	score := 0.0
	if correct {
		score = 1
	}
	in.Correct = &correct
	in.Score = &score
	return used, nil
}

// judge asks the model of the step whether the answer means the same as the label.
func (a *Activities) judge(ctx context.Context, in ace.ReflectorInput) (bool, ace.Usage, error) {
	p, err := a.provider(in.Task.Provider)
	if err != nil {
		return false, ace.Usage{}, err
	}
	j, ok := p.(model.Judge)
	if !ok {
		return false, ace.Usage{}, model.Errorf(model.BadRequest,
			"the grader judge asks the model of the reflector, but %s asks no model", in.Task.Provider)
	}
	return j.Judge(ctx, in)
}

// sum returns the sum of two usages, nil if both are.
func sum(a, b *ace.Usage) *ace.Usage {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(a.Add(*b))
}
