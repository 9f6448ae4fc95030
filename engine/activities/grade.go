package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"acescope/engine/ace"
	"acescope/engine/internal/process"
	"acescope/engine/learning/grade"
	"acescope/engine/learning/model"
)

// grader grades answers.
type grader struct {
	*inputs
	programs map[string]grade.Program
	withheld string // see [Activities.Withheld]
}

// gradeOutside sets the verdict of the input if its grader is a model or a program. It returns the model's
// reason, and the usage, which it subtracts from the budget of the input; nil if there was no request.
func (g *grader) gradeOutside(
	ctx context.Context, in *ace.ReflectorInput,
) (reason string, used *ace.Usage, err error) {
	program, isProgram := grade.ProgramOf(in.Grader)
	if in.Label == nil || in.Correct != nil || !isProgram && in.Grader != grade.Judge {
		return "", nil, nil
	}
	var score float64
	if isProgram {
		score, err = g.runGrader(ctx, program, *in)
	} else {
		score, reason, used, err = g.judge(ctx, *in)
	}
	if err != nil {
		return "", used, err
	}
	if used != nil {
		in.Task.Budget = in.Task.Budget.Less(*used)
	}
	in.Score = &score
	in.Correct = new(score == 1)
	return reason, used, nil
}

// judge asks the model of the step whether the answer means the same as the label, unless they are equal. The
// reason is one line, without secrets.
func (g *grader) judge(
	ctx context.Context, in ace.ReflectorInput,
) (score float64, reason string, used *ace.Usage, err error) {
	if model.SameAnswer(in.Answer, *in.Label) {
		return 1, "", nil, nil
	}
	asked, err := g.judgeOf(in.Task.Provider)
	if err != nil {
		return 0, "", nil, err
	}
	j, u, err := asked.Judge(ctx, in)
	if j.Correct {
		score = 1
	}
	return score, ace.OneLine(g.secrets.String(j.Reason), maxReason), &u, err
}

func (g *grader) judgeOf(provider string) (model.Judge, error) {
	p, err := g.provider(provider)
	if err != nil {
		return nil, err
	}
	asked, ok := p.(model.Judge)
	if !ok {
		return nil, model.Errorf(model.BadRequest,
			"the grader judge asks the model of the reflector, but %s asks no model", provider)
	}
	return asked, nil
}

// Bounds in bytes: of the standard output and of the standard error of a grader, and of a reason.
const (
	maxGraded = 64 << 10
	maxReason = 200
)

// runGrader runs a program of this machine that grades.
func (g *grader) runGrader(ctx context.Context, name string, in ace.ReflectorInput) (float64, error) {
	program, ok := g.programs[name]
	switch {
	case !ok:
		return 0, model.Errorf(model.NoGrader,
			"program:%s: this worker has no [graders.%s] in its config.toml", name, name)
	case g.withheld != "":
		return 0, model.Errorf(model.NoGrader, "program:%s is not started: %s", name, g.withheld)
	}
	input, err := json.Marshal(grade.ProgramInput{TaskID: in.Task.TaskID, Question: in.Prompt,
		Answer: in.Answer, Label: *in.Label})
	if err != nil {
		return 0, err
	}
	stdout, stderr := process.NewTail(maxGraded, 0), process.NewTail(0, maxGraded)
	exit := process.Run(ctx, process.Spec{Argv: program.Argv, Dir: program.Dir,
		Env: process.Environ(inheritedEnv, nil, nil), Input: input, Stdout: stdout, Stderr: stderr,
		Timeout: program.Timeout, DieWithParent: true})
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case exit.Err != nil:
		err = exit.Err
	case exit.Class == process.TimedOut:
		err = fmt.Errorf("it did not end within %s", program.Timeout)
	case exit.Class != process.Exited:
		err = fmt.Errorf("it was ended by the signal %q", exit.Signal)
	case exit.Code != 0:
		text := strings.TrimSpace(g.secrets.String(stderr.String()))
		last := ace.Cut(text[strings.LastIndexByte(text, '\n')+1:], maxReason)
		why := fmt.Sprintf("it ended with exit code %d: %s", exit.Code, last)
		err = errors.New(strings.TrimRight(why, ": "))
	default:
		var score float64
		if score, err = grade.ParseScore(g.secrets.String(stdout.String())); err == nil {
			return score, nil
		}
	}
	return 0, model.Errorf(model.GraderFailed, "program:%s: %v", name, err)
}

// sum returns the sum of two usages, or nil if both are nil.
func sum(a, b *ace.Usage) *ace.Usage {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(a.Add(*b))
}
