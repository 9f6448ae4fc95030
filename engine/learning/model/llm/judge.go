package llm

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/learning/model"
)

// Judge implements [model.Judge].
func (p *provider) Judge(ctx context.Context, in ace.ReflectorInput) (j model.Judgment, used ace.Usage,
	err error) {
	s, err := p.begin(ctx, in.Task, nil)
	if err != nil {
		return j, used, err
	}
	message := between("task", in.Prompt) + "\n\n" + between("expected", *in.Label) + "\n\n" +
		between("answer", orNone(in.Answer))
	r := s.request([]Block{{Text: strings.TrimSpace(judgePrompt)}}, message)
	_, err = s.answer(ctx, r, func(f found) (err error) {
		if f.cut > 0 {
			return errCut
		}
		if j.Correct, err = strconv.ParseBool(strings.ToLower(f.fields.text("correct"))); err != nil {
			return errors.New(`the field "correct" is missing, or neither true nor false`)
		}
		j.Reason = f.fields.text("reason")
		return nil
	})
	return j, s.usage, err
}
