package llm

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"acescope/engine/ace"
)

// Judge implements [model.Judge].
func (p *provider) Judge(ctx context.Context, in ace.ReflectorInput) (bool, ace.Usage, error) {
	s, err := p.begin(ctx, in.Task, nil)
	if err != nil {
		return false, ace.Usage{}, err
	}
	var correct bool
	r := s.request(judgePrompt, nil, judgeMessage(in))
	r.System = r.System[:1] // without a playbook
	_, err = s.answer(ctx, r, func(f found) (err error) {
		correct, err = parseJudgment(f)
		return err
	})
	return correct, s.usage, err
}

func parseJudgment(f found) (correct bool, err error) {
	if f.cut > 0 {
		return false, errCut
	}
	if correct, err = strconv.ParseBool(strings.ToLower(f.fields.text("correct"))); err != nil {
		return false, errors.New(`it has no "correct" that is true or false`)
	}
	return correct, nil
}

func judgeMessage(in ace.ReflectorInput) string {
	return between("task", in.Prompt) + "\n\n" + between("expected", *in.Label) + "\n\n" +
		between("answer", orNone(in.Answer))
}
